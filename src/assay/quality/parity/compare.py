"""Compare a model with a reference: the same prompts through both engines."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from assay import benchmarks
from assay.models import Model
from assay.models.scoring import Scorer, open_scorer
from assay.progress import Reporter, Silent
from assay.quality import perplexity
from assay.quality.decision import Decision, at_least, at_most, overall
from assay.quality.parity.agreement import (
    agreement,
    compare_rows,
    first_difference,
    kl_by_position,
)
from assay.quality.policy import Likeness
from assay.runs.about import Agreement
from assay.types import Decoding, Message, Prompt, Request

SILENT = Silent()
PROMPTS = 8
NEW_TOKENS = 48


@dataclass(frozen=True, slots=True)
class TokenDifference:
    """A prompt that the two tokenize differently, and the first token that differs."""

    prompt: str
    position: int
    candidate: tuple[int, ...]  # from there on, a few
    reference: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The places where greedy texts diverge, in the reference's tokens. None: they do not."""

    same: int
    of: int
    positions: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class ParityFinding:
    """One question, the measured value, and its bound."""

    name: str
    value: float
    bound: float
    decision: Decision


@dataclass(frozen=True, slots=True)
class Parity:
    """All that was compared."""

    prompts: int
    token_differences: tuple[TokenDifference, ...]
    agreement: Agreement
    kl_by_position: tuple[float, ...]
    divergence: Divergence
    candidate_perplexity: float
    reference_perplexity: float
    perplexity_gap: float  # relative; below 0: the candidate's is lower
    findings: tuple[ParityFinding, ...] = field(default=())
    decision: Decision = "INCONCLUSIVE"


def fixed_prompts(count: int, form: str) -> list[Prompt]:
    """Return prompts of the built-in benchmark. They need no download and never change."""
    problems = benchmarks.load("mini").problems[:count]
    if form == "chat":
        return [Prompt(messages=(Message("user", p.prompt),)) for p in problems]
    return [Prompt(text=problem.prompt) for problem in problems]


def compare(
    candidate: Model,
    reference: Model,
    likeness: Likeness,
    text: str,
    reporter: Reporter = SILENT,
    count: int = PROMPTS,
) -> Parity:
    """Compare everything, then decide. The two engines never compute at the same time."""
    prompts = fixed_prompts(count, candidate.identity.prompt_form)
    with reference.keep_loaded(), candidate.keep_loaded():
        reporter.preparing("the reference reads the prompts", 0, 3)
        reference_tokens, reference_texts = _read(reference, prompts)
        reporter.preparing("the candidate reads the prompts", 1, 3)
        candidate_tokens, candidate_texts = _read(candidate, prompts)
        reporter.preparing("logits and perplexity of both", 2, 3)
        with open_scorer(reference) as right, open_scorer(candidate) as left:
            # On the reference's tokens, so that tokenizers do not matter.
            rows = [compare_rows(right.logits(t), left.logits(t)) for t in reference_tokens]
            divergence = _divergence(right, candidate_texts, reference_texts)
            ours, theirs = (perplexity.measure(scorer, text) for scorer in (left, right))
    parity = Parity(
        prompts=len(prompts),
        token_differences=_differences(prompts, candidate_tokens, reference_tokens),
        agreement=agreement(rows),
        kl_by_position=tuple(kl_by_position(rows)),
        divergence=divergence,
        candidate_perplexity=ours.perplexity,
        reference_perplexity=theirs.perplexity,
        perplexity_gap=ours.perplexity / theirs.perplexity - 1,
    )
    return decide(parity, likeness)


def decide(parity: Parity, likeness: Likeness) -> Parity:
    """Return the comparison with the decision by these thresholds."""
    different = float(len(parity.token_differences))
    findings = [
        ParityFinding(
            "prompts with other tokens", different, 0.0, at_most(different, different, 0.0)
        ),
        *logit_findings(parity.agreement, likeness),
    ]
    if likeness.perplexity_gap is not None:
        gap = parity.perplexity_gap
        decision = at_most(gap, gap, likeness.perplexity_gap)
        findings.append(ParityFinding("perplexity gap", gap, likeness.perplexity_gap, decision))
    return dataclasses.replace(
        parity,
        findings=tuple(findings),
        decision=overall(finding.decision for finding in findings),
    )


def logit_findings(similarity: Agreement, likeness: Likeness) -> list[ParityFinding]:
    """Return whether logits are as similar as they must be."""
    return [
        ParityFinding(name, value, bound, at_least(value, value, bound))
        for name, value, bound in (
            ("mean cosine of logits", similarity.cosine_mean, likeness.cosine),
            ("same most likely token", similarity.top1_agreement, likeness.top1),
        )
    ]


def _read(model: Model, prompts: Sequence[Prompt]) -> tuple[list[tuple[int, ...]], list[str]]:
    """Return the prompts' tokens, and the model's greedy answers. The model stays loaded."""
    decoding = Decoding(max_tokens=NEW_TOKENS)
    requests = [Request(str(n), 0, prompt, decoding, 0) for n, prompt in enumerate(prompts)]
    tokens = [model.render(prompt).tokens for prompt in prompts]
    completions = {completion.task_id: completion for completion in model.generate(requests)}
    return tokens, [completions[request.task_id].text for request in requests]


def _differences(
    prompts: Sequence[Prompt],
    candidate: Sequence[tuple[int, ...]],
    reference: Sequence[tuple[int, ...]],
) -> tuple[TokenDifference, ...]:
    differences = []
    for prompt, ours, theirs in zip(prompts, candidate, reference, strict=True):
        if (at := first_difference(ours, theirs)) is not None:
            text = prompt.text or prompt.messages[-1].content
            differences.append(
                TokenDifference(text[:60], at, tuple(ours[at : at + 4]), tuple(theirs[at : at + 4]))
            )
    return tuple(differences)


def _divergence(
    reference: Scorer, candidate_texts: Sequence[str], reference_texts: Sequence[str]
) -> Divergence:
    positions: list[int | None] = []
    for ours, theirs in zip(candidate_texts, reference_texts, strict=True):
        if ours == theirs:
            positions.append(None)
            continue
        both = (reference.tokenize(text).ids if text else () for text in (ours, theirs))
        positions.append(first_difference(*both))
    same = sum(position is None for position in positions)
    return Divergence(same, len(positions), tuple(positions))
