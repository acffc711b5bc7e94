"""Hold the benchmarks and tests that programs are judged by, ready to use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from assay import benchmarks
from assay.errors import AssayError, UsageError
from assay.judging import JudgeTask, references, tasks_of
from assay.progress import Silent
from assay.sandbox import Sandbox, open_sandbox
from assay.serve.options import ServeOptions
from assay.serve.own_tests import make_problem, read_tests
from assay.types import Benchmark, Limits, Program, Tests

TESTS_ROOM = 64 << 20  # bytes of clients' tests that are held


@dataclass(frozen=True, slots=True)
class Served:
    """A benchmark whose references were checked, with what its programs are judged by."""

    benchmark: Benchmark
    subjects: dict[str, JudgeTask]  # by task
    unscorable: dict[str, str]  # tasks whose reference fails here, and why


@dataclass(frozen=True, slots=True)
class Trusted:
    """Name what runs in a worker before it is isolated. It comes from benchmarks, never clients."""

    imports: frozenset[str] = frozenset()
    preludes: frozenset[str] = frozenset({""})  # code before programs on standard input


class UnknownError(Exception):
    """Report a benchmark that is not served."""


class Catalogue:
    """Load benchmarks when they are first used. Any thread may call it; loading blocks."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._served: dict[str, Served] = {}
        self._environments = {""}
        self.trusted = Trusted()

    def names(self) -> list[str]:
        """Return the names of the benchmarks that may be used."""
        return list(self._options.benchmarks) or benchmarks.benchmarks.names()

    def find(self, name: str) -> Served | None:
        """Return a benchmark if it is loaded. Raise UnknownError if it is not served."""
        if name not in self._served and name not in self.names():
            raise UnknownError(f"benchmark {name!r}: is not served here")
        return self._served.get(name)

    def load(self, name: str) -> Served:
        """Load a benchmark and check its references. Raise AssayError if that is not possible."""
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if found := self._served.get(name):
                return found
            served = self._check(benchmarks.load(name, data_dir=self._options.data_dir))
            self._served[name] = served
            return served

    def is_ready(self) -> bool:
        """Return whether the benchmarks that were named at the start are loaded."""
        return all(name in self._served for name in self._options.benchmarks)

    def has_environment(self, name: str) -> bool:
        """Return whether a set of packages is known to work."""
        return name in self._environments

    def try_environment(self, name: str) -> None:
        """Judge an empty program with a set of packages. Raise AssayError if it does not work.

        Otherwise the first program that needs it would end the stage of all programs.
        """
        task = JudgeTask(make_problem("", Tests("", "")), environment=name)
        with closing(self._open_sandbox()) as sandbox:
            list(sandbox.judge([task.make_job(Program("", ""))]))
        self._environments.add(name)

    def _check(self, benchmark: Benchmark) -> Served:
        # In a separate sandbox: a worker that ran references never runs another program.
        with closing(self._open_sandbox()) as sandbox:
            checked = references.check(benchmark, sandbox, Silent())
        ready = checked.benchmark
        self._environments.add(ready.environment)
        preludes = {p.tests.preamble for p in ready.problems if p.tests.is_script}
        with self._lock:
            self.trusted = Trusted(
                self.trusted.imports.union(ready.imports), self.trusted.preludes | preludes
            )
        return Served(ready, tasks_of(ready), checked.unscorable)

    def _open_sandbox(self) -> Sandbox:
        options = self._options
        return open_sandbox(options.sandbox, options.workers, options.sandbox_tier, options.python)


class ClientTests:
    """Hold clients' tests, the latest that fit. Equal ones are one subject, which is sent once.

    Thread-safe.
    """

    def __init__(self, room: int = TESTS_ROOM) -> None:
        self._room = room
        self._held: OrderedDict[str, tuple[JudgeTask, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, name: str) -> JudgeTask | None:
        """Return tests by their name."""
        with self._lock:
            found = self._held.get(name)
            if found is None:
                return None
            self._held.move_to_end(name)
            return found[0]

    def add(self, name: str, size: int, make: Callable[[], JudgeTask]) -> JudgeTask:
        """Return the tests of this name, which are made if they are not held."""
        if (held := self.find(name)) is not None:
            return held
        subject = make()
        with self._lock:
            if name in self._held:  # another request has made them meanwhile
                return self._held[name][0]
            self._held[name] = subject, size
            self._size += size
            while self._size > self._room and len(self._held) > 1:
                _, (_, freed) = self._held.popitem(last=False)
                self._size -= freed
        return subject


def make_subject(
    data: Any, imports: tuple[str, ...], environment: str, trusted: Trusted
) -> JudgeTask:
    """Return a client's tests as a subject. Raise ValueError if they are malformed.

    What a worker runs before it is isolated must be that of a benchmark.
    """
    tests = read_tests(data)
    remedy = "is not of a benchmark that this server has loaded. Start it with --benchmark NAME"
    if unknown := sorted(set(imports) - trusted.imports):
        raise ValueError(f"imports: {unknown[0][:80]!r} {remedy}")
    if tests.is_script and tests.preamble not in trusted.preludes:
        raise ValueError(f"tests.preamble: the code before scripts {remedy}")
    return JudgeTask(make_problem("", tests), Limits(), imports, environment)


def describe_failure(error: AssayError) -> tuple[int, str]:
    """Return the status and text for a benchmark that cannot be loaded."""
    return (400 if isinstance(error, UsageError) else 503), str(error)
