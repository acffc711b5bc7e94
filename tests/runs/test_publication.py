"""What keeps a result from being published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol import PromptSettings
from assay.runs import Environment, Gate
from assay.runs.publication import publication_obstacles
from assay.scoring import Coverage
from assay.types import Completion
from tests.test_protocol import BASE

WHOLE = Coverage(164, 164, 164, 164, 164)
ON_GPU = Completion("t", 0, "x", "stop", 1, 1, 1.0, 0, used_gpu=True)
PASSED = Environment(parity_gate=Gate("passed"))


def test_a_whole_run_on_a_gpu_that_passed_the_gate_is_publishable() -> None:
    assert publication_obstacles(WHOLE, BASE, [ON_GPU], [PASSED]) == []


@pytest.mark.parametrize(
    ("option", "obstacles"),
    [
        ('chat_template_kwargs={"reasoning_effort":"low"}', []),
        ('cache_type_k="q4_0"', ["the parity gate does not cover --engine-option cache_type_k"]),
    ],
)
def test_options_that_the_gate_does_not_cover_are_obstacles(
    option: str, obstacles: list[str]
) -> None:
    """The gate compares logits without the options; the result was publishable."""
    protocol = replace(BASE, asking=PromptSettings("chat", "own", engine_options=(option,)))
    assert publication_obstacles(WHOLE, protocol, [ON_GPU], [PASSED]) == obstacles


def test_each_thing_that_is_missing_is_named() -> None:
    half = Coverage(164, 100, 50, 100, 50)
    on_cpu = replace(ON_GPU, used_gpu=False)
    assert publication_obstacles(half, BASE, [ON_GPU, on_cpu], [PASSED]) == [
        "100 of 164 problems were selected",
        "50 of 100 problems were judged",
        "50 of 100 samples have no verdict",
        "some completions were generated without a GPU of this machine",
    ]
