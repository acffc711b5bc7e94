"""Run the evaluations of a suite: each model is loaded once, and a failure costs its own rows."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay import models
from assay.errors import AssayError, ModelError
from assay.pipeline.evaluate import check_device
from assay.pipeline.run import execute, find_missing
from assay.runs import ParityGateOutcome, Result
from assay.runs.stores.suites import SuiteRecord, SuiteRow, Target, suite_path, write_suite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.pipeline.site import CheckModel
    from assay.pipeline.suite.plan import ModelKey, ReadyRun
    from assay.pipeline.suite.suite import Suite
    from assay.progress import Reporter
    from assay.types import Capabilities, Decoding


@dataclass(frozen=True, slots=True)
class SuiteOutcome:
    """One evaluation of a suite and its result, or None if it failed."""

    row: SuiteRow
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The evaluations of a suite in their order, and the record that was written."""

    outcomes: tuple[SuiteOutcome, ...]
    record: SuiteRecord
    path: Path | None = None  # of the record; None: the suite has no name

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of the evaluations that did not fail."""
        return tuple(one.result for one in self.outcomes if one.result is not None)

    @property
    def failures(self) -> tuple[SuiteRow, ...]:
        return tuple(one.row for one in self.outcomes if one.row.state == "failed")

    @property
    def complete(self) -> bool:
        """Tell whether all samples of all evaluations were judged."""
        return all(one.row.state == "complete" for one in self.outcomes)


def run_suite(
    suite: Suite,
    runs: Sequence[ReadyRun],
    reporter: Reporter,
    gate: CheckModel | None = None,
) -> SuiteResult:
    """Run or resume all evaluations, and return their results.

    ``gate`` checks the device of each model once, before it generates.
    """
    return _SuiteRunner(suite, runs, reporter, gate).run()


class _SuiteRunner:
    """The evaluations of a suite, one after the other, and their outcomes so far."""

    def __init__(
        self,
        suite: Suite,
        runs: Sequence[ReadyRun],
        reporter: Reporter,
        gate: CheckModel | None,
    ) -> None:
        self._suite, self._runs, self._reporter, self._gate = suite, runs, reporter, gate
        self._written = set[str]()  # keys of stored completions
        self._held: dict[ModelKey, contextlib.ExitStack] = {}  # models that are kept loaded
        self._gates: dict[ModelKey, ParityGateOutcome | None] = {}
        self._broken: dict[ModelKey, str] = {}  # why a model cannot be used
        self._outcomes = [SuiteOutcome(_row(run)) for run in runs]
        results_dir = runs[0].entry.config.results_dir if runs else Path()
        self._path = suite_path(results_dir, suite.name) if suite.name else None

    def run(self) -> SuiteResult:
        record = self._record()
        try:
            for number, run in enumerate(self._runs):
                self._reporter.note(f"[{number + 1}/{len(self._runs)}] {run.entry.label}")
                self._outcomes[number] = self._run_one(number, run)
                record = self._record()
        finally:
            for key in list(self._held):
                self._release(key)
        return SuiteResult(tuple(self._outcomes), record, self._path)

    def _run_one(self, number: int, run: ReadyRun) -> SuiteOutcome:
        """Return the outcome of one evaluation. A model that failed is not tried again."""
        row = self._outcomes[number].row
        if (why := self._broken.get(run.key)) is not None:
            return SuiteOutcome(dataclasses.replace(row, state="failed", error=why))
        try:
            result = self._evaluate(number, run)
        except AssayError as error:
            self._reporter.note(f"failed: {error}")
            if isinstance(error, ModelError):
                self._broken[run.key] = str(error)
            if run.key in self._broken or not self._is_needed_after(number):
                self._release(run.key)
            return SuiteOutcome(dataclasses.replace(row, state="failed", error=str(error)))
        row = dataclasses.replace(
            row, state="complete" if result.complete else "incomplete", run=result.run,
            model=result.model, protocol=result.protocol_hash,
        )  # fmt: skip
        return SuiteOutcome(row, result)

    def _evaluate(self, number: int, run: ReadyRun) -> Result:
        plan = run.plan
        self._hold(run)
        if run.key not in self._gates:
            config = run.entry.config
            self._gates[run.key] = check_device(config, plan.model, self._gate, self._reporter)
        plan = dataclasses.replace(
            plan, gate=self._gates[run.key], store=plan.open_store(self._written),
            loaded_for=self._largest(run.key), begun=time.monotonic(),
            when_generated=functools.partial(self._hand_over, number),
        )  # fmt: skip
        return execute(plan, self._reporter)

    def _hold(self, run: ReadyRun) -> None:
        """Keep the run's model loaded from its first use until it is released."""
        if run.key not in self._held:
            with contextlib.ExitStack() as opening:
                opening.enter_context(run.plan.model.keep_loaded())
                self._held[run.key] = opening.pop_all()

    def _release(self, key: ModelKey) -> None:
        """End the model's engine. Only for the thread that reads its answers, or when idle."""
        if (loaded := self._held.pop(key, None)) is not None:
            loaded.close()

    def _hand_over(self, number: int, capabilities: Capabilities) -> None:
        """Load the next model while the last programs of this one are judged.

        This one is ended first, so that there is memory for the next.
        """
        if self._is_needed_after(number):
            return
        self._release(self._runs[number].key)
        if later := self._runs[number + 1 :]:
            with contextlib.suppress(AssayError):  # the evaluation itself will report it
                self._preload(later[0], capabilities)

    def _is_needed_after(self, number: int) -> bool:
        """Return whether a later evaluation has the same model."""
        return any(later.key == self._runs[number].key for later in self._runs[number + 1 :])

    def _preload(self, run: ReadyRun, capabilities: Capabilities) -> None:
        """Load a model if its run, which is in the same kind of sandbox, will need it."""
        plan = dataclasses.replace(run.plan, store=run.plan.open_store(self._written))
        if plan.needs_model(find_missing(plan, capabilities)):
            self._hold(run)
            models.preload(plan.model, self._largest(run.key))

    def _largest(self, key: ModelKey) -> Decoding:
        """Return this model's decoding with the highest token limit."""
        decodings = (run.plan.decoding for run in self._runs if run.key == key)
        return max(decodings, key=lambda decoding: decoding.max_tokens)

    def _record(self) -> SuiteRecord:
        """Write and return the state of the suite."""
        names = {id(run.entry.benchmark): run.benchmark for run in reversed(self._runs)}
        named = [(names.get(id(entry), entry.name), entry) for entry in self._suite.benchmarks]
        targets = (Target(name, s, f) for name, b in named for f, s in b.targets.items())
        baselines = (
            dataclasses.replace(baseline, benchmark=name)
            for name, b in named
            for baseline in b.baselines
        )
        record = SuiteRecord(
            self._suite.name,
            datetime.now(UTC).isoformat(),
            tuple(outcome.row for outcome in self._outcomes),
            tuple(dict.fromkeys(targets)),
            tuple(dict.fromkeys(baselines)),
        )
        if self._path is not None:
            write_suite(self._path, record)
        return record


def _row(run: ReadyRun) -> SuiteRow:
    return SuiteRow(
        run.plan.model.identity.name, run.benchmark + run.plan.selected.label,
        run.entry.config.prompt_strategy, run.entry.decoding.name,
    )  # fmt: skip
