"""Render the page of a run: headline, marks, reasons, curves and the table of problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.report.pages.figures import run_figures, score_bar
from assay.report.pages.markup import (
    PageLink,
    PageSection,
    could_show,
    count,
    day,
    ends,
    facts,
    join_key,
    link,
    percent,
    text,
)
from assay.report.pages.run.blocks import index_name
from assay.report.pages.run.data import RunData
from assay.report.pages.run.scores import list_checks, render_tables, render_tiles
from assay.report.summary import describe_settings
from assay.report.text import advise_on_form, duration, label_mark
from assay.runs import Result
from assay.runs.marks import MARKS, MarkName, list_marks
from assay.runs.result import Timing
from assay.types import Estimate

MARK_CLASSES = {"defect": "bad", "property": "soft"}


def render_run(data: RunData, comparisons: Sequence[PageLink] = ()) -> PageSection:
    """Return a run's page, with links to comparisons of it.

    An unfinished run has the figures of the samples judged so far.
    """
    entry = data.source.entry
    key = join_key("run", data.source.key)
    result = entry.result
    parts = [
        '<header class="title">',
        f'<p class="eyebrow">{text(entry.benchmark)}{text(entry.selection)}'
        f" · {text(day(entry.timestamp))}</p>",
        f"<h1>{text(data.source.model)}</h1>",
        f'<p class="settings">{_settings(result)}</p>' if result else "",
        "</header>",
        _headline(result) if result else _unfinished(data),
        _comparisons(comparisons),
        _marks(result) if result else "",
        f'<div class="panels">{run_figures(data)}{render_tables(result) if result else ""}</div>',
        f'<div class="mount" data-mount="problems" data-run="{text(data.source.key)}"></div>',
        '<noscript><p class="note">The table of problems and samples needs JavaScript.</p>'
        "</noscript>",
        _protocol(data),
    ]
    title = f"{data.source.model} on {entry.benchmark}"
    return PageSection(key, title, "".join(parts), (index_name(data.source.key),))


def _comparisons(links: Sequence[PageLink]) -> str:
    if not links:
        return ""
    items = " ".join(link(one.key, one.title) for one in links)
    return f'<p class="compare-with"><span class="soft">Compare with</span> {items}</p>'


def _settings(result: Result) -> str:
    return " · ".join(text(one) for one in describe_settings(result.config, result.protocol))


def _headline(result: Result) -> str:
    one = result.pass_at.get(1)
    if one is None:
        return '<p class="empty">Nothing was judged.</p>'
    scores, timing = result.results, result.timing
    rows = [
        ("Problems", f"{scores.total:,}"),
        ("Solved", f"{scores.passed:,} of {scores.total:,}"),
        ("Samples", _samples(result)),
        ("Tokens generated", f"{timing.tokens_generated:,}" if timing.tokens_generated else ""),
        ("Tokens reused", f"{timing.reused_tokens:,}" if timing.reused_tokens else ""),
        *_times(timing),
        ("Cost", "" if timing.cost is None else f"${timing.cost:.4f}"),
    ]
    return (
        '<div class="hero"><div class="score">'
        f'<p class="big"><span class="figure">{percent(one.value)}</span>'
        '<span class="unit">%</span><span class="what">pass@1</span></p>'
        f"{score_bar(one.value, one.low, one.high)}"
        f'<p class="interval">{ends(one)} % <span>{_method(one)}</span></p>'
        f'<p class="could">{text(could_show(one.problems))}</p>'
        f'</div><div class="aside">{render_tiles(result)}{facts(rows)}</div></div>'
    )


def _times(timing: Timing) -> list[tuple[str, str]]:
    """Return wall times. Earlier versions recorded only sums of requests, which overlap."""
    judging = f"{duration(timing.judging_cpu_s)} CPU"
    if timing.whole_s is None:
        requests = duration(timing.inference_s) if timing.inference_s else ""
        return [("Sum of all requests", requests), ("Judging", judging)]
    wall = {
        "Waiting for the model": timing.loading_s, "Generating": timing.generating_s,
        "Judging": timing.judging_s, "Whole run": timing.whole_s,
    }  # fmt: skip
    found = [(name, duration(seconds)) for name, seconds in wall.items() if seconds]
    return [*found, ("CPU time of programs", judging.removesuffix(" CPU"))]


def _samples(result: Result) -> str:
    scores = result.results
    if scores.samples <= scores.total:
        return ""
    return f"{scores.samples_passed:,} of {scores.samples:,} pass"


def _method(estimate: Estimate) -> str:
    return f"{100 * estimate.level:g} % interval, {text(estimate.method)}"


def _unfinished(data: RunData) -> str:
    judged = [one for one in data.samples() if one.found.verdict]
    passed = sum(one.status == "pass" for one in judged)
    protocol = data.protocol
    total = f" of {protocol.problems * protocol.n_samples:,}" if protocol.problems else ""
    return (
        '<div class="hero"><div class="score"><p class="big"><span class="figure">'
        f'{passed:,}</span><span class="what">of {count(len(judged), "sample")} judged so far pass'
        f'</span></p><p class="could">This run is not finished: {len(judged):,}{total} samples are '
        "judged. Its score is computed at the end.</p></div></div>"
    )


def _marks(result: Result) -> str:
    shown = "".join(
        f'<li class="mark {kind}"><strong>{text(name)}</strong> {text(what)}</li>'
        for kind, name, what in list_remarks(result)
    )
    return f'<ul class="marks" aria-label="Marks">{shown}</ul>' if shown else ""


def list_remarks(result: Result) -> Iterator[tuple[str, str, str]]:
    """Yield the class, name and explanation of everything that qualifies a result.

    Defects come first, then properties, and last what has no mark.
    """
    details: dict[MarkName, list[str]] = {}
    for one in list_marks(result):
        details.setdefault(one.name, []).append(one.detail)
    for name, phrases in details.items():
        phrase = "; ".join(phrases)
        shown = f"{phrase[0].upper()}{phrase[1:]}.{_counted_as_failed(result, name)}"
        unpublished = " Not publishable." if MARKS[name].blocks else ""
        yield MARK_CLASSES[MARKS[name].kind], label_mark(name), f"{shown}{unpublished}"
    yield from _list_unmarked(result)


def _counted_as_failed(result: Result, name: MarkName) -> str:
    failed = result.results.left_out_as_failed
    one = failed.pass_at.get(1) if failed and name == "invalid" else None
    return f" Counted as failed, pass@1 is {percent(one.value)} %." if one else ""


def _list_unmarked(result: Result) -> Iterator[tuple[str, str, str]]:
    scores = result.results
    if scores.unscorable:
        tasks = ", ".join(scores.unscorable)
        yield "invalid", "unscorable", f"The reference fails here: {tasks}."
    if scores.unsupported:
        yield "invalid", "unsupported", f"The sandbox cannot run {', '.join(scores.unsupported)}."
    if advice := advise_on_form(result):
        yield "bad", "advice", advice
    if scores.truncated:
        yield "bad", "truncated", f"{count(scores.truncated, 'answer')} hit the token limit."
    if scores.errors:
        yield "bad", "errors", f"{count(scores.errors, 'request')} got no answer."
    if result.timing.reused:
        yield (
            "soft",
            "reused",
            f"{count(result.timing.reused, 'completion')} were generated earlier.",
        )
    if result.flaky:
        yield "bad", "flaky", f"{count(len(result.flaky), 'verdict')} changed when repeated."
    yield from list_checks(result)


def _protocol(data: RunData) -> str:
    """Return the protocol, the model and the environment, folded."""
    entry, protocol = data.source.entry, data.source.entry.protocol
    identity, result = entry.model_identity, entry.result
    environment = result.environment if result else None
    sandbox = environment.sandbox if environment else None
    limits = protocol.limits
    rows = [
        ("Protocol", _code(protocol.hash)),
        ("Run", _code(entry.run)),
        ("Benchmark version", text(protocol.benchmark_version or "")),
        ("Data", _code(protocol.data_sha256 or "")),
        ("Strategy", text(protocol.prompt_strategy)),
        ("Limits", text(f"{limits.cpu_s:g} s CPU, {limits.memory_mb} MB") if limits else ""),
        ("Sandbox", text(f"{sandbox.kind}, {sandbox.tier}") if sandbox else ""),
        ("Python", text(protocol.python or "")),
        ("Packages", text(protocol.environment or "")),
        ("Engine", text(identity.engine) if identity else ""),
        ("Weights", _code(identity.weights_sha256) if identity else ""),
        ("Model file", _code(identity.path) if identity else ""),
        ("Made with", text(f"assay {environment.assay}") if environment else ""),
        ("Machine", text(environment.platform) if environment else ""),
    ]
    return (
        f'<details class="protocol"><summary>Protocol and origin</summary>{facts(rows)}</details>'
    )


def _code(value: str) -> str:
    return f"<code>{text(value)}</code>" if value else ""
