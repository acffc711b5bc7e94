"""A run's folder: protocol, model, completions and verdicts, written down as they happen."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import secrets
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from assay import codec
from assay.borders.writing import reporting, write_whole
from assay.errors import RunError
from assay.runs._files import DOCUMENTS, JsonLines, add_environment, hold, read_records
from assay.types import Completion, Program, Sample, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from assay.protocol import Protocol
    from assay.types import ModelIdentity, SampleKey

RUN_FILE, COMPLETIONS, VERDICTS = "run.json", "completions.jsonl", "verdicts.jsonl"
PROGRAMS = "programs.jsonl"  # runs of earlier versions have none
ABOUT_FIELDS = {"key", "created", "model", "environments"}


@dataclass(frozen=True, slots=True)
class ProgramRecord(Sample):
    """A program as it was taken out of a completion, and the rule that found it."""

    code: str
    rule: str


class RunReader:
    """Read a run's folder, also one that is being written, or that is read-only.

    Nothing there is locked, created or changed.

    Completions with an error and invalid verdicts are written down but do not count as done, so
    that a rerun tries them again.
    """

    def __init__(self, path: Path) -> None:
        self._load(path, _read_about(path))

    def _load(self, path: Path, about: dict[str, Any]) -> None:
        self.path, self.about = path, about
        verdicts = {v.key: v for v in self._read(VERDICTS, Verdict)}
        self._verdicts: dict[SampleKey, Verdict] = verdicts
        judged = self.judged
        self._completions: dict[SampleKey, Completion] = {
            c.key: _without_text(c) if c.key in judged else c
            for c in self._read(COMPLETIONS, Completion)
        }

    @property
    def tests_seed(self) -> str:
        """The secret that inputs drawn by tests depend on; runs of earlier versions have none."""
        return str(self.about.get("tests_seed", ""))

    def _read(self, name: str, record_type: type[Any]) -> Iterable[Any]:
        return read_records(self.path / name, record_type)

    @property
    def completions(self) -> dict[SampleKey, Completion]:
        """Those that were made; requests that failed are left out.

        Only what was found unjudged when the folder was opened has its text: a run of any size
        must fit into memory.
        """
        return {key: c for key, c in self._completions.items() if c.error is None}

    def is_truncated(self, key: SampleKey) -> bool:
        """Whether the completion was cut off where no more tokens were allowed."""
        completion = self._completions.get(key)
        return completion is not None and completion.finish_reason == "length"

    def read_completions(self) -> Iterator[Completion]:
        """Those that were made, with their texts, one at a time from the file."""
        return (c for c in read_records(self.path / COMPLETIONS, Completion) if c.error is None)

    def read_programs(self) -> Iterator[ProgramRecord]:
        """Yield the programs that were found, one at a time; none if the run has no such file.

        A sample can have two: its verdict's ``rule`` says which one it is about.
        """
        if (self.path / PROGRAMS).exists():
            yield from read_records(self.path / PROGRAMS, ProgramRecord)

    @property
    def verdicts(self) -> dict[SampleKey, Verdict]:
        """The latest verdict on each sample, invalid ones too."""
        return dict(self._verdicts)

    @property
    def judged(self) -> set[SampleKey]:
        return {key for key, v in self._verdicts.items() if v.status != "invalid"}


class RunWriter(RunReader):
    """An open run, held against other processes: what is done so far, and two growing files."""

    def __init__(self, path: Path) -> None:
        about = _read_about(path)
        if path.is_symlink():
            raise RunError(f"{path}: is a symbolic link. Replace it by the folder itself.")
        busy = f"another process is working on {path}: wait for it, or use --fresh for a second run"
        with contextlib.ExitStack() as opened:
            self._held = hold(path / "lock", busy)
            opened.callback(os.close, self._held)
            self._lines: dict[str, JsonLines] = {}
            for name, record_type in (
                (COMPLETIONS, Completion), (PROGRAMS, ProgramRecord), (VERDICTS, Verdict),
            ):  # fmt: skip
                self._lines[name] = JsonLines(path / name, record_type)
                opened.callback(self._lines[name].close)
            self._append_lock = threading.Lock()
            self._lines[PROGRAMS].cut_off_half_a_line()
            self._load(path, about)
            self._opened = opened.pop_all()

    def _read(self, name: str, record_type: type[Any]) -> Iterable[Any]:  # noqa: ARG002
        return self._lines[name].records()

    def add_environment(self, environment: dict[str, Any]) -> None:
        """Where this run is worked on; it may be continued in another one."""
        add_environment(self.path / RUN_FILE, self.about, environment)

    def relocate_model(self, model: ModelIdentity, warn: Callable[[str], None]) -> None:
        """Record the path and name that the model has now; its digests say that it is the same."""
        known, earlier = self.about["model"], self.about["model"].get("path", "")
        if not model.path or earlier == model.path:
            return
        self.about["model"] = {**known, "name": model.name, "path": model.path}
        with reporting(self.path):
            write_whole(self.path / RUN_FILE, codec.pretty(self.about))
        if earlier:
            warn(f"the model of this run was at {earlier} before")

    def add_completion(self, completion: Completion) -> None:
        with self._append_lock:
            self._lines[COMPLETIONS].append(completion)
            self._completions[completion.key] = _without_text(completion)

    def add_program(self, sample: Sample, program: Program) -> None:
        record = ProgramRecord(sample.task_id, sample.sample, program.code, program.rule)
        with self._append_lock:
            self._lines[PROGRAMS].append(record)

    def add_verdict(self, verdict: Verdict) -> None:
        with self._append_lock:
            self._lines[VERDICTS].append(verdict)
            self._verdicts[verdict.key] = verdict

    def close(self) -> None:
        self._opened.close()


def _read_about(path: Path) -> dict[str, Any]:
    """Return what a run's run.json says; RunError unless it can be worked with."""
    about = DOCUMENTS.read_json(path / RUN_FILE)
    if not is_about(about):
        raise RunError(f"{path / RUN_FILE}: is not a run of assay. Restore it from a copy.")
    found: dict[str, Any] = about
    return found


def is_about(about: Any) -> bool:
    """Tell whether this is what run.json says of a run."""
    return (
        isinstance(about, dict)
        and about.keys() >= ABOUT_FIELDS
        and isinstance(about["created"], str)
        and isinstance(about["model"], dict)
        and isinstance(about["model"].get("name"), str)
        and isinstance(about["environments"], list)
        and all(map(_is_environment, about["environments"]))
    )


def _is_environment(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("parity_gate") or {}, dict)


def _without_text(completion: Completion) -> Completion:
    return dataclasses.replace(completion, text="")


def open_run(
    results_dir: Path,
    protocol: Protocol,
    model: ModelIdentity,
    *,
    fresh: bool = False,
    tests_seed: str = "",
    selection: str = "",
    name: str = "",
    warn: Callable[[str], None] = lambda _: None,
) -> RunWriter:
    """The newest run of this protocol and model in ``results_dir``, or a new one.

    With a ``tests_seed`` only a run that has it is continued; a new run draws one if none is given.
    ``selection`` is the label of the problems, if they are not the whole benchmark; ``name`` one
    that the user gave the model, which makes a run of its own. ``warn`` gets one line for every run
    that cannot be read, and so is not resumed, and one if the model has moved since.
    """
    identity = {**codec.to_json(model), "name": name, "path": ""}  # files may move
    key = codec.digest({"protocol": protocol.hash, "model": identity})
    with reporting(results_dir):
        results_dir.mkdir(parents=True, exist_ok=True)
    earlier = [
        path
        for path, about in run_folders(results_dir, warn)
        if about["key"] == key and (not tests_seed or about.get("tests_seed") == tests_seed)
    ]
    if earlier and not fresh:
        run = RunWriter(earlier[0])
        run.relocate_model(model, warn)
        return run
    seed = tests_seed or secrets.token_hex(16)
    about = {
        "key": key,
        "created": datetime.now(UTC).isoformat(),
        "model": codec.to_json(model),
        "selection": selection,
        "tests_seed": seed,
        "environments": [],
    }
    return RunWriter(_create(results_dir, protocol, about))


def run_folders(
    results_dir: Path, warn: Callable[[str], None] = lambda _: None
) -> list[tuple[Path, dict[str, Any]]]:
    """Return all run folders and what their run.json says, newest first.

    Others' folders are left out; ``warn`` gets one line for every damaged one.
    """
    found = []
    for path in results_dir.glob(f"*/{RUN_FILE}"):
        try:
            about = DOCUMENTS.read_json(path)
        except RunError as error:
            warn(str(error))
            continue
        if is_about(about):
            found.append((path.parent, about))
    return sorted(found, key=lambda run: run[1]["created"], reverse=True)


def _create(results_dir: Path, protocol: Protocol, about: dict[str, Any]) -> Path:
    created = datetime.fromisoformat(about["created"])
    name = f"{protocol.benchmark}_{created:%Y%m%d_%H%M%S}"
    path = results_dir / name
    with reporting(path):
        for attempt in itertools.count(2):
            try:
                path.mkdir()
                break
            except FileExistsError:  # another run began in the same second
                path = results_dir / f"{name}-{attempt}"
    write_whole(path / "protocol.json", codec.pretty(protocol.to_json()))
    write_whole(path / RUN_FILE, codec.pretty(about))  # last: a folder without it is no run
    return path
