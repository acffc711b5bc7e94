"""Recompute what a results file claims from its own counts, and find the first contradiction.

A file can be edited, and a reader must not repeat a score that the file's own counts deny. Nothing
here opens another file, so that lists of thousands of results are checked too. ``run_folder``
compares a result with the verdicts of its run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from assay.data import codec
from assay.data.codec import Place
from assay.data.documents import name_place
from assay.errors import RunError
from assay.protocol import VERSION as PROTOCOL_VERSION
from assay.protocol import PromptSettings
from assay.runs.checks.claims import (
    REMEDY,
    Claim,
    count_rounds,
    is_current,
    protocol_claims,
    refuse_contradictions,
)
from assay.runs.marks import list_marks, list_obstacles
from assay.runs.result import PASS_AT, ProblemResult, Result
from assay.scoring import Tally, coverage, estimate, estimates
from assay.scoring.estimates import mean_interval
from assay.scoring.intervals import LEVEL, VERSION, wilson
from assay.scoring.pass_at_k import pass_at_k
from assay.scoring.sequential import look
from assay.types import Decoding, Estimate

# Files of earlier versions lack these; where they are None, they are not written.
ALWAYS = ("coverage", "model_identity")
METHOD = "wilson-clustered"  # of all intervals of pass@k, in version 1
# Of verdicts that are not part of a score.
INVALID_REASONS = ("generation-error", "sandbox-error", "unsupported", "unscorable")


def check_content(content: Any, result: Result) -> None:
    """Raise RunError if a results file contradicts itself. ``content`` is its JSON.

    Fields that earlier versions did not write, and that are not there, claim nothing.
    """
    try:
        refuse_missing(content, result, [problem.tally for problem in result.problems], REMEDY)
        refuse_contradictions(result.path, _claims(content, result), "its other fields give")
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise RunError(
            f"{result.path}: is not a results file of assay ({error}). Give another file."
        ) from error


def refuse_missing(content: Any, result: Result, tallies: list[Tally], remedy: str) -> None:
    """Raise RunError if a file of this version lacks what all of them have.

    A field that was deleted must not count as one that an earlier version did not write: other
    fields would then be believed without a check.
    """
    missing = next(_find_missing(content, result, tallies), "") if is_current(result) else ""
    if missing:
        raise RunError(
            f"{result.path}: {missing} is missing, and every file of version {PROTOCOL_VERSION} of "
            f"the protocol has it. {remedy}"
        )


def _find_missing(content: Any, result: Result, tallies: list[Tally]) -> Iterator[str]:
    for name in ALWAYS:
        if not content.get(name):
            yield name
    rest = result.rest
    for place, _ in rest.missing:
        yield name_place(place)
    for place, _ in rest.unknown:
        if str(place[-1]).startswith(PASS_AT):  # without the other of value and interval
            yield name_place((*place[:-1], "intervals", place[-1]))
    scores = content["results"]
    for one in estimates(tallies):
        yield from _find_score(("results",), scores, f"{PASS_AT}{one.k}")
        for name, group in (scores.get("groups") or {}).items():
            yield from _find_score(("results", "groups", name), group, f"{PASS_AT}{one.k}")
    if scores["invalid"] and not scores.get("left_out_as_failed"):
        yield "results.left_out_as_failed"
    if (best := scores.get("best_of_n")) and not best.get("chosen"):
        yield "results.best_of_n.chosen"
    for field in (*fields(Decoding), *fields(PromptSettings)):
        if field.name not in content["config"]:
            yield f"config.{field.name}"


def _find_score(place: Place, scores: Any, name: str) -> Iterator[str]:
    if scores.get(name) is None:
        yield name_place((*place, name))
    if name not in (scores.get("intervals") or {}):
        yield name_place((*place, "intervals", name))


def _claims(content: Any, result: Result) -> Iterator[Claim]:
    scores, tallies = content["results"], [problem.tally for problem in result.problems]
    ids = [tally.task_id for tally in tallies]
    yield Claim("the number of different problems", len(ids), len(set(ids)))
    yield from _protocol_claims(content, ids)
    yield from _count_claims(scores, result.problems, current=is_current(result))
    yield from _coverage_claims(content, result, tallies)
    yield from _method_claims(scores)
    yield from _score_claims("results", scores, tallies)
    yield from _left_out_claims(scores, result.problems)
    # With one sample per problem and no clusters, a value and its problems give the interval.
    plain = all(t.n <= 1 and not t.cluster for t in tallies)
    for name, group in (scores.get("groups") or {}).items():
        yield from _part_claims(f"results.groups.{name}", group, plain=plain)
    yield from _breakdown_claims(scores, len(ids), plain=plain)
    yield from _choice_claims(scores, ids)
    if infilling := scores.get("infilling"):
        for name, interval in infilling["intervals"].items():
            place, value = f"results.infilling.{name}", infilling[name]
            counted = plain and name == "exact_match"
            yield from _alone_claims(place, value, interval, plain=plain, counted=counted)
    for name, measure in (scores.get("measures") or {}).items():
        if None not in (measure.get("low"), measure.get("high")):
            yield _order_claim(f"results.measures.{name}", measure["value"], measure)
    yield from _sequential_claims(result)
    if (content.get("model_identity") or {}).get("name"):
        yield Claim("model", content["model"], content["model_identity"]["name"])
    if "not_publishable" in content:
        blocking = content["not_publishable"] or [m for m in list_marks(result) if m.mark.blocks]
        yield Claim("publishable", content.get("publishable"), not blocking)
    if "marks" in content:
        yield Claim("marks", content["marks"], result.marks)
    if is_current(result):
        yield Claim("not_publishable", content["not_publishable"], list_obstacles(result))
        for where, recorded, rewritten in result.rest.changed:
            yield Claim(name_place(where), recorded, rewritten)


def _protocol_claims(content: Any, ids: Sequence[str]) -> Iterator[Claim]:
    protocol, config = content["protocol"], content.get("config") or {}
    yield from protocol_claims(protocol)
    yield Claim("benchmark", content["benchmark"], protocol["benchmark"])
    if "problems_sha256" in protocol:
        yield Claim("protocol.problems", protocol["problems"], len(ids))
        yield Claim("protocol.problems_sha256", protocol["problems_sha256"], codec.digest(ids))
    recorded = {
        **(protocol.get("decoding") or {}),
        **(protocol.get("asking") or {}),
        "num_samples": protocol["n_samples"],
        "prompt_strategy": protocol["prompt_strategy"],
    }
    for name in config.keys() & recorded.keys():
        yield Claim(f"config.{name}", config[name], recorded[name])


def _count_claims(
    scores: Any, problems: Sequence[ProblemResult], *, current: bool
) -> Iterator[Claim]:
    judged = sum(p.n for p in problems)
    expected: dict[str, object] = {
        "total": len(problems),
        "passed": sum(p.passed > 0 for p in problems),
        "samples": judged + scores["invalid"],
        "samples_passed": sum(p.passed for p in problems),
    }
    if current or any(problem.reasons for problem in problems):
        reasons = Counter[str]()
        for problem in problems:
            reasons.update(problem.reasons)
        expected |= {
            "reasons": dict(reasons),
            "errors": reasons["generation-error"],
            "invalid": reasons.total() - judged,
        }
        known = sum(reasons[name] for name in INVALID_REASONS) == scores["invalid"]
        yield from _problem_claims(problems, known=known)
    for name, value in expected.items():
        if name in scores:
            yield Claim(f"results.{name}", scores[name], value)
    integrity = scores.get("integrity")
    if integrity or current:  # earlier versions leave invalid samples out
        total = sum(integrity.values())
        earlier = total == judged and not current
        wanted = judged if earlier else judged + scores["invalid"]
        yield Claim("the sum of results.integrity", total, wanted)
    if "truncated" in scores:
        yield _at_most("results.truncated", scores["truncated"], judged + scores["invalid"])


def _problem_claims(problems: Sequence[ProblemResult], *, known: bool) -> Iterator[Claim]:
    """Yield the problems whose counts are wrong; all of them would take a third of the time.

    An earlier version may have had other reasons, which are not ``known``.
    """
    for problem in problems:
        reasons = problem.reasons
        if problem.passed != reasons.get("passed", 0):
            place = f"problems[{problem.task_id}].passed"
            yield Claim(place, problem.passed, reasons.get("passed", 0))
        judged = sum(n for reason, n in reasons.items() if reason not in INVALID_REASONS)
        if known and problem.n != judged:
            yield Claim(f"problems[{problem.task_id}].n", problem.n, judged)


def _coverage_claims(content: Any, result: Result, tallies: Sequence[Tally]) -> Iterator[Claim]:
    recorded, counts = content.get("coverage"), result.coverage
    n_samples = result.protocol.n_samples
    if most := max(tallies, key=lambda tally: tally.n, default=None):
        yield _at_most(f"problems[{most.task_id}].n", most.n, n_samples)
    if not recorded or counts is None:
        return
    if rounds := count_rounds(result):
        yield _at_most("coverage.samples", rounds, n_samples)
        n_samples = rounds
    expected = coverage(tallies, n_samples, counts.benchmark_problems, result.results.unscorable)
    for name, value in codec.to_json(expected).items():
        if name in recorded:
            yield Claim(f"coverage.{name}", recorded[name], value)
    yield Claim("coverage.complete", recorded["complete"], counts.complete)
    yield _at_most(
        "coverage.selected_problems", counts.selected_problems, counts.benchmark_problems
    )
    if "completed" in content["results"]:
        yield Claim("results.completed", content["results"]["completed"], counts.judged_problems)


def _method_claims(scores: Any) -> Iterator[Claim]:
    """Yield how intervals were computed. Those of one file are all of the same version."""
    intervals = list(_find_intervals({**scores, "measures": None}))
    version = next((one["version"] for one in intervals if "version" in one), None)
    for interval in intervals:
        yield Claim("the version of an interval", interval.get("version"), version)
        if version is not None:  # one that is not known here cannot be recomputed
            yield Claim("the version of an interval", version, VERSION)
            yield Claim("the method of an interval", interval.get("method"), METHOD)


def _find_intervals(content: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, dict):
        if "low" in content and "high" in content:
            yield content
        for value in content.values():
            yield from _find_intervals(value)


def _score_claims(
    place: str, recorded: Mapping[str, Any], tallies: Sequence[Tally]
) -> Iterator[Claim]:
    """Yield every pass@k of counts that are known, and its interval."""
    intervals = recorded.get("intervals") or {}
    for name, value in recorded.items():
        if not name.startswith(PASS_AT):
            continue
        k = int(name.removeprefix(PASS_AT))
        recomputed = estimate(tallies, k) if k > 0 else None
        yield Claim(f"{place}.{name}", value, recomputed and recomputed.value)
        if recomputed is None or name not in intervals:
            continue
        inner = f"{place}.intervals.{name}"
        yield from _interval_claims(inner, intervals[name], recomputed, tallies)


def _interval_claims(
    place: str, interval: Mapping[str, Any], recomputed: Estimate, tallies: Sequence[Tally]
) -> Iterator[Claim]:
    if "problems" in interval:
        yield Claim(f"{place}.problems", interval["problems"], recomputed.problems)
    yield _order_claim(place, recomputed.value, interval)
    if interval.get("version") != VERSION:  # of another version of assay, with its own method
        return
    level = _level(interval)
    ends = recomputed.low, recomputed.high
    if level != LEVEL:
        enough = [t for t in tallies if t.n >= recomputed.k]
        values = [pass_at_k(t.n, t.passed, recomputed.k) for t in enough]
        ends = mean_interval(enough, values, level)
    yield from _end_claims(place, interval, ends)


def _left_out_claims(scores: Any, problems: Sequence[ProblemResult]) -> Iterator[Claim]:
    recorded = scores.get("left_out_as_failed")
    if not recorded:
        return
    yield Claim("results.left_out_as_failed.samples", recorded["samples"], scores["invalid"])
    failed = [Tally(p.task_id, sum(p.reasons.values()), p.passed, p.cluster) for p in problems]
    if any(tally.n for tally in failed):
        yield from _score_claims("results.left_out_as_failed", recorded, failed)


def _part_claims(place: str, recorded: Mapping[str, Any], *, plain: bool) -> Iterator[Claim]:
    """Yield every pass@k whose counts are not in the file, as far as it can be recomputed."""
    for name, interval in (recorded.get("intervals") or {}).items():
        inner = f"{place}.{name}"
        if name not in recorded:
            yield Claim(inner, None, "a number")
        elif recorded[name] is not None:
            yield from _alone_claims(inner, recorded[name], interval, plain=plain, counted=plain)


def _alone_claims(
    place: str, value: float, interval: Mapping[str, Any], *, plain: bool, counted: bool
) -> Iterator[Claim]:
    """Yield what a value and its number of problems say about each other and the interval."""
    yield _order_claim(place, value, interval)
    if not plain or interval.get("version") != VERSION:
        return
    count = interval["problems"]
    if counted:
        yield Claim(place, value, round(value * count) / count)
    yield from _end_claims(place, interval, wilson(value, count, _level(interval)))


def _breakdown_claims(scores: Any, total: int, *, plain: bool) -> Iterator[Claim]:
    """Yield the parts. If they cover all problems, their weighted mean is the score."""
    for label, values in (scores.get("breakdowns") or {}).items():
        place = f"results.breakdowns.{label}"
        for value, part in values.items():
            yield from _part_claims(f"{place}.{value}", part, plain=plain)
        yield _at_most(f"{place}.problems", sum(p["problems"] for p in values.values()), total)
        for name, interval in (scores.get("intervals") or {}).items():
            parts = [
                (part[name], part["intervals"][name]["problems"])
                for part in values.values()
                if part.get(name) is not None
            ]
            if name in scores and sum(n for _, n in parts) == interval.get("problems"):
                mean = math.fsum(value * n for value, n in parts) / interval["problems"]
                yield Claim(f"the mean of {place}, {name}", mean, scores[name])


def _choice_claims(scores: Any, ids: Sequence[str]) -> Iterator[Claim]:
    best = scores.get("best_of_n")
    if not best:
        return
    chosen = best.get("chosen") or {}
    if unknown := sorted(chosen.keys() - set(ids)):
        yield Claim(f"results.best_of_n.chosen[{unknown[0]}]", chosen[unknown[0]], None)
    interval = best["interval"]
    if chosen and "problems" in interval:
        yield Claim("results.best_of_n.interval.problems", interval["problems"], len(chosen))
    yield from _alone_claims("results.best_of_n", best["value"], interval, plain=True, counted=True)


def _sequential_claims(result: Result) -> Iterator[Claim]:
    rounds = result.sequential
    if rounds is None:
        return
    before = None
    for number, one in enumerate(rounds.looks):
        added = [
            getattr(one, name) - (getattr(before, name) if before else 0)
            for name in ("pairs", "gained", "lost")
        ]
        recomputed = look(before, added[0], added[1], added[2], rounds.margin, one.interval.level)
        yield Claim(f"sequential.looks[{number}]", codec.to_json(one), codec.to_json(recomputed))
        before = one
    last = rounds.looks[-1].decision if rounds.looks else None
    yield Claim("sequential.decision", rounds.decision, last)


def _level(interval: Mapping[str, Any]) -> float:
    level = float(interval.get("level", LEVEL))
    if not 0 < level < 1:
        raise ValueError(f"an interval has the level {level:g}")
    return level


def _end_claims(
    place: str, interval: Mapping[str, Any], ends: tuple[float, float]
) -> Iterator[Claim]:
    for name, end in zip(("low", "high"), ends, strict=True):
        yield Claim(f"{place}.{name}", interval[name], end)


def _order_claim(place: str, value: float, interval: Mapping[str, Any]) -> Claim:
    """Return that an interval contains its value."""
    inside = min(max(value, interval["low"]), interval["high"])
    return Claim(place, value, inside)


def _at_most(field: str, recorded: int, most: int) -> Claim:
    return Claim(field, recorded, min(recorded, most))
