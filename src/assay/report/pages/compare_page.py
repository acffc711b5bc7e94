"""Render the page of two runs: the difference, what it shows, and the problems that changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.errors import UsageError
from assay.report.comparison import METHODS, describe_decision
from assay.report.figures import draw_comparison
from assay.report.pages.markup import (
    PageSection,
    count,
    explain_tags,
    facts,
    join_key,
    link,
    panel,
    percent,
    probability,
    signed,
    tag_marks,
    text,
)
from assay.report.pages.sources import RunSource
from assay.report.summary import describe_differences, describe_incomplete
from assay.runs import Comparison, Result, compare
from assay.runs.compare import tally_problems
from assay.scoring.comparison import paired_table

FOREST = 680.0  # width of the plot in pixels
DECISION_CLASSES = {"better": "good", "worse": "bad", "equivalent": "equal", "undecided": "soft"}


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Two finished runs, and B compared with A."""

    a: RunSource
    b: RunSource
    first: Result
    second: Result
    found: Comparison


def compare_runs(a: RunSource, b: RunSource) -> ComparedRuns:
    """Return B compared with A. Raise UsageError if one of them is not finished."""
    results = []
    for run in (a, b):
        if run.entry.result is None:
            raise UsageError(f"{run.key}: is not finished. Wait for its result.")
        results.append(run.entry.result)
    first, second = results
    return ComparedRuns(a, b, first, second, compare(first, second))


def render_comparison(compared: ComparedRuns) -> PageSection:
    """Return the page on which B is compared with A."""
    a, b, outcome = compared.a, compared.b, compared.found
    first, second = compared.first, compared.second
    key = join_key("compare", a.key, b.key)
    decision = describe_decision(outcome.decision, outcome.margin, outcome.is_within_margin)
    # The changed problems, for readers without a script.
    changes = "".join(
        f"<p><strong>{name}</strong> {count(len(tasks), 'problem')}: {text(', '.join(tasks))}</p>"
        for name, tasks in (("Gained", outcome.gained), ("Lost", outcome.lost))
    )
    parts = [
        f'<header class="title"><p class="eyebrow">{text(a.entry.benchmark)} · paired comparison'
        "</p>"
        f'<h1><span class="name b">{text(b.model)}</span> <span class="soft">against</span> '
        f'<span class="name a">{text(a.model)}</span></h1></header>',
        _warnings(outcome, first, second),
        '<div class="hero"><div class="score">',
        f'<p class="big"><span class="figure">{signed(outcome.difference)}</span>'
        '<span class="unit">points</span></p>',
        f'<p class="interval">{signed(outcome.interval.low)} to {signed(outcome.interval.high)} '
        f"<span>{100 * outcome.interval.level:.4g} % interval, "
        f"{text(METHODS.get(outcome.interval.method, outcome.interval.method))}</span></p>",
        f'<p class="decision {DECISION_CLASSES[outcome.decision]}">'
        f"{text(_sentence(decision, b))}</p>",
        f"</div>{_aside(outcome, a, b)}</div>",
        f'<div class="panels pair">{_table(compared)}{_explanation(compared)}</div>',
        f'<div class="mount" data-mount="flips" data-a="{text(a.key)}" '
        f'data-b="{text(b.key)}"></div>',
        f"<noscript>{changes}</noscript>",
        explain_tags((*outcome.marks_a, *outcome.marks_b)),
    ]
    title = f"{b.model} against {a.model}"
    blocks = (key, join_key("run", a.key), join_key("run", b.key))
    return PageSection(key, title, "".join(parts), blocks)


def compare_block(compared: ComparedRuns) -> Any:
    """Return the problems that changed, with the passes of both runs."""
    a, b, comparison = compared.a, compared.b, compared.found
    before, after = tally_problems(compared.first), tally_problems(compared.second)
    common = [task for task in before if task in after]
    return {
        "a": a.key,
        "b": b.key,
        "tasks": common,
        "passed": [[before[task].passed, after[task].passed] for task in common],
        "samples": [[before[task].n, after[task].n] for task in common],
        "gained": list(comparison.gained),
        "lost": list(comparison.lost),
    }


def _sentence(decision: str, b: RunSource) -> str:
    """Return the decision as a sentence with the model's name instead of a letter."""
    words = decision.removeprefix("B ")
    if words != decision:
        return f"{b.model} {words}."
    return f"{decision[0].upper()}{decision[1:]}."


def _explanation(compared: ComparedRuns) -> str:
    """Return the forest plot, and what the comparison shows in words."""
    comparison, a, b = compared.found, compared.a.model, compared.b.model
    drawing = draw_comparison(comparison, compared.first, compared.second, FOREST)
    words = "".join(f"<p>{text(one)}</p>" for one in describe(comparison, a, b))
    content = f'<div class="plot">{drawing.embed()}</div><div class="prose">{words}</div>'
    return panel("What the comparison shows", content)


def describe(comparison: Comparison, a: str, b: str) -> list[str]:
    """Return what a comparison shows, as sentences with the names of the models."""
    gained, lost = len(comparison.gained), len(comparison.lost)
    share = 100 * (gained + lost) / comparison.problems if comparison.problems else 0.0
    problems = count(gained, "problem")
    if max(comparison.samples) > 1:
        changed = f"{b} passes more samples than {a} on {problems}, and fewer on {lost:,}"
    else:
        changed = f"{b} passes {problems} that {a} fails, and fails {lost:,} that {a} passes"
    lines = [f"{changed}. In all, {share:.1f} % of the problems changed."]
    margin = f"{100 * comparison.margin:g} points"
    words = {
        "better": f"The interval excludes zero, so {b} is better on problems like these.",
        "worse": f"The interval excludes zero, so {b} is worse on problems like these.",
        "equivalent": f"All of the interval is within {margin}, so the two are equivalent.",
        "undecided": f"The interval contains zero and reaches {margin} or more: neither a "
        "difference nor equivalence is shown. More problems or samples can decide.",
    }
    lines.append(words[comparison.decision])
    if comparison.decision in ("better", "worse") and comparison.is_within_margin:
        lines.append(f"The difference is smaller than the margin of {margin}.")
    if (smallest := comparison.detectable.difference) is not None:
        lines.append(
            f"With this many changes, differences of {100 * smallest:.1f} points and more are "
            f"shown with {100 * comparison.detectable.power:g} % power."
        )
    if comparison.clusters < comparison.problems:
        lines.append(
            f"The problems derive from {comparison.clusters:,} originals, which makes the variance "
            f"{comparison.design_effect:.1f} times as large."
        )
    return lines


def _warnings(comparison: Comparison, first: Result, second: Result) -> str:
    lines = list(describe_incomplete(comparison, first, second))
    recorded = bool(first.protocol.origin and second.protocol.origin)
    wanted = [
        one for one in comparison.protocol_differences if not (recorded and one[0] == "origin")
    ]
    if differing := describe_differences(wanted):
        lines.insert(0, f"The protocols differ, so the scores may not be comparable ({differing}).")
    items = "".join(f'<li class="mark bad">{text(line)}</li>' for line in lines)
    return f'<ul class="marks">{items}</ul>' if items else ""


def _aside(comparison: Comparison, a: RunSource, b: RunSource) -> str:
    smallest = comparison.detectable.difference
    power = f"{100 * comparison.detectable.power:g} % power"
    test = METHODS.get(comparison.test.method, "random sign-flip test")
    rows = [
        (f"A  {a.model}", f"{_score(a)} {tag_marks(comparison.marks_a)}"),
        (f"B  {b.model}", f"{_score(b)} {tag_marks(comparison.marks_b)}"),
        ("Problems", f"{comparison.problems:,}"),
        ("p-value", text(f"{probability(comparison.p_value)} ({test})")),
        (
            "Could show",
            text("no difference" if smallest is None else f"{100 * smallest:.1f} points, {power}"),
        ),
        ("Margin of equivalence", f"{100 * comparison.margin:g} points"),
    ]
    if noise := comparison.noise:
        parts = f"{100 * noise.problems:.2f} from problems, {100 * noise.sampling:.2f} from samples"
        rows += [
            ("Standard error", f"{100 * noise.total:.2f} points"),
            ("of which", parts),
            ("With 4 times the samples", f"{100 * noise.with_samples(4):.2f} points"),
        ]
    return f'<div class="aside">{facts(rows)}</div>'


def _score(run: RunSource) -> str:
    result = run.entry.result
    one = result.pass_at.get(1) if result else None
    shown = f"{percent(one.value)} %" if one else "-"
    return link(join_key("run", run.key), shown)


def _table(compared: ComparedRuns) -> str:
    """Return the 2x2 table: of problems solved by at least one sample, if there are several."""
    before, after = tally_problems(compared.first), tally_problems(compared.second)
    counts = paired_table([(before[task], after[task]) for task in before if task in after])
    several = max(compared.found.samples) > 1
    heads = ("passes", "fails") if not several else ("solves", "never solves")
    name_a, name_b = text(compared.a.model), text(compared.b.model)
    content = (
        '<table class="two"><caption class="hidden">Problems by outcome of A and B</caption>'
        f'<thead><tr><td></td><th scope="col">B {heads[0]}</th><th scope="col">B {heads[1]}</th>'
        f'</tr></thead><tbody><tr><th scope="row">A {heads[0]}</th>'
        f'<td class="both">{counts.both:g}</td><td class="lost">{counts.lost:g}</td></tr>'
        f'<tr><th scope="row">A {heads[1]}</th><td class="gained">{counts.gained:g}</td>'
        f'<td class="neither">{counts.neither:g}</td></tr></tbody></table>'
        f'<p class="legend">A is {name_a}, B is {name_b}.</p>'
    )
    note = "A problem is solved if at least one of its samples passes." if several else ""
    return panel("Problems by outcome", content, note)
