"""Judge programs on another machine, by its judge service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Any
from urllib.parse import quote

from assay.api.opening import load_benchmark
from assay.data.arguments import checked
from assay.errors import DataError, UsageError
from assay.judging.client import JudgeClient
from assay.judging.judge import AnyJudge, Programs, list_pairs
from assay.judging.wire import decode_verdict
from assay.types import Benchmark, Limits, Verdict

BATCH = 256


class RemoteJudge(AnyJudge):
    """The judge of one benchmark's programs in a service that ``assay serve`` runs.

    It has the methods of ``Judge`` and gives the same verdicts. Nothing is executed here. Any
    number of threads may use it.
    """

    @checked
    def __init__(
        self,
        url: str,
        benchmark: str = "",
        *,
        token: str = "",
        limits: Limits | None = None,
    ) -> None:
        """Connect to a service. ``token`` is the content of its ``--token-file``."""
        self._client = JudgeClient(url, token)
        self._limits = limits
        about = self._client.about()
        self.identity: Mapping[str, Any] = dict(about["judge"])  # tier and versions
        self._batch = min(BATCH, int(about["batch"]))
        self.name = benchmark
        self.unscorable: dict[str, str] = {}  # tasks whose reference fails there, and why
        self._tasks: frozenset[str] = frozenset()
        self._data_sha256 = ""
        if benchmark:
            described = self._client.get(f"/benchmarks/{quote(benchmark, safe='')}")
            self.unscorable = dict(described["unscorable"])
            self._tasks = frozenset(described["tasks"])
            self._data_sha256 = described["data_sha256"]

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark, loaded on this machine. Raise DataError if the service has other data."""
        benchmark = load_benchmark(self.name)
        if benchmark.data_sha256 != self._data_sha256:
            raise DataError(
                f"{self.name}: the judge service has different data. Use the same version of assay "
                "on both."
            )
        return benchmark

    @checked
    def stream(self, programs: Programs) -> Iterator[Verdict]:
        """Yield verdicts as they come. ``sample`` is the program's position."""
        pairs = list_pairs(programs)
        for task_id, _ in pairs:
            if task_id not in self._tasks:
                raise UsageError(
                    f"{task_id}: is not a task of {self.name or 'any benchmark'}. Give one of its "
                    "task ids."
                )
        items = [{"task_id": task_id, "program": code} for task_id, code in pairs]
        return self._exchange(items)

    @checked
    def judge_completions(self, completions: Programs) -> list[Verdict]:
        """Return a verdict for every completion. The service extracts the programs."""
        items = [
            {"task_id": task_id, "completion": text} for task_id, text in list_pairs(completions)
        ]
        return sorted(self._exchange(items), key=lambda verdict: verdict.sample)

    @checked
    def judge_tests(self, programs: list[str], tests: Mapping[str, Any]) -> list[Verdict]:
        """Return a verdict for every program by tests of your own, in the form of ``/judge``."""
        items = [{"task_id": "", "program": code, "tests": "own"} for code in programs]
        verdicts = self._exchange(items, {"own": dict(tests)})
        return sorted(verdicts, key=lambda verdict: verdict.sample)

    def close(self) -> None:
        """Break the connections. The service then drops what still waits."""
        self._client.close()

    def _exchange(
        self, items: list[dict[str, str]], named_tests: Mapping[str, Any] | None = None
    ) -> Iterator[Verdict]:
        """Judge batch by batch."""
        numbered = list(enumerate(items))
        for first in range(0, len(items), self._batch):
            batch = numbered[first : first + self._batch]
            answers = self._client.judge_all(batch, lambda some, _: self._body(some, named_tests))
            for (number, one), line in answers:
                yield decode_verdict(line, one["task_id"], number)

    def _body(
        self, items: list[tuple[int, dict[str, str]]], named_tests: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"programs": [one for _, one in items]}
        if named_tests:
            body["named_tests"] = named_tests
        if self.name:
            body["benchmark"] = self.name
        if self._limits:
            body["limits"] = asdict(self._limits)
        return body
