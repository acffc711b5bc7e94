"""Code that went through a page."""

from __future__ import annotations

import pytest

from assay.extract.rules.characters import replace_typography

CODE = "def f(my_list):\n    return 2 * my_list['a']\n"


@pytest.mark.parametrize(
    "text",
    [
        CODE.replace(" ", "\u00a0"),
        CODE.replace("_", r"\_").replace("*", r"\*"),
        CODE.replace("['", "[\u2018").replace("']", "\u2019]"),
        CODE.replace("'", "\u2019"),
        CODE.replace("f(", "\u200bf("),
    ],
)
def test_plain_characters_come_back(text: str) -> None:
    assert text != CODE
    assert replace_typography(text) == CODE


def test_plain_code_stays_as_it_is() -> None:
    assert replace_typography(CODE) == CODE
