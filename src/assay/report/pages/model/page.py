"""Render the pages of measurements: perplexity, bench, parity, check and qa."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from assay import codec
from assay.report.pages.figures import bench_figure, parity_figure
from assay.report.pages.markup import facts, panel, table, text
from assay.report.pages.model.documents import (
    TITLES,
    CheckDocument,
    Measurement,
    ParityDocument,
    PerplexityDocument,
    QaDocument,
)
from assay.report.pages.section import Section, join_key
from assay.report.pages.words import day, duration
from assay.runs.stores.bench_files import BenchFile, Spread
from assay.types import ModelIdentity

LONGEST_FIGURES = 20_000  # characters
DECISIONS = {"GO": "good", "NO-GO": "bad", "pass": "good", "fail": "bad"}


def render_measurement(found: Measurement) -> Section:
    """Return the page of a measurement."""
    document: Any = found.document
    body = RENDERERS[found.kind](document)
    html = (
        f'<header class="title"><p class="eyebrow">{text(TITLES[found.kind])}</p>'
        f"<h1>{text(document.name)}</h1></header>{body}"
        f'<p class="note">From {text(found.path.name)}.</p>'
    )
    return Section(join_key("model", found.key), found.title, html)


def _perplexity(found: PerplexityDocument) -> str:
    figures = found.results
    interval = ""
    if figures.low is not None and figures.high is not None:
        interval = (
            f'<p class="interval">{figures.low:.3f} to {figures.high:.3f} '
            "<span>95 % interval</span></p>"
        )
    rows = [
        ("Text", text(found.dataset.name)),
        ("Cross entropy", f"{figures.cross_entropy:.4f} nats per token"),
        ("Bits per byte", f"{figures.bits_per_byte:.4f}"),
        ("Tokens", f"{figures.tokens:,}"),
        ("Bytes", f"{figures.bytes:,}"),
        ("Window", f"{figures.window:,}, stride {figures.stride:,}"),
        ("Device", "GPU" if found.used_gpu else "CPU"),
        ("Took", duration(found.seconds) if found.seconds else ""),
    ]
    return (
        '<div class="hero"><div class="score"><p class="big">'
        f'<span class="figure">{figures.perplexity:.3f}</span>'
        f'<span class="what">perplexity</span></p>{interval}</div>'
        f'<div class="aside">{facts(rows)}</div></div>{_identity(found.model)}'
    )


def _bench(found: BenchFile) -> str:
    figures = found.figures
    memory = found.gpu_peak_memory_mb or found.peak_memory_mb
    rows = [
        ("Time to first token", f"{figures.time_to_first_token_ms.median:,.0f} ms"),
        ("Reading the prompt", _rate(figures.prefill_tokens_per_second)),
        ("One sequence", _rate(figures.decode_tokens_per_second)),
        ("Load", duration(found.load_s) if found.load_s else ""),
        ("Memory", f"{memory:,.0f} MB" if memory else ""),
        ("Device", "GPU" if found.used_gpu else "CPU"),
        ("Measured", text(day(found.timestamp))),
        *((name, text(value)) for name, value in found.machine.items() if _is_short(value)),
    ]
    best = max((b.tokens_per_second.median for b in figures.batches if b.tokens_per_second),
               default=None)  # fmt: skip
    headline = "" if best is None else (
        f'<p class="big"><span class="figure">{best:,.0f}</span>'
        '<span class="what">tokens per second at most</span></p>'
    )  # fmt: skip
    batches = [
        (str(b.sequences), *_spread(b.tokens_per_second), f"{b.seconds.median:.2f}")
        for b in figures.batches
    ]
    headings = ("Sequences", "Tokens/s", "Lowest", "Highest", "Seconds")
    return (
        f'<div class="hero"><div class="score">{headline}</div>'
        f'<div class="aside">{facts(rows)}</div></div>{bench_figure(found)}'
        f"{panel('Batches', table('Table of batches', headings, batches, left=0))}"
        f"{_identity(found.model_identity)}"
    )


def _rate(spread: Spread | None) -> str:
    return f"{spread.median:,.1f} tokens/s" if spread else ""


def _spread(spread: Spread | None) -> tuple[str, str, str]:
    if spread is None:
        return "", "", ""
    return f"{spread.median:,.1f}", f"{spread.min:,.1f}", f"{spread.max:,.1f}"


def _is_short(value: object) -> bool:
    return isinstance(value, str | int | float) and bool(value) and len(str(value)) < 80


def _parity(found: ParityDocument) -> str:
    alike = found.agreement
    rows = [
        ("Reference", text(f"{found.reference.name} ({found.reference.engine})")),
        ("Precision", text(found.precision)),
        ("Mean cosine", f"{alike.cosine_mean:.6f}"),
        ("Least cosine", f"{alike.cosine_min:.6f}"),
        ("Same top token", f"{100 * alike.top1_agreement:.2f} %"),
        ("KL", f"mean {alike.kl_mean:.3g}, largest {alike.kl_max:.3g} nats"),
        ("Same greedy texts", f"{found.divergence.same} of {found.divergence.of}"),
        ("Perplexity", f"{found.candidate_perplexity:.4f}"),
        ("of the reference", f"{found.reference_perplexity:.4f}"),
        ("Positions", f"{alike.positions:,} in {found.prompts} prompts"),
    ]
    findings = [
        (text(one.name), f"{one.value:.5g}", f"{one.bound:g}", _verdict(one.decision))
        for one in found.findings
    ]
    headings = ("Question", "Value", "Bound", "Decision")
    return (
        f'<div class="hero"><div class="score">{_decision(found.decision)}</div>'
        f'<div class="aside">{facts(rows)}</div></div>{parity_figure(found)}'
        f"{panel('Findings', table('Table of findings', headings, findings))}"
        f"{_identity(found.model)}"
    )


def _check(found: CheckDocument) -> str:
    rows = [(text(s.name), _verdict(s.status), text(s.reason)) for s in found.stages]
    content = table("Table of stages", ("Stage", "Status", "Finding"), rows, left=3)
    counts = Counter(stage.status for stage in found.stages)
    about = facts((f"Stages: {status}", f"{number}") for status, number in counts.items())
    return (
        '<div class="hero"><div class="score">'
        f"{_decision('sound' if found.sound else 'not sound')}</div>"
        f'<div class="aside">{about}</div></div>{panel("Stages", content)}'
    )


def _qa(found: QaDocument) -> str:
    rows = [(text(i.name), _verdict(i.decision), text(i.reason)) for i in found.items]
    evidence = "".join(
        f"<details><summary>{text(item.name)}</summary><pre>"
        f"{text_block(codec.pretty(item.figures))}</pre></details>"
        for item in found.items
        if item.figures
    )
    digests = facts((name, f"<code>{text(value)}</code>") for name, value in found.sha256.items())
    about = facts(
        [
            ("Tier", text(found.tier)),
            ("Examined", text(day(found.timestamp))),
            ("assay", text(found.assay)),
            ("Machine", text(found.platform)),
        ]
    )
    return (
        f'<div class="hero"><div class="score">{_decision(found.decision)}</div>'
        f'<div class="aside">{about}</div></div>'
        f"{panel('Questions', _questions(rows))}"
        f"{panel('Evidence', evidence)}{panel('Digests', digests)}{_identity(found.model)}"
    )


def _questions(rows: list[tuple[str, str, str]]) -> str:
    return table("Table of questions", ("Question", "Decision", "Reason"), rows, left=3)


def text_block(content: str) -> str:
    """Return a text of several lines as HTML."""
    shown = content[:LONGEST_FIGURES]
    return "\n".join(text(line) for line in shown.splitlines())


def _decision(decision: str) -> str:
    kind = DECISIONS.get(decision, "good" if decision == "sound" else "soft")
    kind = "bad" if decision == "not sound" else kind
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
