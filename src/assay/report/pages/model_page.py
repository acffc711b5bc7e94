"""Render the pages of measurements: perplexity, bench, parity, check and qa."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from assay.data import codec
from assay.report.pages import sources
from assay.report.pages.figures import bench_figure, parity_figure
from assay.report.pages.markup import (
    PageSection,
    count,
    day,
    facts,
    join_key,
    panel,
    table,
    text,
    tiles,
)
from assay.report.text import duration
from assay.runs.stores.bench_files import BenchFile, Spread
from assay.types import ModelIdentity

LONGEST_FIGURES = 20_000  # characters
DECISIONS = {"GO": "good", "NO-GO": "bad", "pass": "good", "fail": "bad", "sound": "good",
             "not sound": "bad"}  # fmt: skip
# What a measurement says about its machine, by key of the file, and the unit.
MACHINE = {
    "cpu": ("CPU", ""),
    "cpus": ("CPUs", ""),
    "memory_mb": ("Machine's memory", " MB"),
    "platform": ("Platform", ""),
    "python": ("Python", ""),
    "assay": ("assay", ""),
}


def render_measurement(measurement: sources.Measurement) -> PageSection:
    """Return the page of a measurement."""
    body = RENDERERS[measurement.kind](measurement.document)
    html = (
        f'<header class="title"><p class="eyebrow">{text(sources.TITLES[measurement.kind])}</p>'
        f"<h1>{text(measurement.name)}</h1></header>{body}"
        f'<p class="note">From {text(measurement.path.name)}.</p>'
    )
    return PageSection(join_key("model", measurement.key), measurement.title, html)


def summarize_measurement(measurement: sources.Measurement) -> str:
    """Return the main figure or the decision of a measurement as HTML, for a table."""
    match measurement.document:
        case sources.PerplexityDocument(results=figures):
            return f"{figures.perplexity:.3f}"
        case BenchFile() as bench:
            rate = bench.highest_rate
            return "" if rate is None else f"{_number(rate)} tokens/s"
        case sources.CheckDocument(sound=sound):
            return _verdict("sound" if sound else "not sound")
        case sources.ParityDocument(decision=decision) | sources.QaDocument(decision=decision):
            return _verdict(decision)


def _hero(headline: str, sentence: str, shown: str, rows: Iterable[tuple[str, str]]) -> str:
    about = facts(rows)
    below = f'<p class="could">{text(sentence)}</p>' if sentence else ""
    aside = f'<div class="aside">{about}</div>' if about else ""
    return f'<div class="hero"><div class="score">{headline}{below}{shown}</div>{aside}</div>'


def _big(figure: str, what: str) -> str:
    return (
        f'<p class="big"><span class="figure">{figure}</span><span class="what">{what}</span></p>'
    )


def _perplexity(document: sources.PerplexityDocument) -> str:
    figures = document.results
    headline = _big(f"{figures.perplexity:.3f}", "perplexity")
    sentence = "The text is too short for an interval."
    if figures.low is not None and figures.high is not None:
        headline += (
            f'<p class="interval">{figures.low:.3f} to {figures.high:.3f} '
            "<span>95 % interval</span></p>"
        )
        sentence = ""
    shown = tiles(
        [
            ("bits per byte", f"{figures.bits_per_byte:.4f}", ""),
            ("cross entropy", f"{figures.cross_entropy:.4f}", "nats per token"),
        ]
    )
    rows = [
        ("Text", text(document.dataset.name)),
        ("Tokens", f"{figures.tokens:,}"),
        ("Bytes", f"{figures.bytes:,}"),
        ("Window", f"{figures.window:,}, stride {figures.stride:,}"),
        ("Device", "GPU" if document.used_gpu else "CPU"),
        ("Took", duration(document.seconds) if document.seconds else ""),
    ]
    return _hero(headline, sentence, shown, rows) + _identity(document.model)


def _bench(bench: BenchFile) -> str:
    figures, rate = bench.figures, bench.highest_rate
    headline = "" if rate is None else _big(_number(rate), "tokens per second")
    memory = bench.gpu_peak_memory_mb or bench.peak_memory_mb
    shown = tiles(
        [
            ("first token", *_tile_of(figures.time_to_first_token_ms, "ms")),
            ("reading the prompt", *_tile_of(figures.prefill_tokens_per_second, "tokens/s")),
            ("one sequence, decoding", *_tile_of(figures.decode_tokens_per_second, "tokens/s")),
            ("memory", f"{memory:,.0f} MB" if memory else "", ""),
        ]
    )
    rows = [
        ("Load", duration(bench.load_s) if bench.load_s else ""),
        ("Device", "GPU" if bench.used_gpu else "CPU"),
        ("Measured", text(day(bench.timestamp))),
        *(
            (name, text(f"{value:,}{unit}" if isinstance(value, int) else f"{value}{unit}"))
            for key, (name, unit) in MACHINE.items()
            if isinstance(value := bench.machine.get(key), str | int | float)
            if value and len(str(value)) < 80
        ),
    ]
    batches = [
        (
            str(b.sequences),
            *(
                f"{getattr(b.tokens_per_second, n):,.1f}" if b.tokens_per_second else ""
                for n in ("median", "min", "max")
            ),
            f"{b.seconds.median:.2f}",
        )
        for b in figures.batches
    ]
    headings = ("Sequences", "Tokens/s", "Lowest", "Highest", "Seconds")
    return (
        f"{_hero(headline, _load(bench), shown, rows)}"
        f'<div class="panels">{bench_figure(bench)}'
        f"{panel('Batches', table('Table of batches', headings, batches, left=0))}</div>"
        f"{_identity(bench.model_identity)}"
    )


def _load(bench: BenchFile) -> str:
    """Return a sentence about what the engine had to do when it was fastest."""
    batches = [(b.sequences, b.tokens_per_second) for b in bench.figures.batches]
    rates = {sequences: spread.median for sequences, spread in batches if spread}
    sizes = [bench.settings.get(name) for name in ("prompt_tokens", "new_tokens")]
    if not rates:
        return ""
    each = ""
    if all(isinstance(size, int) for size in sizes):
        each = f", each with a prompt of {sizes[0]:,} tokens and up to {sizes[1]:,} new ones"
    return f"With {count(max(rates, key=rates.__getitem__), 'sequence')} at once{each}."


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def _tile_of(spread: Spread | None, unit: str) -> tuple[str, str]:
    if spread is None:
        return "", ""
    ends = f"{_number(spread.min)} to {_number(spread.max)}"
    return f"{_number(spread.median)} {unit}", ends


def _parity(parity: sources.ParityDocument) -> str:
    alike = parity.agreement
    shown = tiles(
        [
            ("same top token", f"{100 * alike.top1_agreement:.2f} %", ""),
            ("mean KL", f"{alike.kl_mean:.3g}", "nats per token"),
            ("mean cosine", f"{alike.cosine_mean:.5f}", "of logits"),
            ("perplexity", f"{100 * parity.perplexity_gap:+.2f} %", "against the reference"),
        ]
    )
    rows = [
        ("Reference", text(f"{parity.reference.name} ({parity.reference.engine})")),
        ("Largest KL", f"{alike.kl_max:.3g} nats"),
        ("Least cosine", f"{alike.cosine_min:.5f}"),
        ("Same greedy texts", f"{parity.divergence.same} of {parity.divergence.of}"),
        ("Perplexity", f"{parity.candidate_perplexity:.4f}"),
        ("Perplexity of the reference", f"{parity.reference_perplexity:.4f}"),
        ("Positions", f"{alike.positions:,} in {count(parity.prompts, 'prompt')}"),
    ]
    findings = [
        (text(one.name), f"{one.value:.5g}", f"{one.bound:g}", _verdict(one.decision))
        for one in parity.findings
    ]
    headings = ("Question", "Value", "Bound", "Decision")
    met = _met([one.decision for one in parity.findings], "threshold", "is met", "are met")
    sentence = f"{met}. Precision of the weights: {parity.precision}."
    return (
        f"{_hero(_decision(parity.decision), sentence, shown, rows)}"
        f'<div class="panels">{parity_figure(parity)}'
        f"{panel('Findings', table('Table of findings', headings, findings))}</div>"
        f"{_identity(parity.model)}"
    )


def _met(decisions: Sequence[str], noun: str, one: str, several: str) -> str:
    """Return how many of all decisions are good: ``3 of 4 thresholds are met``."""
    good = sum(DECISIONS.get(decision) == "good" for decision in decisions)
    return f"{good:,} of {count(len(decisions), noun)} {one if len(decisions) == 1 else several}"


def _check(check: sources.CheckDocument) -> str:
    rows = [(text(s.name), _verdict(s.status), text(s.reason)) for s in check.stages]
    content = table("Table of stages", ("Stage", "Status", "Finding"), rows, left=3)
    sentence = _met([stage.status for stage in check.stages], "stage", "passes", "pass")
    decision = _decision("sound" if check.sound else "not sound")
    return f"{_hero(decision, f'{sentence}.', '', ())}{panel('Stages', content)}"


def _qa(document: sources.QaDocument) -> str:
    rows = [(text(i.name), _verdict(i.decision), text(i.reason)) for i in document.items]
    evidence = "".join(
        f"<details><summary>{text(item.name)}</summary><pre>{lines}</pre></details>"
        for item in document.items
        if item.figures
        for figures in [codec.pretty(item.figures)[:LONGEST_FIGURES]]
        for lines in ["\n".join(map(text, figures.splitlines()))]
    )
    digests = facts(
        (name, f"<code>{text(value)}</code>") for name, value in document.sha256.items()
    )
    about = [
        ("Tier", text(document.tier)),
        ("Examined", text(day(document.timestamp))),
        ("assay", text(document.assay)),
        ("Machine", text(document.platform)),
    ]
    met = _met([item.decision for item in document.items], "question", "is GO", "are GO")
    sentence = f"{met} in the tier {document.tier}."
    headings = ("Question", "Decision", "Reason")
    return (
        f"{_hero(_decision(document.decision), sentence, '', about)}"
        f"{panel('Questions', table('Table of questions', headings, rows, left=3))}"
        f"{panel('Evidence', evidence)}{panel('Digests', digests)}{_identity(document.model)}"
    )


def _decision(decision: str) -> str:
    kind = DECISIONS.get(decision, "soft")
    return f'<p class="big"><span class="figure {kind}">{text(decision)}</span></p>'


def _verdict(decision: str) -> str:
    return f'<span class="verdict {DECISIONS.get(decision, "soft")}">{text(decision)}</span>'


def _identity(model: ModelIdentity) -> str:
    rows = [
        ("Engine", text(model.engine)),
        ("Weights", f"<code>{text(model.weights_sha256)}</code>"),
        ("File", f"<code>{text(model.path)}</code>" if model.path else ""),
    ]
    return f'<details class="protocol"><summary>Model</summary>{facts(rows)}</details>'


RENDERERS: dict[str, Callable[[Any], str]] = {
    "perplexity": _perplexity,
    "bench": _bench,
    "parity": _parity,
    "check": _check,
    "qa": _qa,
}
