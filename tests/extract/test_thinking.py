"""Thoughts before the answer."""

from __future__ import annotations

import pytest

from assay.extract.rules.characters import without_thinking
from assay.formats.marks import TAGS


@pytest.mark.parametrize(("opened", "closed"), TAGS)
def test_every_kind_of_thought_goes(opened: str, closed: str) -> None:
    assert without_thinking(f"{opened}def f(): pass{closed}answer") == "answer"
    assert without_thinking(f"first {opened}a{closed}then {opened}b{closed}last") == (
        "first then last"
    )
    assert without_thinking(f"opened by the template{closed}answer") == "answer"
    assert without_thinking(f"before {opened}cut off") == "before "
    assert without_thinking(f"{opened}a {opened}b{closed} c{closed}answer") == "answer"


def test_text_without_thoughts_stays() -> None:
    text = "def f(x):\n    return x  # I think < or > would do\n"
    assert without_thinking(text) is text
