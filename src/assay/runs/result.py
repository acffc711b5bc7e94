"""Types of a results file's content, and the samples of its run.

Each type describes its part of the file: ``documents`` reads, checks and writes it by that.
docs/results.md documents the keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from assay.data.codec import Place, unexpected
from assay.data.documents import DocumentReader, Level, Rest, describe
from assay.errors import RunError
from assay.protocol import PromptSettings, RecordedProtocol
from assay.runs.about import Environment
from assay.runs.folder import RunReader
from assay.runs.marks import MarkName, list_marks
from assay.scoring import BestOfN, Coverage, MatchScore, Tally
from assay.scoring.estimates import MeasureScore
from assay.scoring.sequential import Look
from assay.types import Completion, Decoding, Estimate, ModelIdentity, Program, Sample, Verdict

SCHEMA = 1
MOST_PROBLEMS = 100_000
RUN_NAME = re.compile(r"(?!\.)[\w.+-]{1,200}", re.ASCII)  # the name of a folder, never a path
PASS_AT = "pass_at_"
WALL = ("loading_s", "generating_s", "judging_s", "whole_s")
COUNTS = ("total", "completed", "passed", "samples", "samples_passed", "errors", "truncated")


def is_count(value: Any) -> bool:
    """Return whether this is a whole number of 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_share(value: Any) -> bool:
    """Return whether this is a number between 0 and 1."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 <= round(value, 9) <= 1


def _read_estimates(
    reader: DocumentReader, data: Any, place: Place, prefix: str = ""
) -> dict[str, Estimate]:
    """Return the scores of an object that have an interval in its ``intervals``, by name."""
    intervals = data.get("intervals", {})
    if not isinstance(intervals, dict):
        raise unexpected("intervals", intervals, (*place, "intervals"))
    estimates = {}
    for name, interval in intervals.items():
        inner = (*place, "intervals", name)
        if name.startswith(prefix) and data.get(name) is not None:
            estimates[name] = _read_estimate(reader, data[name], interval, inner)
        else:
            DocumentReader().build(Estimate, interval, inner, k=1, value=0.0)  # checks its ends
            reader.rest.unknown.append((inner, interval))
    return estimates


def _read_estimate(reader: DocumentReader, value: Any, interval: Any, place: Place) -> Estimate:
    if not is_share(value):
        raise unexpected(str(place[-1]), value, place)
    return reader.build(Estimate, interval, place, k=1, value=float(value))


def _write_estimates(estimates: dict[str, Estimate]) -> dict[str, Any]:
    values = {name: estimate.value for name, estimate in estimates.items()}
    return {**values, "intervals": estimates}


def _read_pass_at(reader: DocumentReader, data: Any, place: Place) -> dict[int, Estimate]:
    for name, value in data.items():
        if name.startswith(PASS_AT) and not (value is None or is_share(value)):
            raise unexpected(name, value, (*place, name))
    estimates = _read_estimates(reader, data, place, PASS_AT)
    by_k = {int(name.removeprefix(PASS_AT)): one for name, one in estimates.items()}
    return {k: replace(one, k=k) for k, one in by_k.items()}


# In the file, an estimate is a value, and an interval in another place.
PASS_AT_K = Level(
    _read_pass_at, lambda found: _write_estimates({f"{PASS_AT}{k}": found[k] for k in found})
)
MATCHES = Level(
    lambda reader, data, place: MatchScore(**_read_estimates(reader, data, place)),
    lambda score: _write_estimates({f.name: getattr(score, f.name) for f in fields(score)}),
)
CHOICE = Level(
    lambda reader, data, place: _read_estimate(
        reader, data.get("value"), data.get("interval"), (*place, "interval")
    ),
    lambda estimate: {"value": estimate.value, "interval": estimate},
)
ENDS = {"low": is_share, "high": is_share}
describe(skip=("k", "value"), defaults={"problems": 0}, checks=ENDS)(Estimate)
describe(whole=MATCHES)(MatchScore)
describe(levels={"estimate": CHOICE}, defaults={"without_examples": 0, "chosen": {}})(BestOfN)
describe(omit_none=True, checks={"n_samples": is_count})(RecordedProtocol)
describe(
    computed={"unscorable_problems": "complete"},
    omit={"unscorable_problems": "unscorable_problems"},
    required=("complete",),
    checks={
        "complete": lambda value: isinstance(value, bool),
        **dict.fromkeys((f.name for f in fields(Coverage)), is_count),
    },
)(Coverage)


@describe(flat=("decoding", "asking"))
@dataclass(frozen=True, slots=True)
class ConfigResult:
    """The settings of generation. In the file, all fields are on one level."""

    decoding: Decoding = field(default_factory=Decoding)
    asking: PromptSettings | None = None  # none: the version that wrote the file did not record it
    problem_selection: str = ""  # such as ``[:10]``; none: all problems
    num_samples: int = 0
    prompt_strategy: str = ""


@describe(omit={"cluster": "cluster"}, checks={"n": is_count, "passed": is_count})
@dataclass(frozen=True, slots=True)
class ProblemResult:
    """The number of a problem's judged samples that passed, and why the others did not."""

    task_id: str
    n: int
    passed: int
    reasons: dict[str, int] = field(default_factory=dict)
    cluster: str | None = None  # the original problem that it derives from; none: it is one

    @property
    def tally(self) -> Tally:
        return Tally(self.task_id, self.n, self.passed, self.cluster)


@describe(levels={"pass_at": PASS_AT_K}, defaults={"samples": 0})
@dataclass(frozen=True, slots=True)
class LeftOutResult:
    """The scores if the invalid samples, which are left out otherwise, count as failed."""

    samples: int
    pass_at: dict[int, Estimate]


@describe(levels={"pass_at": PASS_AT_K}, defaults={"tests_passed": 0.0})
@dataclass(frozen=True, slots=True)
class GroupResult:
    """The score with only the tests of this group and of the groups before it."""

    tests_passed: float
    pass_at: dict[int, Estimate]


@describe(levels={"pass_at": PASS_AT_K}, defaults={"problems": 0})
@dataclass(frozen=True, slots=True)
class BreakdownResult:
    """The score on the problems that share a label's value, such as a type of bug."""

    problems: int
    pass_at: dict[int, Estimate]


@describe(
    levels={"pass_at": PASS_AT_K},
    omit={"measures": "measures", "breakdowns": "breakdowns"},
    omit_none=True,
    absent=(None,),
    defaults=dict.fromkeys(COUNTS, 0),
    checks={"invalid": is_count, "left_out_as_failed": lambda value: isinstance(value, dict)},
)
@dataclass(frozen=True, slots=True)
class ScoreResult:
    """The scores of a run and the counts that they are computed from."""

    total: int
    completed: int
    passed: int
    samples: int
    samples_passed: int
    errors: int
    invalid: int
    truncated: int
    pass_at: dict[int, Estimate]  # in the file: ``pass_at_k`` and ``intervals``
    left_out_as_failed: LeftOutResult | None = None
    groups: dict[str, GroupResult] = field(default_factory=dict)
    best_of_n: BestOfN | None = None
    measures: dict[str, MeasureScore] = field(default_factory=dict)  # in the file only if any
    unscorable: dict[str, str] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    integrity: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    # By label and value; in the file only if the benchmark's problems have labels.
    breakdowns: dict[str, dict[str, BreakdownResult]] = field(default_factory=dict)
    infilling: MatchScore | None = None  # in the file only if the problems have gaps to fill


@describe(omit={**dict.fromkeys(WALL, "whole_s"), "reused": "reused", "reused_tokens": "reused"})
@dataclass(frozen=True, slots=True)
class Timing:
    """Tokens, cost and seconds of a run, without those of reused completions."""

    prompt_tokens: int = 0
    tokens_generated: int = 0
    cost: float | None = None
    retries: int = 0
    inference_s: float = 0.0
    judging_cpu_s: float = 0.0
    judging_wall_s: float = 0.0
    # Wall seconds of all parts of the run together; none: an earlier version did not record them.
    loading_s: float | None = None
    generating_s: float | None = None
    judging_s: float | None = None
    whole_s: float | None = None
    reused: int = 0  # completions that were generated before, for the same request
    reused_tokens: int = 0  # tokens of their texts


@dataclass(frozen=True, slots=True)
class Dependence:
    """The effect of leaving one extraction rule out."""

    rule: str
    samples: int  # whose program changes
    lost: int  # passes that become failures
    gained: int


@dataclass(frozen=True, slots=True)
class Disagreement(Sample):
    """A sample that one of two judges passes and the other does not."""

    ours: str  # status, reason and detail
    theirs: str
    explained: str = ""  # why, if known


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """The samples on which another judge disagrees."""

    engine: str
    samples: int
    disagreements: tuple[Disagreement, ...]


@dataclass(frozen=True, slots=True)
class SequentialResult:
    """The rounds in which samples were added until a comparison with a baseline decided."""

    baseline: str  # its run
    baseline_model: str
    margin: float
    budget: int  # most rounds
    decision: str  # at the last look
    looks: tuple[Look, ...]  # one after every round


@dataclass(frozen=True, slots=True)
class SampleResult:
    """One sample of a run: its completion, program and verdict."""

    completion: Completion
    program: Program | None  # none: no program was found, or the run does not store them
    verdict: Verdict | None  # none: not judged yet


@describe(
    skip=("path", "rest"),
    omit_none=True,
    computed={"not_publishable": "marks"},
    absent=(None,),
    required=("schema",),
    checks={
        "run": lambda value: isinstance(value, str) and RUN_NAME.fullmatch(value) is not None,
        "problems": lambda value: isinstance(value, list) and len(value) <= MOST_PROBLEMS,
    },
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The content of a results file. Fields that an earlier version did not write are empty."""

    schema: int = SCHEMA
    benchmark: str
    model: str
    timestamp: str
    tests_seed: str = ""
    publishable: bool = False
    not_publishable: tuple[str, ...] = ()
    coverage: Coverage | None = None
    config: ConfigResult = field(default_factory=ConfigResult)
    results: ScoreResult
    problems: tuple[ProblemResult, ...]
    protocol: RecordedProtocol
    model_identity: ModelIdentity | None = None
    environment: Environment = field(default_factory=Environment)
    continued_in: tuple[Environment, ...] = ()
    timing: Timing = field(default_factory=Timing)
    run: str
    flaky: dict[str, tuple[str, ...]] | None = None
    extraction: tuple[Dependence, ...] | None = None
    cross_check: CrossCheck | None = None
    sequential: SequentialResult | None = None  # none: the number of samples was fixed
    path: Path  # of the results file
    rest: Rest = field(default_factory=Rest, repr=False)  # what other versions write

    @property
    def pass_at(self) -> dict[int, Estimate]:
        """pass@k by k, for every k up to the number of judged samples per problem."""
        return self.results.pass_at

    @property
    def protocol_hash(self) -> str:
        return self.protocol.hash

    @property
    def complete(self) -> bool:
        """Tell whether all samples of all selected problems were judged."""
        return self.coverage is None or self.coverage.complete

    @property
    def marks(self) -> tuple[MarkName, ...]:
        """The names of the result's marks, each once, defects first."""
        return tuple(dict.fromkeys(marking.name for marking in list_marks(self)))

    @property
    def folder(self) -> Path:
        """The run's folder, next to the results file."""
        return self.path.with_suffix("")

    def samples(self) -> Iterator[SampleResult]:
        """Yield the samples of the run's folder, in the order of its file."""
        if not self.folder.is_dir():
            raise RunError(f"{self.folder}: the run's folder is missing. Restore it from a copy.")
        return read_samples(RunReader(self.folder))


def read_samples(run: RunReader) -> Iterator[SampleResult]:
    """Yield all samples of a run, whether it is finished, interrupted or in progress."""
    verdicts = run.verdicts
    programs: dict[tuple[str, int], Program] = {}
    for record in run.read_programs():
        verdict = verdicts.get(record.key)
        if verdict is None or verdict.rule == record.rule:
            programs[record.key] = Program(record.code, record.rule)
    latest = {completion.key: completion for completion in run.read_completions(errors=True)}
    for key, completion in latest.items():
        yield SampleResult(completion, programs.get(key), verdicts.get(key))
