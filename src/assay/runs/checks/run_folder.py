"""Compare a result with its run's folder: the protocol, the model, and all verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from assay.data import codec
from assay.data.documents import write_document
from assay.errors import RunError
from assay.runs._files import DOCUMENTS, read_records
from assay.runs.about import Environment, read_about
from assay.runs.checks.claims import (
    Claim,
    count_rounds,
    is_current,
    protocol_claims,
    refuse_contradictions,
)
from assay.runs.folder import COMPLETIONS, PARTS, VERDICTS, PartTimes, RunWriter
from assay.runs.result import Result
from assay.runs.results import (
    count_values,
    find_earlier_result,
    find_integrity,
    measure_times,
    read_result,
)
from assay.scoring import estimate_of_chosen, group_scores
from assay.types import Completion, SampleKey, Verdict

RESTORE = "Restore both from a copy, or start over with --fresh."
Counts = tuple[int, int, dict[str, int]]  # judged samples of a problem, passed ones, reasons


def read_checked_result(path: Path, *, follow: bool = False, texts: bool = False) -> Result:
    """Read a results file and compare it with its run's folder, if that is there.

    Raise RunError if the two contradict each other. This reads all verdicts; ``read_result`` finds
    contradictions within the file only, which is enough for a list. ``texts``: read all
    completions too, which takes as long again.
    """
    result = read_result(path, follow=follow)
    if result.folder.is_dir():
        check_folder(result, result.folder, texts=texts)
    return result


def check_folder(
    result: Result, folder: Path, *, may_lack: bool = False, texts: bool = False
) -> None:
    """Raise RunError if a run's folder and its result contradict each other.

    What both agree on may still be edited: nothing here is signed. ``may_lack``: verdicts that are
    missing do not count as a contradiction. ``texts``: compare the completions too.
    """
    protocol = DOCUMENTS.read_json(folder / "protocol.json")
    if not isinstance(protocol, dict) or "hash" not in protocol:
        raise RunError(f"{folder / 'protocol.json'}: is not a protocol. {RESTORE}")
    refuse_contradictions(
        folder / "protocol.json", protocol_claims(protocol), "its fields give", RESTORE
    )
    same = Claim("protocol.hash", result.protocol.hash, protocol["hash"])
    refuse_contradictions(result.path, [same], f"{folder.name}/protocol.json has", RESTORE)
    refuse_contradictions(
        result.path, _about_claims(result, folder), f"{folder.name}/run.json gives", RESTORE
    )
    verdicts = _read_counted_verdicts(result, folder / VERDICTS, may_lack)
    if verdicts is not None:
        claims = _verdict_claims(result, verdicts)
        refuse_contradictions(result.path, claims, f"{folder.name}/{VERDICTS} gives", RESTORE)
        if texts and is_current(result):
            claims = _completion_claims(result, folder, verdicts)
            refuse_contradictions(result.path, claims, f"the files of {folder.name} give", RESTORE)


def check_resumed(run: RunWriter) -> None:
    """Raise RunError if a run to resume contradicts the result that it had before.

    Otherwise the command would write a new result from edited verdicts. An earlier results file
    that is damaged or contradicts itself is written again from the verdicts. Missing verdicts, such
    as a line that was damaged and removed, are judged again.
    """
    earlier = find_earlier_result(run)
    if earlier is not None:
        check_folder(earlier, run.path, may_lack=True)


def _about_claims(result: Result, folder: Path) -> Iterator[Claim]:
    about = read_about(folder)
    yield Claim("timestamp", result.timestamp, about.created)
    if (model := result.model_identity) is not None:
        same = about.model
        if model.path != same.path:  # it has moved, and its name with it
            same = replace(same, name=model.name, path=model.path)
        yield Claim("model_identity", codec.to_json(model), codec.to_json(same))
    if result.tests_seed or is_current(result):
        yield Claim("tests_seed", result.tests_seed, about.tests_seed)
    if result.coverage is not None:
        yield Claim("config.problem_selection", result.config.problem_selection, about.selection)
    recorded = [result.environment, *result.continued_in]
    if any(one != Environment() for one in recorded):
        environments = about.environments[: len(recorded)]  # a run that was resumed since has more
        yield Claim("environment", write_document(recorded), write_document(environments))


def _read_counted_verdicts(
    result: Result, path: Path, may_lack: bool
) -> dict[SampleKey, Verdict] | None:
    """Return the verdicts that a result counts, or None if the run was resumed since.

    Only a sample that could not be judged is judged again. A run that was resumed and not finished
    has later verdicts on such samples, which its results file does not know: the file then agrees
    with an earlier state of the verdicts. Raise RunError if it agrees with none.
    """
    wanted = {p.task_id: (p.n, p.passed, p.reasons) for p in result.problems}
    rounds = count_rounds(result)
    counts: dict[str, Counts] = {t: (0, 0, {}) for t in wanted}
    differing = {t for t, (n, _, reasons) in wanted.items() if n or reasons}
    verdicts: dict[SampleKey, Verdict] = {}
    agreed = not differing
    for number, verdict in enumerate(read_records(path, Verdict), 1):
        if rounds and verdict.sample >= rounds:
            continue
        before, task = verdicts.get(verdict.key), verdict.task_id
        if task not in wanted:
            raise RunError(
                f"{path} line {number}: is a verdict on {task}, which is not a problem of "
                f"{result.path.name}. {RESTORE}"
            )
        if verdict.sample >= result.protocol.n_samples:
            raise RunError(
                f"{path} line {number}: is a verdict on {task}, sample {verdict.sample}, but "
                f"{result.path.name} has {result.protocol.n_samples} per problem. {RESTORE}"
            )
        if before is not None and before.status != "invalid":
            raise RunError(
                f"{path} line {number}: is a second verdict on {task}, sample {verdict.sample}. "
                f"{RESTORE}"
            )
        if (verdict.status == "pass") != (verdict.reason == "passed"):
            raise RunError(
                f"{path} line {number}: has the status {verdict.status} and the reason "
                f"{verdict.reason}. {RESTORE}"
            )
        if before is None:
            agreed = False  # a sample that the result would have to count
        verdicts[verdict.key] = verdict
        counts[task] = _count_verdict(counts[task], before, verdict)
        if _agrees(counts[task], wanted[task]):
            differing.discard(task)
        else:
            differing.add(task)
        agreed = agreed or not differing
    if not differing:
        return verdicts
    if agreed or (may_lack and all(_is_part(counts[task], wanted[task]) for task in differing)):
        return None
    task = next(task for task in wanted if task in differing)
    names = ("n", "passed", "reasons")
    pairs = zip(names, wanted[task], counts[task], strict=True)
    claims = (Claim(f"problems[{task}].{name}", *pair) for name, *pair in pairs)
    refuse_contradictions(result.path, claims, f"{path.parent.name}/{path.name} gives", RESTORE)
    return None


def _is_part(counts: Counts, whole: Counts) -> bool:
    """Return whether counts only lack verdicts that the whole ones have."""
    reasons = all(number <= whole[2].get(name, 0) for name, number in counts[2].items())
    return counts[0] <= whole[0] and counts[1] <= whole[1] and reasons


def _count_verdict(counts: Counts, before: Verdict | None, verdict: Verdict) -> Counts:
    """Return a problem's counts with one more verdict, perhaps instead of an invalid one."""
    n, passed, reasons = counts[0], counts[1], dict(counts[2])
    if before is not None:
        reasons[before.reason] -= 1
    reasons[verdict.reason] = reasons.get(verdict.reason, 0) + 1
    reasons = {reason: count for reason, count in reasons.items() if count}
    return n + (verdict.status != "invalid"), passed + (verdict.status == "pass"), reasons


def _agrees(counts: Counts, wanted: Counts) -> bool:
    """Return whether counts are those of a results file. The first version had no reasons."""
    return counts[:2] == wanted[:2] and (not wanted[2] or counts[2] == wanted[2])


def _verdict_claims(result: Result, verdicts: Mapping[SampleKey, Verdict]) -> Iterator[Claim]:
    """Yield what follows from verdicts and not from the counts of problems."""
    scores, every = result.results, list(verdicts.values())
    valid = [v for v in every if v.status != "invalid"]
    if scores.integrity:
        earlier = count_values(v.integrity for v in valid)  # how earlier versions counted
        if scores.integrity != earlier:
            yield Claim(
                "results.integrity", scores.integrity, count_values(map(find_integrity, every))
            )
    tasks = {v.task_id: v.detail for v in every if v.reason == "unsupported"}
    yield Claim("results.unsupported", scores.unsupported, tasks)
    clusters = {p.task_id: p.cluster for p in result.problems if p.cluster}
    ids = [p.task_id for p in result.problems]
    # If problems have tests of several kinds, no group is counted, though some verdicts have one.
    names = (result.protocol.tests or "").split("+")
    wanted = names if len(names) > 1 else scores.groups
    yield Claim("results.groups", sorted(scores.groups), sorted(wanted))
    for group in group_scores(ids, every, list(scores.groups), clusters):
        recorded, place = scores.groups[group.name], f"results.groups.{group.name}"
        yield Claim(f"{place}.tests_passed", recorded.tests_passed, group.tests_passed)
        for k, one in recorded.pass_at.items():
            recomputed = next((e for e in group.estimates if e.k == k), None)
            yield Claim(f"{place}.pass_at_{k}", one.value, recomputed and recomputed.value)
            if recomputed and (one.level, one.version) == (recomputed.level, recomputed.version):
                yield Claim(f"{place}.intervals.pass_at_{k}", one.interval, recomputed.interval)
    if (best := scores.best_of_n) and best.chosen:
        missing = next((t for t, s in best.chosen.items() if (t, s) not in verdicts), None)
        yield Claim("results.best_of_n.chosen", missing, None)
        chosen = estimate_of_chosen(best.chosen, verdicts)
        yield Claim("results.best_of_n.value", best.estimate.value, chosen and chosen.value)


def _completion_claims(
    result: Result, folder: Path, verdicts: Mapping[SampleKey, Verdict]
) -> Iterator[Claim]:
    """Yield what follows from completions and times: counts of tokens, seconds, cut-off texts."""
    completions = {c.key: c for c in read_records(folder / COMPLETIONS, Completion)}
    tasks = {p.task_id for p in result.problems}
    known = [key for key in completions if key[0] in tasks and key[1] < result.protocol.n_samples]
    yield Claim("the number of completions", len(known), len(completions))
    yield Claim("the number of samples", len(verdicts), len(verdicts.keys() & completions.keys()))
    counted = [c for key, c in completions.items() if key in verdicts and c.error is None]
    yield Claim(
        "results.truncated", result.results.truncated,
        sum(c.finish_reason == "length" for c in counted),
    )  # fmt: skip
    path = folder / PARTS
    parts = list(read_records(path, PartTimes)) if path.exists() else []
    if result.timing.whole_s is None:
        yield Claim("timing.whole_s", None, parts[0].whole_s if parts else None)
    # A run that was resumed since has more parts.
    sums = [measure_times(counted, verdicts.values(), parts[:n]) for n in range(len(parts) + 1)]
    best = next((s for s in reversed(sums) if s.whole_s == result.timing.whole_s), sums[-1])
    recorded, recomputed = codec.to_json(result.timing), codec.to_json(best)
    for name in recorded.keys() - {"cost"}:
        yield Claim(f"timing.{name}", recorded[name], recomputed[name])
