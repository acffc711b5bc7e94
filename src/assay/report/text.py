"""Format scores as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assay.data.printable import CELL_LIMIT, clean_line, quantity
from assay.runs.marks import MARKS, MarkName
from assay.runs.result import Result, ScoreResult, Timing
from assay.scoring import Coverage
from assay.scoring.intervals import Interval
from assay.types import Estimate

FORM_REASONS = ("unparsable", "no-code")
FEW = 5  # one in so many samples may be unusable; more say something about the form
LEAST_LIMIT = 2048  # tokens
LEFT_OUT_NOTE = "(in brackets: the score if invalid samples, which are left out, count as failed)"


def percent(value: float | None) -> str:
    """Return ``12.3 %``, or ``-`` if there is no value."""
    return "-" if value is None else f"{100 * value:.1f} %"


def percent_of(estimate: Estimate | None) -> str:
    """Return an estimate's value as ``12.3 %``, or ``-`` if there is none."""
    return percent(estimate.value if estimate else None)


def interval(estimate: Estimate | None) -> str:
    """Return ``[8.0, 18.1]`` in per cent, or nothing."""
    return f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]" if estimate else ""


def show_estimate(estimate: Estimate) -> str:
    """Return ``12.3 %  [8.0, 18.1]``."""
    return f"{percent_of(estimate)}  {interval(estimate)}"


def signed_interval(ends: Interval) -> str:
    """Return the interval of a difference as ``[-1.2, +3.4]`` in points."""
    return f"[{100 * ends.low:+.1f}, {100 * ends.high:+.1f}]"


def level(estimate: Estimate) -> str:
    """Return the level of an estimate's interval as ``95 %``."""
    return f"{100 * estimate.level:g} %"


def duration(seconds: float) -> str:
    """Return ``45 s``, ``12 min`` or ``3.5 h``."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def describe_times(timing: Timing) -> str:
    """Return the wall times of a run, and the tokens; nothing if it did not record its times.

    Such as ``41 s: waiting for the model 3.0 s, generating 30 s, judging 25 s (at the same time);
    tokens: 1,234 generated, 567 reused``.
    """
    if timing.whole_s is None:
        return ""
    parts = {
        "waiting for the model": timing.loading_s, "generating": timing.generating_s,
        "judging": timing.judging_s,
    }  # fmt: skip
    shown = [f"{name} {duration(seconds)}" for name, seconds in parts.items() if seconds]
    both = " (at the same time)" if timing.generating_s and timing.judging_s else ""
    counted = {"generated": timing.tokens_generated, "reused": timing.reused_tokens}
    tokens = [f"{number:,} {how}" for how, number in counted.items() if number]
    return (
        duration(timing.whole_s)
        + (f": {', '.join(shown)}{both}" if shown else "")
        + (f"; tokens: {', '.join(tokens)}" if tokens else "")
    )


def describe_left_out(results: ScoreResult, k: int) -> str:
    """Return ``; 20.0 % with the 8 left-out samples counted as failed``, or nothing."""
    if not results.invalid:
        return ""
    samples = quantity(results.invalid, "left-out sample")
    if results.left_out_as_failed is None:  # by an earlier version
        return f"; {samples}"
    shown = percent_of(results.left_out_as_failed.pass_at.get(k))
    return f"; {shown} with the {samples} counted as failed"


def benchmark_name(result: Result) -> str:
    """Return ``humaneval``, or ``humaneval[:10]`` if only some problems were selected."""
    return f"{result.benchmark}{result.config.problem_selection}"


def describe_gap(coverage: Coverage | None) -> str:
    """Return ``50 of 164 problems judged`` if a result is incomplete, or nothing."""
    if coverage is None or coverage.complete:  # none: by an earlier version
        return ""
    problems = f"{coverage.judged_problems} of {coverage.selected_problems} problems"
    if coverage.samples == coverage.selected_problems:
        return f"{problems} judged"
    samples = f"{coverage.judged_samples} of {coverage.samples} samples"
    return f"{samples} judged (all samples of {problems})"


def score(results: ScoreResult, k: int) -> str:
    """Return a score as ``100.0 % (20.0 %)``. ``LEFT_OUT_NOTE`` explains the brackets."""
    shown = percent_of(results.pass_at.get(k))
    if results.left_out_as_failed is None:
        return shown
    return f"{shown} ({percent_of(results.left_out_as_failed.pass_at.get(k))})"


def label_mark(name: MarkName) -> str:
    """Return a mark as ``no-gpu``, or ``!partial`` if it is a defect of the result."""
    return f"!{name}" if MARKS[name].kind == "defect" else name


def label_marks(names: Iterable[MarkName]) -> str:
    """Return marks as ``!partial no-gpu``."""
    return " ".join(map(label_mark, names))


def explain_marks(names: Iterable[MarkName]) -> list[str]:
    """Return a legend: a line for each mark that occurs, defects first."""
    wanted = set(names)
    return [f"{label_mark(name)}: {explain_mark(name)}" for name in MARKS if name in wanted]


def explain_mark(name: MarkName) -> str:
    """Return the meaning of a mark, and whether it keeps a result from being published."""
    mark = MARKS[name]
    return f"{mark.meaning} Not publishable." if mark.blocks else mark.meaning


def counts(numbers: Mapping[str, int]) -> str:
    """Return ``wrong-answer 80, exception 12``, the most frequent first."""
    ordered = sorted(numbers.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {number}" for name, number in ordered)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line per row with aligned columns. Lines are never wrapped, so that grep works."""
    cells = [[clean_line(cell, CELL_LIMIT) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def advise_on_form(result: Result) -> str:
    """Return a sentence if too many answers could not be used, and what to try; or nothing."""
    reasons = result.results.reasons
    total = sum(reasons.values())
    cut_off, misread = reasons.get("truncated", 0), sum(reasons.get(r, 0) for r in FORM_REASONS)
    if FEW * (cut_off + misread) <= total:
        return ""
    named = ", ".join(f"{r} {reasons[r]}" for r in (*FORM_REASONS, "truncated") if reasons.get(r))
    share = f"{100 * (cut_off + misread) / total:.0f} % of the answers cannot be used ({named})"
    if cut_off > misread:
        limit = f" of {result.config.decoding.max_tokens}" if not result.protocol.origin else ""
        problem = f"{share}: the model reached the token limit{limit}."
    else:
        problem = f"{share}: the model misunderstood the form of an answer."
    if result.protocol.origin:  # of recorded completions nothing else is known
        return problem
    if cut_off <= misread:
        return f"{problem} Try {_suggest_form(result)}."
    asking, tokens = result.config.asking, max(LEAST_LIMIT, 2 * result.config.decoding.max_tokens)
    thinks = "thinks" in result.environment.engine and asking and asking.thinking != "off"
    return f"{problem} Try --max-tokens {tokens}{', or --thinking off' if thinks else ''}."


def _suggest_form(result: Result) -> str:
    """Return the options with which the model may understand what is wanted."""
    from assay.benchmarks import benchmarks  # its plug-ins are many

    asking, identity = result.config.asking, result.model_identity
    form = asking.prompt_form if asking else ""
    if form == "infill":
        return "a model that was trained to fill in code"
    if form == "text" and identity and identity.template_sha256:
        return "--prompt-form chat, since the model has a chat template"
    known = benchmarks.names()
    description = benchmarks.describe(result.benchmark) if result.benchmark in known else None
    own = description.strategies if description else ()
    used = result.config.prompt_strategy
    others = [name for name in (*own, "standard", *(() if own else ("few-shot",))) if name != used]
    base = ", or --prompt-form text if it is a base model" if form == "chat" else ""
    return f"--prompt-strategy {others[0]}{base}"
