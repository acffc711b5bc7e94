"""Read and write results files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.data.printable import clean_line
from assay.data.writing import write_whole
from assay.errors import RunError
from assay.protocol import PromptSettings, RecordedProtocol
from assay.runs._files import DOCUMENTS
from assay.runs._rest import find_rest
from assay.runs._shapes import RESULT, wrong_field
from assay.runs.about import parse_environment, render_environment
from assay.runs.checks.claims import check_content
from assay.runs.result import (
    SCHEMA,
    BestOfNResult,
    BreakdownResult,
    ConfigResult,
    CrossCheck,
    Dependence,
    GroupResult,
    InfillingResult,
    LeftOutResult,
    ProblemResult,
    Result,
    ScoreResult,
    SequentialResult,
    Timing,
)
from assay.scoring import Coverage
from assay.types import Decoding, Estimate, ModelIdentity

PASS_AT = "pass_at_"
INTERVAL = ("low", "high", "problems", "level", "method", "version")  # of an estimate
REUSED: tuple[str, ...] = ("reused", "reused_tokens")  # of the timing
WALL = ("loading_s", "generating_s", "judging_s", "whole_s")
TSV_HEADER = ("task_id", "n", "num_passed")
CHECKS = ("flaky", "extraction", "cross_check")  # in the file if they were requested


def write_result(result: Result) -> None:
    """Write the results file, and the per-problem TSV next to it."""
    rows = [
        TSV_HEADER,
        *((clean_line(p.task_id), str(p.n), str(p.passed)) for p in result.problems),
    ]
    write_whole(result.path.with_suffix(".tsv"), "".join("\t".join(row) + "\n" for row in rows))
    write_whole(result.path, codec.pretty(render_result(result)))


def read_result(path: Path, *, follow: bool = True) -> Result:
    """Read a results file. Raise RunError if it is not valid, or contradicts itself."""
    content = dataclasses.replace(DOCUMENTS, follow=follow).read_json(path)
    if isinstance(content, dict) and content.get("schema", SCHEMA) != SCHEMA:
        raise RunError(
            f"{path}: has schema {str(content['schema'])[:20]}, not {SCHEMA}. Update assay."
        )
    if wrong := wrong_field(content, RESULT):
        raise RunError(
            f"{path}: is not a results file of assay ({wrong} is missing or has the wrong type). "
            "Give another file."
        )
    try:
        result = parse_result(content, path)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunError(
            f"{path}: is not a results file of assay ({error}). Give another file."
        ) from error
    check_content(content, result)
    return result


def parse_result(content: Any, path: Path) -> Result:
    """Parse a results file's content. Raise ValueError for a field of another type."""
    coverage, identity = content.get("coverage"), content.get("model_identity")
    flaky, rules, other = (content.get(name) for name in CHECKS)
    rounds = content.get("sequential")
    result = Result(
        benchmark=content["benchmark"],
        model=content["model"],
        timestamp=content["timestamp"],
        tests_seed=str(content.get("tests_seed", "")),
        publishable=content.get("publishable") is True,
        not_publishable=tuple(map(str, content.get("not_publishable") or ())),
        coverage=codec.read_known(Coverage, coverage) if coverage else None,
        config=_parse_config(content.get("config") or {}),
        results=_parse_scores(content["results"], len(content["problems"])),
        problems=tuple(codec.read_known(ProblemResult, one) for one in content["problems"]),
        protocol=parse_protocol(content["protocol"]),
        model_identity=parse_identity(identity) if identity else None,
        environment=parse_environment(content.get("environment") or {}),
        continued_in=tuple(map(parse_environment, content.get("continued_in") or ())),
        timing=codec.read_known(Timing, content.get("timing") or {}),
        run=content["run"],
        flaky=None if flaky is None else {key: tuple(map(str, flaky[key])) for key in flaky},
        extraction=None if rules is None else tuple(codec.read_known(Dependence, r) for r in rules),
        cross_check=None if other is None else codec.read_known(CrossCheck, other),
        sequential=None if rounds is None else codec.read_known(SequentialResult, rounds),
        path=path,
    )
    return dataclasses.replace(result, rest=find_rest(content, _render(result)))


def render_result(result: Result) -> Any:
    """Return the results file's content."""
    return result.rest.restore(_render(result))


def _render(result: Result) -> Any:
    found = {
        field.name: getattr(result, field.name)
        for field in dataclasses.fields(result)
        if field.name not in ("path", "rest")
    }
    coverage, identity = result.coverage, result.model_identity
    found |= {
        "coverage": coverage and render_coverage(coverage),
        "config": _render_config(result.config),
        "results": _render_scores(result.results),
        "problems": [_render_problem(problem) for problem in result.problems],
        "protocol": result.protocol.to_json(),
        "model_identity": codec.to_json(identity),
        "environment": render_environment(result.environment),
        "continued_in": [render_environment(one) for one in result.continued_in],
        "timing": _render_timing(result.timing),
        "cross_check": codec.to_json(result.cross_check),
        "sequential": codec.to_json(result.sequential),
    }
    if result.extraction is not None:
        found["extraction"] = [codec.to_json(rule) for rule in result.extraction]
    names = [name for name, value in found.items() if value is not None]
    names.insert(1 + names.index("not_publishable"), "marks")
    return {name: found.get(name, result.marks) for name in names}


def _render_problem(problem: ProblemResult) -> Any:
    found = codec.to_json(problem)
    return found if problem.cluster else _without(found, "cluster")


def _without(content: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != name}


def render_coverage(coverage: Coverage) -> Any:
    """Return a coverage as results files have it."""
    found = {**codec.to_json(coverage), "complete": coverage.complete}
    return found if coverage.unscorable_problems else _without(found, "unscorable_problems")


def parse_protocol(content: Any) -> RecordedProtocol:
    """Parse a protocol of any version. Raise ValueError for a field of another type."""
    return codec.read_known(RecordedProtocol, content)


def parse_identity(content: Any) -> ModelIdentity:
    """Parse a model's identity. Raise ValueError for a field of another type."""
    return codec.read_known(ModelIdentity, {"name": "", "engine": "", **content})


def _parse_config(content: Any) -> ConfigResult:
    asking = codec.read_known(PromptSettings, content) if "chat_template" in content else None
    return dataclasses.replace(
        codec.read_known(ConfigResult, {**content, "decoding": {}, "asking": None}),
        decoding=codec.read_known(Decoding, content),
        asking=asking,
    )


def _render_config(config: ConfigResult) -> Any:
    found = codec.to_json(config)
    return {**found.pop("decoding"), **(found.pop("asking") or {}), **found}


def _render_timing(timing: Timing) -> Any:
    """Return the fields. Those of reused completions and of parts are there if there are any."""
    left_out = () if timing.reused else REUSED
    left_out += () if timing.whole_s is not None else WALL
    return {k: v for k, v in codec.to_json(timing).items() if k not in left_out}


def _parse_scores(content: Any, problems: int) -> ScoreResult:
    counts = dict.fromkeys(
        ("completed", "passed", "samples", "samples_passed", "errors", "truncated"), 0
    )
    left_out, best = content.get("left_out_as_failed"), content.get("best_of_n")
    # Read below.
    nested = {"pass_at", "left_out_as_failed", "groups", "best_of_n", "breakdowns", "infilling"}
    infilling = content.get("infilling")
    given = {k: v for k, v in content.items() if v is not None and k not in nested}
    return dataclasses.replace(
        codec.read_known(ScoreResult, {"total": problems, **counts, **given, "pass_at": {}}),
        pass_at=_parse_estimates(content),
        left_out_as_failed=(
            LeftOutResult(int(left_out.get("samples", 0)), _parse_estimates(left_out))
            if left_out is not None
            else None
        ),
        groups={
            name: GroupResult(float(group.get("tests_passed", 0.0)), _parse_estimates(group))
            for name, group in (content.get("groups") or {}).items()
        },
        best_of_n=_parse_best_of_n(best) if best else None,
        breakdowns={
            label: {
                value: BreakdownResult(int(one.get("problems", 0)), _parse_estimates(one))
                for value, one in values.items()
            }
            for label, values in (content.get("breakdowns") or {}).items()
        },
        infilling=_parse_infilling(infilling) if infilling else None,
    )


def _render_scores(scores: ScoreResult) -> Any:
    found: dict[str, object] = {}
    for field in dataclasses.fields(scores):
        value = getattr(scores, field.name)
        if field.name == "pass_at":
            found |= _render_estimates(value)
        elif field.name == "left_out_as_failed" and value is not None:
            found[field.name] = {"samples": value.samples, **_render_estimates(value.pass_at)}
        elif field.name == "groups":
            found[field.name] = {
                name: {"tests_passed": group.tests_passed, **_render_estimates(group.pass_at)}
                for name, group in value.items()
            }
        elif field.name == "measures":
            measures = {name: codec.to_json(one) for name, one in value.items()}
            found |= {field.name: measures} if measures else {}
        elif field.name == "best_of_n" and value is not None:
            found[field.name] = _render_best_of_n(value)
        elif field.name == "infilling" and value is not None:
            found[field.name] = _render_infilling(value)
        elif field.name == "breakdowns":
            found |= {field.name: _render_breakdowns(value)} if value else {}
        elif value is not None:
            found[field.name] = value
    return found


def _render_breakdowns(breakdowns: dict[str, dict[str, BreakdownResult]]) -> Any:
    return {
        label: {
            value: {"problems": one.problems, **_render_estimates(one.pass_at)}
            for value, one in values.items()
        }
        for label, values in breakdowns.items()
    }


def _parse_infilling(content: Any) -> InfillingResult:
    names = [field.name for field in dataclasses.fields(InfillingResult)]
    return InfillingResult(
        *(_parse_value(1, content[name], content["intervals"][name]) for name in names)
    )


def _render_infilling(result: InfillingResult) -> Any:
    names = [field.name for field in dataclasses.fields(result)]
    found = {name: getattr(result, name) for name in names}
    return {
        **{name: estimate.value for name, estimate in found.items()},
        "intervals": {name: _render_interval(estimate) for name, estimate in found.items()},
    }


def _parse_estimates(content: Any) -> dict[int, Estimate]:
    intervals = content.get("intervals") or {}
    return {
        int(name.removeprefix(PASS_AT)): _parse_estimate(name, content[name], interval)
        for name, interval in intervals.items()
        if name.startswith(PASS_AT) and content.get(name) is not None
    }


def _parse_estimate(name: str, value: Any, interval: Any) -> Estimate:
    return _parse_value(int(name.removeprefix(PASS_AT)), value, interval)


def _parse_value(k: int, value: Any, interval: Any) -> Estimate:
    return codec.read_known(Estimate, {"problems": 0, **interval, "k": k, "value": value})


def _render_estimates(estimates: dict[int, Estimate]) -> Any:
    scores = {f"{PASS_AT}{k}": estimate.value for k, estimate in estimates.items()}
    intervals = {f"{PASS_AT}{k}": _render_interval(one) for k, one in estimates.items()}
    return {**scores, "intervals": intervals}


def _render_interval(estimate: Estimate) -> Any:
    return {name: getattr(estimate, name) for name in INTERVAL}


def _parse_best_of_n(content: Any) -> BestOfNResult:
    estimate = _parse_estimate(f"{PASS_AT}1", content["value"], content["interval"])
    known = {name: value for name, value in content.items() if name != "estimate"}
    return codec.read_known(BestOfNResult, {**known, "estimate": codec.to_json(estimate)})


def _render_best_of_n(best: BestOfNResult) -> Any:
    return {
        "method": best.method,
        "n": best.n,
        "value": best.estimate.value,
        "interval": _render_interval(best.estimate),
        "without_examples": best.without_examples,
        "chosen": best.chosen,
    }
