"""Hold the benchmarks that programs are judged by, ready to use."""

from __future__ import annotations

import threading
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass

from assay import benchmarks
from assay.judging import JudgeTask, references, tasks_of
from assay.progress import Silent
from assay.serve.options import ServeOptions
from assay.types import Benchmark, Problem, Program, Tests


@dataclass(frozen=True, slots=True)
class Served:
    """A benchmark whose references were checked, with what its programs are judged by."""

    benchmark: Benchmark
    subjects: dict[str, JudgeTask]  # by task
    unscorable: dict[str, str]  # tasks whose reference fails here, and why


class Catalogue:
    """The benchmarks, loaded when they are first used. Any thread may call it; loading blocks."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self.served: dict[str, Served] = {}
        self.environments = {""}  # sets of packages that are known to work
        # What runs in a worker before it is isolated is that of benchmarks, never of clients:
        self.imports: set[str] = set()
        self.preludes = {""}  # code before programs on standard input

    def names(self) -> list[str]:
        """Return the names of the benchmarks that may be used."""
        return list(self._options.benchmarks) or benchmarks.benchmarks.names()

    def load(self, name: str) -> Served:
        """Load a benchmark and check its references. Raise AssayError if that is not possible."""
        with self._lock:
            lock = self._locks[name]
        with lock:
            if name not in self.served:
                benchmark = benchmarks.load(name, data_dir=self._options.data_dir)
                self.served[name] = self._check(benchmark)
            return self.served[name]

    def is_ready(self) -> bool:
        """Return whether the benchmarks that were named at the start are loaded."""
        return all(name in self.served for name in self._options.benchmarks)

    def try_environment(self, name: str) -> None:
        """Judge an empty program with a set of packages. Raise AssayError if it does not work.

        Otherwise the first program that needs it would end the stage of all programs.
        """
        task = JudgeTask(Problem("", "", "", Tests("", "")), environment=name)
        with closing(self._options.open_sandbox()) as sandbox:
            list(sandbox.judge([task.make_job(Program("", ""))]))
        self.environments.add(name)

    def _check(self, benchmark: Benchmark) -> Served:
        # In a separate sandbox: a worker that ran references never runs another program.
        with closing(self._options.open_sandbox()) as sandbox:
            checked = references.check(benchmark, sandbox, Silent())
        ready = checked.benchmark
        self.environments.add(ready.environment)
        self.imports.update(ready.imports)
        self.preludes.update(p.tests.preamble for p in ready.problems if p.tests.is_script)
        return Served(ready, tasks_of(ready), checked.unscorable)
