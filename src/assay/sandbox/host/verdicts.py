"""Turn what a fork server and its oracle saw into a verdict."""

from __future__ import annotations

from assay.data import codec
from assay.sandbox.host.report import BrokeWorker, Outcome, SandboxFailure, WorkerReport
from assay.sandbox.inside.judging.messages import Result
from assay.sandbox.inside.serving.messages import explain_exit, explain_limit, with_last_line
from assay.types import Cases, Job, Limits, Status, Verdict

# Results that are not a failure of the program, and the verdicts' reasons for them.
INVALID = {"unfit": "sandbox-error", "unsupported": "unsupported"}


def verdict_of(job: Job, outcome: Outcome) -> Verdict:
    """Return the verdict on a program from the outcome of its run."""
    if isinstance(outcome, SandboxFailure):
        return invalid(job, "sandbox-error", outcome.why)
    if isinstance(outcome, BrokeWorker):
        return Verdict(
            job.task_id, job.sample, "fail", outcome.reason, outcome.how,
            integrity=job.tests.integrity, rule=job.program.rule,
        )  # fmt: skip
    report, result = outcome, outcome.oracle_result or outcome.result
    if result and result.status == "ended" and report.result:
        result = report.result  # it ended before it had started, and said why
    result = result or Result("ended")
    if result.status in INVALID:
        return invalid(job, INVALID[result.status], result.detail)
    status: Status = "pass" if result.status == "pass" else "fail"
    if result.status == "ended" or (report.out_of_memory and status == "fail"):
        reason, detail = _explain_end(report, job.limits)
        result = Result(
            result.status, reason, detail, result.failing_test, result.groups,
            call=result.call, input=result.input,
        )  # fmt: skip
    return Verdict(
        task_id=job.task_id,
        sample=job.sample,
        status=status,
        reason=result.reason,
        detail=result.detail,
        failing_test=result.failing_test,
        cpu_s=report.cpu_s,
        wall_s=report.wall_s,
        peak_mb=report.peak_mb,
        integrity=job.tests.integrity,
        rule=job.program.rule,
        groups={name: (right, cases) for name, right, cases in result.groups},
        output="" if status == "pass" else report.output_tail,
        call=result.call,
        expected=result.expected,
        actual=result.actual,
        difference=result.difference,
        input=result.input,
    )


def invalid(job: Job, reason: str, detail: str) -> Verdict:
    """Return an invalid verdict, for what is not a failure of the program."""
    return Verdict(job.task_id, job.sample, "invalid", reason, detail, rule=job.program.rule)


def with_outputs(cases: Cases | None, result: Result | None) -> Cases | None:
    """Return the cases with what the program returned for them, if it did."""
    if cases is None or result is None or result.outputs is None:
        return None
    digest = codec.digest([cases.digest, result.outputs])
    return Cases(cases.inputs, result.outputs, digest, result.slowest_s)


def _explain_end(report: WorkerReport, limits: Limits) -> tuple[str, str]:
    """Return the reason and detail for a program that ended before its tests did."""
    output = report.output_tail
    if explained := explain_limit("memory" if report.out_of_memory else report.stopped, limits):
        reason, detail = explained
        return reason, with_last_line(detail, output)
    if report.stopped == "answered":
        return "exit", with_last_line("stopped answering before its tests were done", output)
    return explain_exit(report.exit_code, output, " before its tests were done")
