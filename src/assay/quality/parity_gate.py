"""Check, before a GPU generates completions, that its logits match a CPU's in float32.

A GPU's kernels, data types and drivers can be wrong in ways that only lower a score. So the
logits of fixed prompts are compared once for each set of weights, device, driver and libraries. A
pass is cached.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from collections.abc import Callable

from assay import models
from assay.data import codec
from assay.datasets import cache_dir
from assay.errors import ModelError, UsageError
from assay.models import EngineOptions, Model
from assay.models.scoring import open_scorer
from assay.quality.decision import overall
from assay.quality.parity import fixed_prompts, logit_findings
from assay.quality.parity.agreement import agreement, compare_rows
from assay.quality.policy import Likeness, load_policy
from assay.runs import KeptData
from assay.runs.about import ParityGateOutcome

PROMPTS = 6
LIBRARIES = ("torch", "transformers", "triton", "xllamacpp")
VERSION = 1  # of what is compared and how


def run_parity_gate(
    spec: str,
    options: EngineOptions,
    likeness: Likeness,
    note: Callable[[str], None] = lambda _: None,
    *,
    model: Model | None = None,
) -> ParityGateOutcome:
    """Compare, or use a cached pass. Raise ModelError if the engine provides no logits.

    ``model`` is evaluated afterwards. If its engine was loaded, it stays loaded for the next call.
    """
    shared = model if not options.engine_options else None
    # Only what affects how the device computes, not how the model is prompted.
    options = dataclasses.replace(options, thinking="", engine_options=())
    model = shared or models.open_model(spec, options, note)
    device = model.gpu()
    if not device:
        return ParityGateOutcome("no-gpu")
    cache, key = KeptData(cache_dir() / "gate"), _key(model, device, likeness)
    if (before := cache.get(key)) is not None:
        return dataclasses.replace(codec.from_json(ParityGateOutcome, before), cached=True)
    note(f"parity gate: comparing {device} with this machine's CPU in float32")
    try:
        cpu = dataclasses.replace(options, device="cpu", devices="", dtype="")
        on_cpu = models.open_model(spec, cpu)
        outcome = compare_devices(on_cpu, model, device, likeness, then_generate=shared is not None)
    except ModelError as error:
        raise ModelError(f"parity gate: {error} (--no-parity-gate skips this check)") from error
    if outcome.state == "passed":
        cache.put(key, json.loads(codec.dumps(outcome)))
    return outcome


def compare_devices(
    on_cpu: Model, on_gpu: Model, device: str, likeness: Likeness, *, then_generate: bool = False
) -> ParityGateOutcome:
    """Compare logits, one model after the other. The GPU's may stay loaded to generate then."""
    with open_scorer(on_cpu) as scorer:
        prompts = [scorer.tokenize(p.text).ids for p in fixed_prompts(PROMPTS, "text")]
        expected = [scorer.logits(ids) for ids in prompts]
    with open_scorer(on_gpu, then_generate=then_generate) as scorer:
        if not scorer.used_gpu:
            raise ModelError(
                f"the engine did not use {device}. Install a build of it with GPU support, or give "
                "--device cpu."
            )
        rows = [
            compare_rows(one, scorer.logits(ids))
            for one, ids in zip(expected, prompts, strict=True)
        ]
    similarity = agreement(rows)
    findings = logit_findings(similarity, likeness)
    reasons = tuple(
        f"{one.name} {one.value:.5f}, below {one.bound:g}"
        for one in findings
        if one.decision != "GO"
    )
    passed = overall(one.decision for one in findings) == "GO"
    return ParityGateOutcome("passed" if passed else "failed", device, similarity, reasons)


def _key(model: Model, device: str, likeness: Likeness) -> str:
    """Return a digest of everything that could change the outcome."""
    identity = model.identity
    versions = {name: _version(name) for name in LIBRARIES}
    about = (
        VERSION, identity.engine, identity.weights_sha256, identity.variant, device, versions,
        codec.to_json(likeness),
    )  # fmt: skip
    return codec.digest(about)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def require_parity(
    spec: str,
    options: EngineOptions,
    model: Model,
    *,
    publishable: bool,
    wanted: bool,
    note: Callable[[str], None],
) -> ParityGateOutcome:
    """Return the gate's outcome for the result. Raise an error if the run must not continue."""
    if publishable and not wanted:
        raise UsageError("--publishable: needs the parity gate. Omit --no-parity-gate.")
    if not wanted:
        return ParityGateOutcome("off")
    outcome = run_parity_gate(spec, options, load_policy().gate, note, model=model)
    if outcome.state == "failed":
        raise ModelError(
            f"{outcome.device} and CPU logits differ ({'; '.join(outcome.reasons)}). Check the "
            "driver and library versions, or give --device cpu."
        )
    if publishable and outcome.state == "no-gpu":
        raise UsageError(
            "--publishable: needs a GPU, and this run would use none. Give a model that runs on "
            "a GPU, or omit --publishable."
        )
    if outcome.state == "passed":
        known = " (cached)" if outcome.cached else ""
        note(f"parity gate: {outcome.device} and CPU logits agree{known}")
    # Whether the pass was cached is not part of the environment of completions.
    return dataclasses.replace(outcome, cached=False)
