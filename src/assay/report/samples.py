"""Render samples of a run as text: a list, or one with everything that is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.data.failures import explain_failure
from assay.prompts import name_parts
from assay.report.inspection import InspectedRun, InspectedSample, reason_of, status_of
from assay.report.text import table

if TYPE_CHECKING:
    from assay.runs.result import SampleResult
    from assay.types import Completion, Limits, Program, Prompt, Verdict

HEADINGS = ("task", "sample", "status", "reason", "rule", "tokens", "detail")
FINISH = {"stop": "ended by itself", "length": "cut off at the token limit"}


@dataclass(frozen=True, slots=True)
class SampleSection:
    """A part of a sample's page. ``long`` texts may be shortened on a terminal."""

    title: str
    text: str
    long: bool = False


def list_samples(run: InspectedRun) -> list[str]:
    """Return a line per sample, with headings."""
    return table([HEADINGS, *(_row(found) for found in run.samples)])


def _row(found: SampleResult) -> tuple[str, ...]:
    completion, verdict = found.completion, found.verdict
    return (
        completion.task_id,
        str(completion.sample),
        status_of(found),
        reason_of(found),
        verdict.rule if verdict else "",
        str(completion.tokens_generated),
        explain_failure(verdict) if verdict else "",
    )


def describe_sample(inspected: InspectedSample) -> list[SampleSection]:
    """Return the sections of a sample: prompt, answer, program, verdict."""
    found = inspected.found
    sections = [
        *_describe_prompt(inspected.prompt, inspected.prompt_note),
        SampleSection(
            f"Answer ({_describe_answer(found.completion)})", _answer(found.completion), True
        ),
        _describe_program(found.program),
        SampleSection(
            f"Verdict: {status_of(found)}", _describe_verdict(found.verdict, inspected.limits)
        ),
    ]
    if found.verdict and found.verdict.output:
        sections.insert(-1, SampleSection("Output of the program (its end)", found.verdict.output))
    return sections


def _describe_prompt(prompt: Prompt | None, note: str) -> list[SampleSection]:
    if prompt is None:
        return [SampleSection("Prompt", note)]
    return [SampleSection(f"Prompt ({name})", text, long=True) for name, text in name_parts(prompt)]


def _describe_answer(completion: Completion) -> str:
    finish = FINISH.get(completion.finish_reason, completion.finish_reason)
    return f"{completion.tokens_generated} tokens, {finish}"


def _answer(completion: Completion) -> str:
    return completion.text if completion.error is None else f"error: {completion.error}"


def _describe_program(program: Program | None) -> SampleSection:
    if program is None:
        return SampleSection("Program", "No program is stored.")
    lines = program.code.splitlines()
    width = len(str(len(lines)))
    numbered = "\n".join(f"{number:>{width}}  {line}" for number, line in enumerate(lines, 1))
    return SampleSection(f"Program (extraction rule {program.rule})", numbered, long=True)


def _describe_verdict(verdict: Verdict | None, limits: Limits | None) -> str:
    if verdict is None:
        return "The sample has not been judged yet."
    rows = [
        ("reason", verdict.reason),
        ("test", verdict.failing_test),
        ("detail", explain_failure(verdict)),
        ("cases", _describe_groups(verdict)),
        ("used", _describe_use(verdict, limits)),
        ("tests", verdict.integrity),
    ]
    return "\n".join(f"{name:8}{text}" for name, text in rows if text)


def _describe_groups(verdict: Verdict) -> str:
    return ", ".join(f"{name} {right}/{cases}" for name, (right, cases) in verdict.groups.items())


def _describe_use(verdict: Verdict, limits: Limits | None) -> str:
    if verdict.integrity == "not-run":
        return ""
    most = limits and (f" of {limits.cpu_s:g}", f" of {limits.wall_s:g}", f" of {limits.memory_mb}")
    cpu, wall, memory = most or ("", "", "")
    return (
        f"{verdict.cpu_s:.2f}{cpu} s CPU time, {verdict.wall_s:.2f}{wall} s wall time, "
        f"{verdict.peak_mb:.0f}{memory} MB memory"
    )
