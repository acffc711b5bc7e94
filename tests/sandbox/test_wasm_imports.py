"""Which imports make a program unsupported: read off its text, never off what it does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.sandbox.wasm.guest.imports import Table

TABLE = Table(
    {"bz2", "multiprocessing.pool", "importlib.resources"}, {"os": {"fork"}, "sys": set()}
)


@pytest.mark.parametrize(
    ("text", "lack"),
    [
        ("import bz2", "module bz2"),
        ("import os, bz2 as b", "module bz2"),
        ("x = 1\nfrom bz2 import open", "module bz2"),
        ("from os import fork as f", "os.fork"),
        ("from importlib import resources", "importlib.resources"),
        ("import multiprocessing.pool", "module multiprocessing.pool"),
        ("import multiprocessing", ""),
        ("import os", ""),
        ("import fork", ""),
        ("from .bz2 import x", ""),
        ("from sys import fork", ""),
        ("'''\nimport bz2\n'''", ""),
        ("# import bz2", ""),
        ("import bz2\ndef f(:", ""),
    ],
)
def test_a_lack_is_found_in_the_text(text: str, lack: str) -> None:
    assert TABLE.find(text, trusted=False) == lack
    assert TABLE.find(text, trusted=True) == lack


@pytest.mark.parametrize(
    "text",
    ["def f(x):\n    import bz2", "if False:\n    import bz2", "class A:\n    from os import fork"],
)
def test_what_may_not_run_counts_in_trusted_text_alone(text: str) -> None:
    assert TABLE.find(text, trusted=False) == ""
    assert TABLE.find(text, trusted=True) != ""


def test_a_caught_import_is_no_lack() -> None:
    text = "try:\n    import bz2\nexcept ImportError:\n    bz2 = None"
    assert TABLE.find(text, trusted=False) == TABLE.find(text, trusted=True) == ""


@given(st.text(alphabet="import bz2os.fk,()\n\t\\'\"#;\0", max_size=60), st.booleans())
def test_no_text_makes_it_fail(text: str, trusted: bool) -> None:
    assert TABLE.find(f"import bz2\n{text}", trusted=trusted) in {"module bz2", "os.fork", ""}


def test_text_that_cannot_be_parsed_has_no_lack() -> None:
    assert TABLE.find("import bz2\n" + "(" * 5000 + ")" * 5000, trusted=False) == ""
