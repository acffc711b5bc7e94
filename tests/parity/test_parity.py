"""A slice of benchmarks/parity.py: the reference harnesses themselves on real completions."""

from __future__ import annotations

from pathlib import Path

import pytest

import parity
import peers

pytestmark = pytest.mark.parity


@pytest.mark.parametrize(
    ("part", "count"),
    [
        pytest.param("Qwen3-0.6B/chat/humaneval", 82, marks=pytest.mark.slow),
        pytest.param("Qwen3-0.6B/chat/humaneval", 246, marks=pytest.mark.whole),
        pytest.param(
            "Qwen2.5-Coder-1.5B (base)/completion/humanevalplus", 20, marks=pytest.mark.whole
        ),
    ],
)
def test_verdicts_agree(part: str, count: int, shared_data: Path, tmp_path: Path) -> None:
    (samples,) = (
        s
        for s in parity.recorded_samples(shared_data / "completions")
        if part in f"{s.name}/{s.benchmark}"
    )
    samples = samples.first(count)
    with peers.folder() as folder:
        reference = parity.theirs(samples, folder, workers=2)
    found, told = parity.ours(samples, tmp_path)
    assert len(reference) == count
    differing = {
        key: (status, found[key], told[key])
        for key, status in reference.items()
        if found[key] != status and not parity.explain_difference(samples, key)
    }
    assert differing == {}
