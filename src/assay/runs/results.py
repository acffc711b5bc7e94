"""Build results from a run's folder, and read and write the files next to it."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from assay.data import codec
from assay.data.codec import FieldError, unexpected
from assay.data.documents import name_place, read_document, write_document
from assay.data.printable import clean_line
from assay.data.reading import FileReader
from assay.data.writing import reporting, write_whole
from assay.errors import RunError
from assay.runs._files import DOCUMENTS
from assay.runs.checks.content import check_content
from assay.runs.marks import ADDED_IN_ROUNDS, with_publication
from assay.runs.result import (
    SCHEMA,
    WALL,
    BreakdownResult,
    ConfigResult,
    GroupResult,
    LeftOutResult,
    ProblemResult,
    Result,
    ScoreResult,
    Timing,
)
from assay.scoring import Tally, as_failed, tally
from assay.scoring import estimates as every_estimate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from assay.protocol import Protocol
    from assay.runs.folder import PartTimes, RunWriter
    from assay.scoring import BestOfN, BreakdownScore, Coverage, GroupScore, MatchScore
    from assay.types import Completion, Estimate, Sample, Verdict

TSV_HEADER = ("task_id", "n", "num_passed")
TSV_FILES = FileReader(RunError, "Give a file of lines 'task_id<TAB>n<TAB>num_passed'")
NO_PROGRAM = "none"  # the extraction rule of a text without a program
NOT_RUN = "not-run"
COUNT = re.compile(r"\s*\d{1,7}\s*")  # samples of a problem: fewer than ten million


def build_result(
    run: RunWriter,
    protocol: Protocol,
    tallies: Sequence[Tally],
    coverage: Coverage,
    estimates: Sequence[Estimate],
    groups: Sequence[GroupScore] = (),
    unscorable: Mapping[str, str] = MappingProxyType({}),
    prices: tuple[float, float] = (0.0, 0.0),
    best_of_n: BestOfN | None = None,
    breakdowns: Sequence[BreakdownScore] = (),
    rounds: int = 0,
    infilling: MatchScore | None = None,
) -> Result:
    """Return the result of a run.

    Two equal runs differ only in ``timestamp``, ``tests_seed``, ``timing``, ``environment`` and
    ``run``. ``prices`` are those of a million prompt tokens and a million generated tokens.
    ``rounds`` is the number of samples per problem that were added so far, if a comparison decides
    how many there will be. Later samples, which an earlier call may have added, are left out.
    """
    reasons: dict[str, list[str]] = {t.task_id: [] for t in tallies}
    completions = [c for c in run.completions.values() if _counts(c, reasons, rounds)]
    verdicts = [v for v in run.verdicts.values() if _counts(v, reasons, rounds)]
    for verdict in verdicts:
        reasons[verdict.task_id].append(verdict.reason)
    environment, *continued_in = run.about.environments
    result = Result(
        benchmark=protocol.benchmark,
        model=run.about.model.name,
        timestamp=run.about.created,
        tests_seed=run.tests_seed,
        not_publishable=(ADDED_IN_ROUNDS,) if rounds else (),
        coverage=coverage,
        config=ConfigResult(
            protocol.decoding, protocol.asking, run.about.selection, protocol.n_samples,
            protocol.prompt_strategy,
        ),
        results=ScoreResult(
            total=len(tallies),
            completed=coverage.judged_problems,
            passed=sum(t.passed > 0 for t in tallies),
            samples=len(verdicts),
            samples_passed=sum(t.passed for t in tallies),
            errors=sum(v.reason == "generation-error" for v in verdicts),
            invalid=sum(v.status == "invalid" for v in verdicts),
            truncated=sum(c.finish_reason == "length" for c in completions),
            pass_at=_by_k(estimates),
            left_out_as_failed=_left_out_as_failed(tallies, verdicts),
            groups={g.name: GroupResult(g.tests_passed, _by_k(g.estimates)) for g in groups},
            best_of_n=best_of_n,
            unscorable=dict(unscorable),
            unsupported={v.task_id: v.detail for v in verdicts if v.reason == "unsupported"},
            integrity=count_values(map(find_integrity, verdicts)),
            reasons=count_values(v.reason for v in verdicts),
            breakdowns=_breakdowns(breakdowns),
            infilling=infilling,
        ),
        problems=tuple(
            ProblemResult(t.task_id, t.n, t.passed, count_values(reasons[t.task_id]), t.cluster)
            for t in tallies
        ),
        protocol=protocol.to_recorded(),
        model_identity=run.about.model,
        environment=environment,
        continued_in=tuple(continued_in),
        timing=measure_times(completions, verdicts, list(run.read_parts()), prices),
        run=run.path.name,
        path=_result_path(run),
    )  # fmt: skip
    return with_publication(result, completions)


def _counts(sample: Sample, tasks: Collection[str], rounds: int) -> bool:
    return sample.task_id in tasks and (not rounds or sample.sample < rounds)


def measure_times(
    completions: Sequence[Completion],
    verdicts: Collection[Verdict],
    parts: Sequence[PartTimes],
    prices: tuple[float, float] = (0.0, 0.0),
) -> Timing:
    """Return the tokens, seconds and cost of a run."""
    reused = [c for c in completions if c.reused]
    completions = [c for c in completions if not c.reused]
    tokens_in = sum(c.prompt_tokens for c in completions)
    tokens_out = sum(c.tokens_generated for c in completions)
    cost = (tokens_in * prices[0] + tokens_out * prices[1]) / 1e6
    return Timing(
        prompt_tokens=tokens_in,
        tokens_generated=tokens_out,
        cost=round(cost, 6) if any(prices) else None,
        retries=sum(c.retries for c in completions),
        inference_s=round(sum(c.inference_ms for c in completions) / 1000, 3),
        judging_cpu_s=round(sum(v.cpu_s for v in verdicts), 3),
        judging_wall_s=round(sum(v.wall_s for v in verdicts), 3),
        **{name: round(sum(getattr(p, name) for p in parts), 3) for name in WALL if parts},
        reused=len(reused),
        reused_tokens=sum(c.tokens_generated for c in reused),
    )


def with_earlier_checks(result: Result, run: RunWriter) -> Result:
    """Return the result with the checks that the run's results file has, if there is one."""
    earlier = find_earlier_result(run)
    if earlier is None:
        return result
    return replace(
        result,
        flaky=earlier.flaky,
        extraction=earlier.extraction,
        cross_check=earlier.cross_check,
    )


def kept_selection(run: RunWriter) -> str:
    """Return the method by which the run's results file chose one of n samples, if it did."""
    earlier = find_earlier_result(run)
    best = earlier.results.best_of_n if earlier else None
    return best.method if best else ""


def _result_path(run: RunWriter) -> Path:
    return run.path.with_name(f"{run.path.name}.json")


def find_earlier_result(run: RunWriter) -> Result | None:
    """Return the run's result as it was written before, or None."""
    try:
        return read_result(_result_path(run), follow=False)
    except RunError:
        return None


def write_result(result: Result) -> None:
    """Write the results file, and the per-problem TSV next to it."""
    rows = [
        TSV_HEADER,
        *((clean_line(p.task_id), str(p.n), str(p.passed)) for p in result.problems),
    ]
    write_whole(result.path.with_suffix(".tsv"), "".join("\t".join(row) + "\n" for row in rows))
    write_whole(result.path, codec.pretty(write_document(result)))


def read_result(path: Path, *, follow: bool = True) -> Result:
    """Read a results file. Raise RunError if it is not valid, or contradicts itself."""
    content = replace(DOCUMENTS, follow=follow).read_json(path)
    if isinstance(content, dict) and content.get("schema", SCHEMA) != SCHEMA:
        raise RunError(
            f"{path}: has schema {str(content['schema'])[:20]}, not {SCHEMA}. Update assay."
        )
    try:
        result = parse_result(content, path)
    except ValueError as error:
        raise RunError(
            f"{path}: is not a results file of assay ({describe_fault(error)}). Give another file."
        ) from error
    check_content(content, result)
    return result


def parse_result(content: Any, path: Path) -> Result:
    """Parse a results file's content. Raise ValueError for a field of another type."""
    result = read_document(Result, content, path=path)
    for number, problem in enumerate(result.problems):
        if problem.passed > problem.n:
            raise unexpected("passed", problem.passed, ("problems", number, "passed"))
    return result


def describe_fault(error: ValueError) -> str:
    """Return why a document is not valid: the place of the field in it, if the error has one."""
    if isinstance(error, FieldError):
        return f"{name_place(error.place) or 'the object'} is missing or has the wrong type"
    return str(error)


def render_result(result: Result) -> Any:
    """Return the results file's content."""
    return write_document(result)


def write_evidence(folder: Path, name: str, evidence: Mapping[str, Any]) -> Path:
    """Write evidence to a new file that is named by its time, and return the path."""
    stamp = re.sub(r"\D", "", str(evidence["timestamp"]))[:14]
    path = folder / f"{name}_{stamp[:8]}-{stamp[8:]}.json"
    with reporting(path):
        folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, codec.pretty(evidence))
    return path


def read_tsv(path: Path) -> list[Tally]:
    """Return the tallies of a per-problem TSV, with or without its header."""
    tallies = []
    for number, line in enumerate(TSV_FILES.read_text(path).splitlines(), 1):
        fields = line.split("\t")
        if tuple(fields) == TSV_HEADER or not line.strip():
            continue
        if len(fields) != len(TSV_HEADER) or not all(map(COUNT.fullmatch, fields[1:])):
            raise RunError(
                f"{path} line {number}: is not 'task_id<TAB>n<TAB>num_passed'. Correct it."
            )
        tallies.append(Tally(fields[0], int(fields[1]), int(fields[2])))
    if not tallies:
        raise RunError(f"{path}: contains no problems. Choose another file.")
    return tallies


def _breakdowns(scores: Iterable[BreakdownScore]) -> dict[str, dict[str, BreakdownResult]]:
    breakdowns: dict[str, dict[str, BreakdownResult]] = {}
    for one in scores:
        result = BreakdownResult(one.problems, _by_k(one.estimates))
        breakdowns.setdefault(one.label, {})[one.value] = result
    return breakdowns


def _by_k(estimates: Iterable[Estimate]) -> dict[int, Estimate]:
    return {estimate.k: estimate for estimate in estimates}


def _left_out_as_failed(
    tallies: Sequence[Tally], verdicts: Sequence[Verdict]
) -> LeftOutResult | None:
    """Return the scores with invalid samples counted as failed, or None if there are none."""
    samples = sum(v.status == "invalid" for v in verdicts)
    if not samples:
        return None
    clusters = {t.task_id: t.cluster for t in tallies if t.cluster}
    failed = tally([t.task_id for t in tallies], as_failed(verdicts), clusters)
    scores = every_estimate(failed)
    return LeftOutResult(samples, _by_k(scores))


def find_integrity(verdict: Verdict) -> str:
    """Return where the tests ran. Earlier versions recorded that for unrun programs too."""
    if verdict.status == "invalid" or verdict.rule == NO_PROGRAM:
        return NOT_RUN
    return verdict.integrity


def count_values(reasons: Iterable[str]) -> dict[str, int]:
    """Return how often each value occurs, by value."""
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return dict(sorted(counts.items()))
