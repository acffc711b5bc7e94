"""Keep the pages of a results folder up to date while runs go on."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.progress import Reporter, Silent
from assay.report.pages import PageLink, PageSection, ReportSite, RunSource, Sources, open_sources
from assay.report.pages.markup import join_key
from assay.report.view.changes import Counter, Progress, Snapshot, take_snapshot
from assay.runs.history import ResultCache

SILENT = Silent()
MOST_RUNS = 8  # whose samples are in memory
INTERVAL_S = 1.0  # between two looks at the folder
# A run's page is made again only after this many times as long as making it took: a page that is
# costly must not keep a core busy.
PATIENCE = 4.0
LISTS = ("overview", "board")


@dataclass(frozen=True, slots=True)
class Changes:
    """Keys of pages that have changed, and the progress of runs by the keys of their pages."""

    keys: tuple[str, ...] = ()
    progress: Mapping[str, Progress] = field(default_factory=dict)


class Subscription:
    """The changes that a client has not taken yet."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._keys: dict[str, None] = {}
        self._progress: dict[str, Progress] = {}
        self._ended = False

    def add(self, changes: Changes) -> None:
        """Note that pages have changed."""
        with self._changed:
            self._keys |= dict.fromkeys(changes.keys)
            self._progress |= changes.progress
            self._changed.notify()

    def end(self) -> None:
        """Wake the client up for the last time."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def take(self, timeout_s: float) -> Changes | None:
        """Return changes, nothing after the timeout, or None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._keys or self._progress or self._ended, timeout_s)
            if self._ended:
                return None
            changes = Changes(tuple(self._keys), self._progress)
            self._keys, self._progress = {}, {}
            return changes


class LiveSite:
    """Pages of a results folder, for many threads.

    ``poll`` looks for changes. Lists are made again if runs begin or end; a run's page if its files
    have grown. The samples of the runs that were shown last are kept in memory.
    """

    def __init__(
        self, results: Path, *, reporter: Reporter = SILENT, data_dir: Path | None = None
    ) -> None:
        self.results = results
        self._reporter, self._data_dir = reporter, data_dir
        self._noted: set[str] = set()
        self._results = ResultCache()  # used by the thread that polls
        self._polling, self._lock = threading.Lock(), threading.Lock()
        self._snapshot = Snapshot({}, {}, {})
        self._lists = self._make_site(Sources(()))
        self._listed: dict[str, PageSection] = {}
        self._unfinished: set[str] = set()  # keys of pages
        self._names: dict[str, str] = {}  # by key of a run's page, the name of its folder
        self._polled = float("-inf")
        self._shown: OrderedDict[str, tuple[object, ReportSite]] = OrderedDict()
        self._making: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._costs: dict[str, tuple[float, float]] = {}  # seconds, and when
        self._counter = Counter()
        self._progress: dict[str, Progress] = {}  # of all runs that are not finished
        self._held: set[str] = set()  # changed, but costly and made not long ago
        self._subscriptions: set[Subscription] = set()
        self.poll()

    def poll(self, least_s: float = 0.0) -> None:
        """Look for changes, unless another thread does, or did in the last ``least_s`` seconds."""
        if time.monotonic() - self._polled < least_s or not self._polling.acquire(blocking=False):
            return
        try:
            changes = self._find_changes()
            self._polled = time.monotonic()
        finally:
            self._polling.release()
        if changes.keys or changes.progress:
            with self._lock:
                waiting = list(self._subscriptions)
            for one in waiting:
                one.add(changes)

    def _find_changes(self) -> Changes:
        before, now = self._snapshot, take_snapshot(self.results)
        keys: list[str] = []
        if not now.same_list(before):
            sources = self._open()
            self._lists = self._make_site(sources)
            self._names = {join_key("run", run.key): _name(run) for run in sources.runs}
            self._unfinished = {
                join_key("run", run.key) for run in sources.runs if run.entry.result is None
            }
            with self._lock:
                self._listed.clear()
            keys += LISTS
        self._snapshot = now
        changed = {*now.changed(before), *self._held}
        progress = self._measure(changed)
        with self._lock:
            known = {**self._progress, **progress}
            self._progress = {key: one for key, one in known.items() if key in self._unfinished}
        self._held = {name for name in changed if self._is_costly(name)}
        keys += [key for key, name in self._names.items() if name in changed - self._held]
        return Changes(tuple(keys), progress)

    def _measure(self, names: Collection[str]) -> dict[str, Progress]:
        """Return the progress of the runs with these names that are not finished."""
        measured = {
            join_key("run", run.key): self._counter.measure(run)
            for run in self._lists.sources.runs
            if _name(run) in names
        }
        return {key: progress for key, progress in measured.items() if progress}

    def _open(self) -> Sources:
        sources = open_sources([str(self.results)], self.results, self._note, self._results.read)
        self._results.forget_others(
            {run.entry.result.path for run in sources.runs if run.entry.result}
        )
        # A folder that is a link may lead anywhere.
        runs = (
            replace(run, folder=None) if run.folder and run.folder.is_symlink() else run
            for run in sources.runs
        )
        return replace(sources, runs=tuple(runs))

    def _note(self, line: str) -> None:
        """Report a damaged file once, however often the folder is read."""
        if line not in self._noted:
            self._noted.add(line)
            self._reporter.note(line)

    def _is_costly(self, name: str) -> bool:
        cost, when = self._costs.get(name, (0.0, 0.0))
        return time.monotonic() - when < PATIENCE * cost

    def links(self) -> list[PageLink]:
        """Return links to all pages."""
        return self._lists.list_pages()

    def section(self, key: str) -> PageSection:
        """Return a page as it is now. Raise an AssayError if it does not exist."""
        if key in LISTS:
            return self._list(key)
        with self._site_of(key) as site:
            return site.section(key)

    def block(self, name: str) -> Any:
        """Return data of a page as it is now. Raise an AssayError if it does not exist."""
        if name == "links":
            return [codec.to_json(link) for link in self.links()]
        with self._site_of(name) as site:
            return site.block(name)

    def _list(self, key: str) -> PageSection:
        lists, section = self._lists, self._listed.get(key)
        if section is None:
            section = lists.section(key)
            with self._lock:
                if lists is self._lists:
                    self._listed[key] = section
        return section

    def _make_site(self, sources: Sources) -> ReportSite:
        return ReportSite(sources, reporter=self._reporter, data_dir=self._data_dir)

    @contextmanager
    def _site_of(self, key: str) -> Iterator[ReportSite]:
        """Yield the site that has a run's samples in memory, or a new one for other pages.

        Requests for the same run wait for each other, so its files are read once.
        """
        name = self._names.get("/".join(key.split("/")[:2]))
        if name is None:
            yield self._make_site(self._lists.sources)
            return
        with self._lock:
            making = self._making[name]
        with making:
            begun = time.monotonic()
            yield self._find_site(name)
            spent = time.monotonic() - begun
            if spent > INTERVAL_S / PATIENCE:
                self._costs[name] = (spent, time.monotonic())

    def _find_site(self, name: str) -> ReportSite:
        mark = self._snapshot.mark_of(name)
        with self._lock:
            known = self._shown.get(name)
            if known is None or known[0] != mark:
                known = self._shown[name] = (mark, self._make_site(self._lists.sources))
            self._shown.move_to_end(name)
            while len(self._shown) > MOST_RUNS:
                self._shown.popitem(last=False)
            return known[1]

    @contextmanager
    def subscribed(self) -> Iterator[Subscription]:
        """Yield a subscription to changes. It begins with the progress of all runs."""
        one = Subscription()
        with self._lock:
            self._subscriptions.add(one)
            progress = dict(self._progress)
        one.add(Changes(progress=progress))
        try:
            yield one
        finally:
            with self._lock:
                self._subscriptions.discard(one)

    @property
    def is_watched(self) -> bool:
        """Tell whether anyone waits for changes."""
        with self._lock:
            return bool(self._subscriptions)

    def end(self) -> None:
        """End all subscriptions."""
        with self._lock:
            for one in self._subscriptions:
                one.end()


def _name(run: RunSource) -> str:
    return run.folder.name if run.folder else run.entry.run
