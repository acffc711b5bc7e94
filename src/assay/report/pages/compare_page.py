"""Render the page of two runs: the difference, what it shows, and the problems that changed."""

from __future__ import annotations

from typing import Any

from assay.errors import UsageError
from assay.report.comparison import METHODS, describe_decision
from assay.report.pages.figures import difference_figure
from assay.report.pages.markup import facts, link, panel, text
from assay.report.pages.section import Section, join_key
from assay.report.pages.sources import RunSource
from assay.report.pages.words import count, percent, signed
from assay.report.summary import describe_differences, describe_incomplete
from assay.runs import Comparison, Result, compare
from assay.runs.compare import tally_problems
from assay.scoring.comparison import paired_table

DECISION_CLASSES = {"better": "good", "worse": "bad", "equivalent": "equal", "undecided": "soft"}


def compare_sources(a: RunSource, b: RunSource) -> tuple[Comparison, Result, Result]:
    """Return B compared with A. Raise UsageError if one of them is not finished."""
    for run in (a, b):
        if run.entry.result is None:
            raise UsageError(f"{run.key}: is not finished. Wait for its result.")
    first, second = a.entry.result, b.entry.result
    assert first is not None
    assert second is not None
    return compare(first, second), first, second


def render_comparison(a: RunSource, b: RunSource) -> Section:
    """Return the page on which B is compared with A."""
    found, first, second = compare_sources(a, b)
    key = join_key("compare", a.key, b.key)
    decision = describe_decision(found.decision, found.margin, found.is_within_margin)
    parts = [
        f'<header class="title"><p class="eyebrow">{text(a.entry.benchmark)} · paired comparison'
        "</p>"
        f'<h1><span class="name b">{text(b.entry.model)}</span> <span class="soft">against</span> '
        f'<span class="name a">{text(a.entry.model)}</span></h1></header>',
        _warnings(found, first, second),
        '<div class="hero"><div class="score">',
        f'<p class="big"><span class="figure">{signed(found.difference)}</span>'
        '<span class="unit">points</span></p>',
        f'<p class="interval">{signed(found.interval.low)} to {signed(found.interval.high)} '
        f"<span>{100 * found.interval.level:.4g} % interval, "
        f"{text(METHODS.get(found.interval.method, found.interval.method))}</span></p>",
        f'<p class="decision {DECISION_CLASSES[found.decision]}">'
        f"{text(_sentence(decision, b))}</p>",
        f"</div>{_aside(found, a, b)}</div>",
        difference_figure(found, a.entry.model, b.entry.model),
        f'<div class="panels">{_table(found, first, second, a, b)}{_noise(found)}</div>',
        f'<div class="mount" data-mount="flips" data-a="{text(a.key)}" '
        f'data-b="{text(b.key)}"></div>',
        _lists(found),
    ]
    title = f"{b.entry.model} against {a.entry.model}"
    blocks = (key, join_key("run", a.key), join_key("run", b.key))
    return Section(key, title, "".join(parts), blocks)


def compare_block(a: RunSource, b: RunSource) -> Any:
    """Return the problems that changed, with the passes of both runs."""
    found, first, second = compare_sources(a, b)
    before, after = tally_problems(first), tally_problems(second)
    common = [task for task in before if task in after]
    return {
        "a": a.key,
        "b": b.key,
        "tasks": common,
        "passed": [[before[task].passed, after[task].passed] for task in common],
        "samples": [[before[task].n, after[task].n] for task in common],
        "gained": list(found.gained),
        "lost": list(found.lost),
    }


def _sentence(decision: str, b: RunSource) -> str:
    """Return the decision as a sentence with the model's name instead of a letter."""
    words = decision.removeprefix("B ")
    if words != decision:
        return f"{b.entry.model} {words}."
    return f"{decision[0].upper()}{decision[1:]}."


def _warnings(found: Comparison, first: Result, second: Result) -> str:
    lines = list(describe_incomplete(found, first, second))
    if differing := describe_differences(found.protocol_differences):
        lines.insert(0, f"The protocols differ, so the scores may not be comparable ({differing}).")
    items = "".join(f'<li class="mark bad">{text(line)}</li>' for line in lines)
    return f'<ul class="marks">{items}</ul>' if items else ""


def _aside(found: Comparison, a: RunSource, b: RunSource) -> str:
    smallest = found.detectable.difference
    power = f"{100 * found.detectable.power:g} % power"
    rows = [
        (f"A  {a.entry.model}", _score(a)),
        (f"B  {b.entry.model}", _score(b)),
        ("Problems", f"{found.problems:,}"),
        ("p-value", text(f"{found.p_value:.3g} ({METHODS.get(found.test.method, '')})")),
        (
            "Could show",
            text("no difference" if smallest is None else f"{100 * smallest:.1f} points, {power}"),
        ),
        ("Margin of equivalence", f"{100 * found.margin:g} points"),
    ]
    return f'<div class="aside">{facts(rows)}</div>'


def _score(run: RunSource) -> str:
    result = run.entry.result
    one = result.pass_at.get(1) if result else None
    shown = f"{percent(one.value)} %" if one else "-"
    return link(join_key("run", run.key), shown)


def _table(found: Comparison, first: Result, second: Result, a: RunSource, b: RunSource) -> str:
    """Return the 2x2 table: of problems solved by at least one sample, if there are several."""
    before, after = tally_problems(first), tally_problems(second)
    pairs = [(before[task], after[task]) for task in before if task in after]
    counts = paired_table(pairs)
    several = max(found.samples) > 1
    heads = ("passes", "fails") if not several else ("solves", "never solves")
    name_a, name_b = text(a.entry.model), text(b.entry.model)
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


def _noise(found: Comparison) -> str:
    if found.noise is None:
        return ""
    noise = found.noise
    rows = [
        ("Standard error", f"{100 * noise.total:.2f} points"),
        ("From problems", f"{100 * noise.problems:.2f} points"),
        ("From samples", f"{100 * noise.sampling:.2f} points"),
        ("With 4 times the samples", f"{100 * noise.with_samples(4):.2f} points"),
    ]
    return panel("Noise", facts(rows))


def _lists(found: Comparison) -> str:
    """Return the changed problems for readers without a script."""
    parts = [
        f"<p><strong>{name}</strong> {count(len(tasks), 'problem')}: {text(', '.join(tasks))}</p>"
        for name, tasks in (("Gained", found.gained), ("Lost", found.lost))
    ]
    return f"<noscript>{''.join(parts)}</noscript>"
