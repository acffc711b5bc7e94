"""The examples of docs/guides/rewards.md run, and its table has the arguments of the code."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from assay.reward import OpenRlhfReward

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "rewards.md").read_text()
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {}
    for block in BLOCK.findall(PAGE):
        exec(compile(block, "rewards.md", "exec"), namespace)
    for name in ("reward", "compute_score", "own"):
        namespace[name].close()
    assert capsys.readouterr().out.splitlines() == [
        "[1.0]",
        "{'score': 1.0, 'acc': 1.0, 'invalid': 0.0}",
        "0.25 1 4 wrong-answer",
    ]


def test_every_argument_is_in_the_table() -> None:
    table = PAGE.partition("## Settings")[2].partition("\n\nWith `partial`")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.M)
    names = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    fields = {field.name for field in dataclasses.fields(OpenRlhfReward) if field.init}
    assert names == fields
