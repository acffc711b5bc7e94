"""Judge the same programs with another harness, and list where the two disagree."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from assay import benchmarks, models, runs, scoring
from assay.data.failures import explain_failure
from assay.data.printable import quantity
from assay.errors import UsageError
from assay.extract import UNCUT
from assay.judging import judge_jobs, references, tasks_of
from assay.peers import PeerVerdict, peers
from assay.pipeline.config import ScoreConfig
from assay.pipeline.judging import environment, open_sandbox
from assay.pipeline.plan import case_groups, plan_recorded, replay
from assay.pipeline.problems import select_problems, without_prompt_code
from assay.pipeline.score import dependences, extract_programs, flaky, score
from assay.progress import Reporter
from assay.runs.result import CrossCheck, Disagreement, Result
from assay.types import Benchmark, Program, Sample, SampleKey, Verdict
from assay.work.machine import usable_cores

OURS = "assay"


@dataclass(frozen=True, slots=True)
class PeerScore:
    """The verdicts of another harness on a file of completions."""

    engine: str
    programs: Mapping[SampleKey, Program]
    verdicts: dict[SampleKey, PeerVerdict]
    errors: Mapping[SampleKey, str]  # of samples without a program, which are not judged


@dataclass(frozen=True, slots=True)
class ScoreChecks:
    """Checks to run in addition to the score, and the judge."""

    flaky_rounds: int = 0  # how often to execute everything again
    extraction: bool = False  # how many verdicts depend on each rule
    judge: str = OURS
    cross_check: bool = False  # judge with both, and list where they disagree

    def __post_init__(self) -> None:
        if self.cross_check and self.judge == OURS:
            raise UsageError("--cross-check: needs a second judge. Add --engine evalplus.")

    def select(self, result: Result) -> Result:
        """Return the result with only the checks that were requested now."""
        return replace(
            result,
            flaky=result.flaky if self.flaky_rounds else None,
            extraction=result.extraction if self.extraction else None,
            cross_check=result.cross_check if self.cross_check else None,
        )


def score_and_check(config: ScoreConfig, checks: ScoreChecks, reporter: Reporter) -> Result:
    """Judge recorded completions, run the checks, and write the results file."""
    peer = peer_score(config, checks.judge, reporter) if checks.judge != OURS else None
    if peer is not None and not checks.cross_check:
        return write_peer_score(config, peer, reporter)
    result = scored = score(config, reporter)
    if checks.flaky_rounds:
        changed = flaky(config, scored, checks.flaky_rounds, reporter)
        result = replace(result, flaky={key: tuple(seen) for key, seen in changed.items()})
    if checks.extraction:
        result = replace(result, extraction=tuple(dependences(config, scored, reporter)))
    if peer is not None:
        differing = tuple(disagreements(config, scored, peer, reporter))
        check = CrossCheck(peer.engine, len(peer.verdicts), differing)
        result = replace(result, cross_check=check)
    if result is not scored:
        runs.write_result(result)
    return result


def peer_score(config: ScoreConfig, engine: str, reporter: Reporter) -> PeerScore:
    """Judge with the peer alone. It gets the same programs that assay would execute."""
    judge = peers.get(engine)
    extracted = list(extract_programs(config, reporter))
    programs = {one.key: one.program for one in extracted if one.error is None}
    errors = {one.key: one.error for one in extracted if one.error is not None}
    without = f"; {quantity(len(errors), 'sample')} without a program" if errors else ""
    reporter.note(f"{engine} judges {quantity(len(programs), 'program')}{without}")
    codes = {key: program.code for key, program in programs.items()}
    verdicts = judge(_benchmark_name(config), codes, _workers(config), config.data_dir)
    return PeerScore(engine, programs, verdicts, errors)


def write_peer_score(config: ScoreConfig, peer: PeerScore, reporter: Reporter) -> Result:
    """Write the peer's verdicts as a new run with a results file.

    Its protocol names the peer, so that it differs from all of assay's. Limits and Python are the
    peer's too.
    """
    selected = select_problems(config, reporter)
    benchmark = selected.benchmark
    model = models.open_recorded(
        config.samples_file, partial=config.partial, name=config.model_name
    )
    plan = plan_recorded(config, selected, model, [*peer.programs, *peer.errors])
    plan = replace(plan, benchmark=benchmark)
    protocol = replace(plan.unjudged_protocol(), judge=peer.engine)
    run = runs.open_run(
        config.results_dir, protocol, model.identity,
        fresh=True, selection=selected.label, name=config.model_name,
    )  # fmt: skip
    with contextlib.closing(run):
        run.add_environment(environment(model))
        for completion in replay(model, plan.keys):
            run.add_completion(completion)
        for key, program in peer.programs.items():
            run.add_program(Sample(*key), program)
        for verdict in _peer_verdicts(peer):
            run.add_verdict(verdict)
        task_ids, verdicts = plan.task_ids, list(run.verdicts.values())
        clusters = {p.task_id: p.cluster for p in benchmark.problems if p.cluster}
        tallies = scoring.tally(task_ids, verdicts, clusters)
        result = runs.build_result(
            run, protocol, tallies,
            scoring.coverage(tallies, plan.most_samples, selected.total),
            scoring.estimates(tallies),
            scoring.group_scores(task_ids, verdicts, case_groups(benchmark), clusters),
        )  # fmt: skip
        runs.write_result(result)
        return result


def _peer_verdicts(peer: PeerScore) -> Iterator[Verdict]:
    """Yield the peer's verdicts as assay's. Programs and tests share an interpreter there."""
    for key, theirs in peer.verdicts.items():
        failed = "timeout" if theirs.timed_out else "failed"
        yield Verdict(
            *key,
            status="pass" if theirs.passed else "fail",
            reason="passed" if theirs.passed else failed,
            detail=theirs.detail,
            integrity="shared",
            rule=peer.programs[key].rule,
            groups={name: (int(passed), 1) for name, passed in theirs.groups.items()},
        )
    for key, error in peer.errors.items():
        yield Verdict(*key, status="invalid", reason="generation-error", detail=error)


def disagreements(
    config: ScoreConfig, scored: Result, peer: PeerScore, reporter: Reporter
) -> list[Disagreement]:
    """Return the disagreements in the order of the samples. Invalid samples are left out."""
    run = runs.RunReader(scored.folder)
    differing = {
        key: verdict
        for key, verdict in run.verdicts.items()
        if verdict.status != "invalid" and _differs(verdict, peer.verdicts[key])
    }
    tasks = {task_id for task_id, _ in differing}
    benchmark = benchmarks.load(_benchmark_name(config), reporter.note, config.data_dir)
    problems = tuple(p for p in benchmark.problems if p.task_id in tasks)
    benchmark = replace(benchmark, problems=problems)
    refused = _refused_references(config, peer, benchmark, reporter)
    alike = _alike_alone(config, peer, benchmark, set(differing), run.tests_seed, reporter)
    return [
        Disagreement(
            *key,
            ours=_describe_verdict(verdict),
            theirs=theirs.detail,
            explained=_why(verdict, theirs, key[0] in refused, key in alike),
        )
        for key, theirs in peer.verdicts.items()
        if (verdict := differing.get(key))
    ]


def _benchmark_name(config: ScoreConfig) -> str:
    return benchmarks.of_split(config.benchmark, config.split)


def _workers(config: ScoreConfig) -> int:
    return config.workers or usable_cores()


def _refused_references(
    config: ScoreConfig, peer: PeerScore, benchmark: Benchmark, reporter: Reporter
) -> set[str]:
    """Return the tasks whose reference solution the peer rejects, so that its tests are wrong."""
    programs = {(problem.task_id, 0): problem.reference for problem in benchmark.problems}
    if not programs:
        return set()
    reporter.note(f"{peer.engine} judges the references of {quantity(len(programs), 'task')}")
    judge = peers.get(peer.engine)
    verdicts = judge(_benchmark_name(config), programs, _workers(config), config.data_dir)
    return {task_id for (task_id, _), verdict in verdicts.items() if not verdict.passed}


def _alike_alone(
    config: ScoreConfig,
    peer: PeerScore,
    benchmark: Benchmark,
    keys: set[SampleKey],
    tests_seed: str,
    reporter: Reporter,
) -> set[SampleKey]:
    """Return the ``keys`` on which both agree if programs run without the prompt's code.

    That is how the peer runs them.
    """
    problems = [
        replace(p, tests=without_prompt_code(p.tests))
        for p in benchmark.problems
        if p.tests.prompt_code
    ]
    if not problems:
        return set()
    benchmark = replace(benchmark, problems=tuple(problems))
    with contextlib.closing(open_sandbox(config, benchmark, reporter)) as judge:
        tasks = tasks_of(references.check(benchmark, judge, reporter).benchmark)
        jobs = [
            tasks[task_id].make_job(peer.programs[task_id, sample], sample, seed=tests_seed)
            for task_id, sample in sorted(keys)
            if task_id in tasks
        ]
        verdicts = list(judge_jobs(judge, jobs))
    valid = (v for v in verdicts if v.status != "invalid")
    return {v.key for v in valid if not _differs(v, peer.verdicts[v.key])}


def _differs(verdict: Verdict, other: PeerVerdict) -> bool:
    """Return whether two verdicts differ, in total or in a group of tests that both have."""
    groups = {name: counts[0] == counts[1] for name, counts in verdict.groups.items()}
    ours = {name: right for name, right in groups.items() if name in other.groups}
    theirs = {name: other.groups[name] for name in ours}
    return ours != theirs or (verdict.status == "pass") != other.passed


def _why(
    verdict: Verdict, other: PeerVerdict, reference_is_refused: bool, is_alike_alone: bool
) -> str:
    if verdict.status == "pass" and reference_is_refused:
        return "it fails the task's own reference solution too"
    if verdict.status == "pass" and UNCUT in verdict.rule.split("+"):
        return "the program needs its demonstration, which the other judge did not get"
    if is_alike_alone:
        return "the program lacks code of the prompt; with --prompt-imports none both judges agree"
    if other.timed_out and verdict.reason != "timeout":
        return "the other judge's limit is wall time, which depends on the load of the machine"
    return ""


def _describe_verdict(verdict: Verdict) -> str:
    groups = ", ".join(f"{name} {right}/{all_}" for name, (right, all_) in verdict.groups.items())
    return ": ".join(filter(None, (verdict.reason, groups, explain_failure(verdict))))
