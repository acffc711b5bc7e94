"""Add samples round by round, and stop when the comparison with a baseline decides."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping

from assay import runs
from assay.errors import RunError, UsageError
from assay.pipeline.config import ALL, EvalConfig, Until
from assay.pipeline.evaluate import evaluate, open_shared
from assay.pipeline.site import CheckModel
from assay.progress import Reporter
from assay.protocol import Protocol, differences
from assay.runs import Result, RunReader
from assay.runs.compare import check_margin
from assay.runs.folder import run_folders
from assay.runs.marks import ADDED_IN_ROUNDS
from assay.runs.result import SequentialResult
from assay.scoring.sequential import Look, look
from assay.types import SampleKey, Verdict

UNDECIDED = "undecided"
# In which two protocols may differ: the baseline's number of samples is its own.
FREE_FIELDS = {"n_samples"}

Verdicts = Mapping[SampleKey, Verdict]


def evaluate_until(
    config: EvalConfig, until: Until, reporter: Reporter, gate: CheckModel | None = None
) -> Result:
    """Evaluate with one more sample per problem at a time until the comparison decides.

    Sample r of every problem is compared with the baseline's sample r, so that there are at most as
    many rounds as the baseline has samples. Return the result with all looks. The same call resumes
    an interrupted evaluation.
    """
    check_margin(until.margin)
    if config.sampling.temperature == 0:
        raise UsageError(
            "--temperature 0: gives the same sample in every round of --until. Give a temperature "
            "above 0."
        )
    baseline = runs.find_result(until.against, config.results_dir)
    earlier = RunReader(runs.find_run_folder(baseline, config.results_dir))
    before, budget = earlier.verdicts, _choose_budget(config, baseline)
    config = dataclasses.replace(
        config, sampling=dataclasses.replace(config.sampling, n_samples=budget)
    )

    def admit(protocol: Protocol, key: str) -> None:
        if not until.force:
            _check_protocols(protocol, baseline)
        if not config.fresh:
            _check_run(config, key, baseline, earlier.about.key)

    looks: list[Look] = []
    with open_shared(config, reporter, gate) as shared:
        while True:
            number = len(looks)
            one = dataclasses.replace(config, rounds=number + 1)
            if number == 0:
                result = evaluate(one, reporter, shared, admit=admit)
            else:  # the run is checked, and resumed from here on
                result = evaluate(dataclasses.replace(one, fresh=False), reporter, shared)
            after = RunReader(result.folder).verdicts
            pairs, gained, lost = count_flips(before, after, number)
            if not pairs:
                raise UsageError(
                    f"{baseline.run}: has no verdict on sample {number} of these problems. Give "
                    "another --against, or a smaller --n-samples."
                )
            looks.append(look(looks[-1] if looks else None, pairs, gained, lost, until.margin))
            reporter.note(_describe(looks[-1], budget))
            if looks[-1].decision != UNDECIDED or len(looks) == budget:
                return _record(result, baseline, until, budget, looks)


def _choose_budget(config: EvalConfig, baseline: Result) -> int:
    """Return the most rounds: the baseline's samples per problem, or fewer if requested."""
    if config.prompt_strategy == ALL:
        raise UsageError(
            "--until: compares one prompt strategy with the baseline. Name it with "
            "--prompt-strategy."
        )
    samples = max((problem.n for problem in baseline.problems), default=0)
    wanted = config.sampling.n_samples
    budget = min(samples, wanted) if wanted > 1 else samples
    if budget < 2:
        raise UsageError(
            f"{baseline.run}: has one sample per problem, so there is nothing to add. Evaluate the "
            "baseline with --n-samples and a --temperature above 0."
        )
    if not baseline.protocol.origin and baseline.config.decoding.temperature == 0:
        raise UsageError(
            f"{baseline.run}: is greedy, so all its samples of a problem are the same. Evaluate "
            "the baseline with a --temperature above 0."
        )
    return budget


def _check_protocols(protocol: Protocol, baseline: Result) -> None:
    """Raise UsageError for another protocol, before anything is generated."""
    differing = differences(baseline.protocol.to_json(), protocol.to_json())
    if names := [name for name, _, _ in differing if name not in FREE_FIELDS]:
        raise UsageError(
            f"--against {baseline.run}: its protocol differs ({', '.join(names)}). Use the "
            "settings of the baseline."
        )


def _check_run(config: EvalConfig, key: str, baseline: Result, baseline_key: str) -> None:
    """Raise UsageError if the run to resume is the baseline, or has a result that would be lost."""
    if key == baseline_key:
        raise UsageError(
            f"--against {baseline.run}: has the same model and settings, so this would resume it. "
            "Give a run of another model."
        )
    newest = next((path for path, about in run_folders(config.results_dir) if about.key == key), "")
    with contextlib.suppress(RunError):  # unfinished
        result = runs.find_result(str(newest), config.results_dir) if newest else None
        if result and result.complete and ADDED_IN_ROUNDS not in result.not_publishable:
            raise UsageError(
                f"{result.run}: has all samples already. Use `assay compare {baseline.run} "
                f"{result.run}`, or --fresh to generate new ones."
            )


def count_flips(before: Verdicts, after: Verdicts, sample: int) -> tuple[int, int, int]:
    """Return the pairs of a round, and how many of them were gained and lost."""
    outcomes = [
        (before[key].status == "pass", verdict.status == "pass")
        for key, verdict in after.items()
        if key[1] == sample
        and key in before
        and "invalid" not in (verdict.status, before[key].status)
    ]
    return len(outcomes), outcomes.count((False, True)), outcomes.count((True, False))


def _describe(one: Look, budget: int) -> str:
    ends = f"[{100 * one.interval.low:+.1f}, {100 * one.interval.high:+.1f}]"
    difference = 100 * (one.gained - one.lost) / one.pairs
    return (
        f"round {one.rounds} of {budget}: {difference:+.1f} points {ends} to the baseline on "
        f"these problems, {one.decision}"
    )


def _record(
    result: Result, baseline: Result, until: Until, budget: int, looks: list[Look]
) -> Result:
    """Write the result again, with the decision at every look."""
    sequential = SequentialResult(
        baseline.run, baseline.model, until.margin, budget, looks[-1].decision, tuple(looks)
    )
    result = dataclasses.replace(result, sequential=sequential)
    runs.write_result(result)
    return result
