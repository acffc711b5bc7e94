"""Verdicts, scores and protocol hashes of recorded completions stay what they were.

The figures were made by the version of 2026-11-16, before the packages got their layout. A change
that alters one is intended, raises a version of the protocol, and is said in the changelog. Raised
versions are set back here, so that nothing else changes the hash unnoticed. These results had a
fixed time limit, so ``--time-limit 10`` gives their hashes. Limits that are derived from the
references have other hashes and give the same verdicts.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from assay.data import codec
from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.runs import RunReader
from assay.sandbox.environments.interpreters import choose

FIXED_S = 10.0
LONG = "codegemma:7b (ollama)"  # endless programs: most of the time of all three
FILE = "completions/humaneval_poe_ollama.jsonl.gz"
# Fields of their protocol that have another value now.
BEFORE_FIELDS = {"version": 2, "extraction_version": 4}
# Reasons that have changed: extraction version 5 leaves no function that is only a docstring.
BEFORE_REASONS = {(LONG, "HumanEval/10"): "wrong-answer"}  # now: syntax
# By model: the protocol's hash, the digest of all verdicts' status and reason, and the passes.
BEFORE = {
    LONG: (
        "96fc928809d1695779c6b05c17bbbf8ee4c4d39046dcdee1ff71e1a3f59e9cac",
        "d759ac79024693e54b25945b1df43a5c22b34d7225c5332286b70a69b6ad1ac8",
        55,
    ),
    "qwen2.5-coder:7b (ollama)": (
        "027160b48a20d4ae757b769556842c7550d4f886db81850bde437d9480b6c089",
        "ede2899afd386efc22c4b41ecfd22c49b2d6bd3566dcca6516dd816854d096d2",
        124,
    ),
    "smollm2:135m (ollama)": (
        "179816dae81080d3b816d1ea8ff25402a9615a17fa1c0eb20decbbd3715cbd88",
        "519995d3d95a8293f9ff06705cde410bdf77204efada66ee4d8780375f744d98",
        0,
    ),
}


@pytest.mark.skipif(choose().minor != "3.11", reason="the hashes are those of Python 3.11")
@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=pytest.mark.slow if m == LONG else ()) for m in BEFORE]
)
def test_recorded_completions_are_judged_as_before(
    model: str, shared_data: Path, tmp_path: Path
) -> None:
    found = judge_recorded(shared_data / FILE, model, tmp_path, FIXED_S)
    assert found == BEFORE[model]


@pytest.mark.slow
def test_limits_from_references_change_the_hash_but_no_verdict(
    shared_data: Path, tmp_path: Path
) -> None:
    model = "qwen2.5-coder:7b (ollama)"
    protocol_hash, verdicts, passed = judge_recorded(shared_data / FILE, model, tmp_path, None)
    assert protocol_hash != BEFORE[model][0]
    assert (verdicts, passed) == BEFORE[model][1:]


def judge_recorded(
    file: Path, model: str, folder: Path, time_limit: float | None
) -> tuple[str, str, int]:
    """Return the protocol's hash as it was, a digest of the verdicts, and how many passed."""
    with gzip.open(file, "rt") as lines:
        records = [record for line in lines if (record := json.loads(line))["model"] == model]
    samples = [{"task_id": r["task_id"], "solution": r["raw"]} for r in records]
    path = folder / "samples.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    config = ScoreConfig(
        "humaneval", folder / "results", samples_file=str(path), tests_seed="fixed", no_cache=True,
        time_limit=time_limit,
    )  # fmt: skip
    evaluation = score(config, Silent())
    verdicts = RunReader(evaluation.path.with_suffix("")).verdicts
    reasons = {key: BEFORE_REASONS.get((model, key[0]), v.reason) for key, v in verdicts.items()}
    seen = sorted((*key, v.status, reasons[key]) for key, v in verdicts.items())
    passed = sum(v.status == "pass" for v in verdicts.values())
    content = {**evaluation.protocol.to_json(), **BEFORE_FIELDS}
    del content["hash"]
    return codec.digest(content), codec.digest(seen), passed
