"""The same programs judged by another harness, and where the two disagree."""

from __future__ import annotations

import os
from dataclasses import dataclass

from assay import benchmarks, runs, scoring
from assay.extract import UNCUT
from assay.peers import PeerVerdict, peers
from assay.pipeline import Evaluation, Observer, ScoreConfig
from assay.pipeline.extraction import extracted
from assay.types import Estimate, SampleKey, Tally, Verdict


@dataclass(frozen=True, slots=True)
class PeerScore:
    """What another harness makes of a file of completions."""

    engine: str
    benchmark: str
    verdicts: dict[SampleKey, PeerVerdict]
    estimates: tuple[Estimate, ...]
    not_generated: int  # samples that have an error in place of a program: nobody judges them


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A sample that one of the two passes and the other does not."""

    task_id: str
    sample: int
    ours: str  # status, reason and detail
    theirs: str
    explained: str = ""  # why, where it is known


def peer_score(config: ScoreConfig, engine: str, observer: Observer) -> PeerScore:
    """Judged by the peer alone; it gets the programs that we would execute."""
    judge = peers.get(engine)
    found = list(extracted(config, observer))
    programs = {one.key: one.program.code for one in found if one.error is None}
    missing = len(found) - len(programs)
    without = f"; {missing} samples have an error in place of one" if missing else ""
    observer.note(f"{engine} judges {len(programs)} programs{without}")
    verdicts = judge(config.benchmark, programs, _workers(config))
    passed: dict[str, list[bool]] = {}
    for (task_id, _), verdict in verdicts.items():
        passed.setdefault(task_id, []).append(verdict.passed)
    tallies = [Tally(task_id, len(found), sum(found)) for task_id, found in passed.items()]
    estimates = tuple(scoring.estimates(tallies))
    return PeerScore(engine, config.benchmark, verdicts, estimates, missing)


def disagreements(
    config: ScoreConfig, scored: Evaluation, peer: PeerScore, observer: Observer
) -> list[Disagreement]:
    """In the order of the run; what we could not judge is no disagreement."""
    run = runs.RecordedRun(scored.path.with_suffix(""))
    differing = {
        key: verdict
        for key, verdict in run.verdicts.items()
        if verdict.status != "invalid" and _differs(verdict, peer.verdicts[key])
    }
    refused = _refused_references(config, peer, {task_id for task_id, _ in differing}, observer)
    return [
        Disagreement(*key, _told(verdict), theirs.detail, _why(verdict, theirs, key[0] in refused))
        for key, verdict in differing.items()
        for theirs in [peer.verdicts[key]]
    ]


def _workers(config: ScoreConfig) -> int:
    return config.workers or os.cpu_count() or 1


def _refused_references(
    config: ScoreConfig, peer: PeerScore, tasks: set[str], observer: Observer
) -> set[str]:
    """Tasks whose own reference solution the peer does not accept: its tests are at fault."""
    programs = {
        (problem.task_id, 0): problem.reference
        for problem in benchmarks.load(config.benchmark).problems
        if problem.task_id in tasks
    }
    if not programs:
        return set()
    observer.note(f"{peer.engine} judges the references of {len(programs)} tasks")
    told = peers.get(peer.engine)(config.benchmark, programs, _workers(config))
    return {task_id for (task_id, _), verdict in told.items() if not verdict.passed}


def _differs(verdict: Verdict, other: PeerVerdict) -> bool:
    """By any group of tests that both have, and in all."""
    groups = {name: counts[0] == counts[1] for name, counts in verdict.groups.items()}
    ours = {name: right for name, right in groups.items() if name in other.groups}
    theirs = {name: other.groups[name] for name in ours}
    return ours != theirs or (verdict.status == "pass") != other.passed


def _why(verdict: Verdict, other: PeerVerdict, reference_is_refused: bool) -> str:
    if verdict.status == "pass" and reference_is_refused:
        return "it refuses the task's own reference solution too"
    if verdict.status == "pass" and UNCUT in verdict.rule.split("+"):
        return "the program needs its demonstration, which the rule 'demo' had cut off for them"
    if other.timed_out and verdict.reason != "timeout":
        return "their limit is of wall time: it depends on what else the machine does"
    return ""


def _told(verdict: Verdict) -> str:
    groups = ", ".join(f"{name} {right}/{all_}" for name, (right, all_) in verdict.groups.items())
    return ": ".join(filter(None, (verdict.reason, groups, verdict.detail)))
