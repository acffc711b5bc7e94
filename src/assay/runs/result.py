"""A result as Python sees it: the typed content of a results file, and the run's samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from assay.errors import RunError
from assay.protocol import Asking
from assay.runs.folder import RunReader
from assay.scoring import Coverage
from assay.types import Completion, Decoding, Estimate, ModelIdentity, Program, Verdict

T = TypeVar("T")
PREFIX = "pass_at_"


@dataclass(frozen=True, slots=True)
class ProblemResult:
    """How many of a problem's judged samples passed, and why the others did not."""

    task_id: str
    n: int
    passed: int
    reasons: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The score if the tests of this group and of those before it were all there are."""

    tests_passed: float
    pass_at: dict[int, Estimate]


@dataclass(frozen=True, slots=True)
class BestOfNResult:
    """The score if one of n samples per problem is chosen."""

    method: str
    n: int
    estimate: Estimate
    without_examples: int
    chosen: dict[str, int]


@dataclass(frozen=True, slots=True)
class Timing:
    """Tokens, cost and seconds of a run."""

    prompt_tokens: int = 0
    tokens_generated: int = 0
    cost: float | None = None
    retries: int = 0
    inference_s: float = 0.0
    judging_cpu_s: float = 0.0
    judging_wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SampleResult:
    """One sample of a run: what came back, the program in it, and how it was judged."""

    completion: Completion
    program: Program | None  # none: no program was found, or the run does not store them
    verdict: Verdict | None  # none: not judged yet


@dataclass(frozen=True, slots=True)
class Result:
    """The content of a results file. Fields that a file of an earlier version lacks are empty."""

    benchmark: str
    model: str
    timestamp: str
    run: str
    protocol: dict[str, Any]  # with its hash; of whatever version
    pass_at: dict[int, Estimate]
    left_out_as_failed: dict[int, Estimate]  # the scores if invalid samples count as failed
    total: int
    completed: int
    passed: int
    n_samples: int
    samples_passed: int
    errors: int
    invalid: int
    truncated: int
    problems: tuple[ProblemResult, ...]
    groups: dict[str, GroupResult]
    best_of_n: BestOfNResult | None
    unscorable: dict[str, str]
    unsupported: dict[str, str]
    integrity: dict[str, int]
    reasons: dict[str, int]
    coverage: Coverage | None
    publishable: bool
    not_publishable: tuple[str, ...]
    decoding: Decoding
    asking: Asking | None
    prompt_strategy: str
    problem_selection: str
    model_identity: ModelIdentity | None
    environment: dict[str, Any]
    continued_in: tuple[dict[str, Any], ...]
    timing: Timing
    tests_seed: str
    path: Path  # of the results file
    data: dict[str, Any] = field(repr=False)  # the file's whole content, as JSON has it

    @property
    def protocol_hash(self) -> str:
        return str(self.protocol["hash"])

    @property
    def complete(self) -> bool:
        """Tell whether all samples of all selected problems were judged."""
        return self.coverage is None or self.coverage.complete

    def samples(self) -> Iterator[SampleResult]:
        """Yield the samples of the run's folder beside the results file, in the file's order."""
        folder = self.path.with_suffix("")
        if not folder.is_dir():
            raise RunError(f"{folder}: the run's folder is missing. Restore it from a copy.")
        return read_samples(RunReader(folder))


def read_samples(run: RunReader) -> Iterator[SampleResult]:
    """Yield all samples of a run that was finished, stopped, or is being written."""
    verdicts = run.verdicts
    programs: dict[tuple[str, int], Program] = {}
    for record in run.read_programs():
        verdict = verdicts.get(record.key)
        if verdict is None or verdict.rule == record.rule:
            programs[record.key] = Program(record.code, record.rule)
    latest = {completion.key: completion for completion in run.read_completions()}
    for key, completion in latest.items():
        yield SampleResult(completion, programs.get(key), verdicts.get(key))


def parse_result(data: dict[str, Any], path: Path) -> Result:
    """Build a result from a results file's content, whose shape has been checked."""
    results, config = data["results"], data.get("config") or {}
    coverage, identity = data.get("coverage"), data.get("model_identity")
    best = results.get("best_of_n")
    return Result(
        benchmark=data["benchmark"],
        model=data["model"],
        timestamp=data["timestamp"],
        run=data["run"],
        protocol=data["protocol"],
        pass_at=_estimates(results),
        left_out_as_failed=_estimates(results.get("left_out_as_failed", {})),
        total=results.get("total", len(data["problems"])),
        completed=results.get("completed", 0),
        passed=results.get("passed", 0),
        n_samples=data["protocol"]["n_samples"],
        samples_passed=results.get("samples_passed", 0),
        errors=results.get("errors", 0),
        invalid=results["invalid"],
        truncated=results.get("truncated", 0),
        problems=tuple(_known(ProblemResult, problem) for problem in data["problems"]),
        groups={
            name: GroupResult(group.get("tests_passed", 0.0), _estimates(group))
            for name, group in (results.get("groups") or {}).items()
        },
        best_of_n=_best_of_n(best) if best else None,
        unscorable=results.get("unscorable") or {},
        unsupported=results.get("unsupported") or {},
        integrity=results.get("integrity") or {},
        reasons=results.get("reasons") or {},
        coverage=_known(Coverage, coverage) if coverage else None,
        publishable=bool(data.get("publishable")),
        not_publishable=tuple(data.get("not_publishable") or ()),
        decoding=_known(Decoding, config),
        asking=_known(Asking, config) if "chat_template" in config else None,
        prompt_strategy=data["protocol"]["prompt_strategy"],
        problem_selection=config.get("problem_selection") or "",
        model_identity=_known(ModelIdentity, identity) if identity else None,
        environment=data.get("environment") or {},
        continued_in=tuple(data.get("continued_in") or ()),
        timing=_known(Timing, data.get("timing") or {}),
        tests_seed=data.get("tests_seed", ""),
        path=path,
        data=data,
    )


def _known(kind: type[T], data: dict[str, Any]) -> T:
    """Build a dataclass of the fields that it knows; lists become tuples."""
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    found = {name: value for name, value in data.items() if name in names}
    return kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in found.items()})


def _estimates(results: dict[str, Any]) -> dict[int, Estimate]:
    found = {}
    for name, interval in (results.get("intervals") or {}).items():
        if results.get(name) is not None:
            k = int(name.removeprefix(PREFIX))
            found[k] = _estimate(k, results[name], interval)
    return found


def _estimate(k: int, value: float, interval: dict[str, Any]) -> Estimate:
    return Estimate(k=k, value=value, **{"problems": 0, **interval})


def _best_of_n(best: dict[str, Any]) -> BestOfNResult:
    return BestOfNResult(
        method=best["method"],
        n=best["n"],
        estimate=_estimate(1, best["value"], best["interval"]),
        without_examples=best.get("without_examples", 0),
        chosen=best.get("chosen") or {},
    )
