"""The three ways to compare what a program printed, and how cases are packed."""

from __future__ import annotations

import json
import pickle
import zlib

import pytest

from assay.data import text_cases
from assay.sandbox.inside.judging.scripts import COMPARISONS


@pytest.mark.parametrize(
    ("printed", "expected", "right_by"),
    [
        ("1 2\n", "1 2", "livecodebench tolerant exact"),
        ("1 2\n\n\n", "1 2\n", "livecodebench tolerant exact"),
        ("1 2 \n", "1 2\n", "livecodebench tolerant"),
        ("\n 1 2", "1 2", "livecodebench tolerant"),
        ("1\r\n2\r\n", "1\n2\n", "livecodebench tolerant"),
        ("1  2", "1 2", "livecodebench tolerant"),
        ("a  b", "a b", "tolerant"),
        ("1.0", "1", "livecodebench tolerant"),
        ("1.50", "1.5", "livecodebench tolerant"),
        ("1e3", "1000", "livecodebench tolerant"),
        ("0.333333", "0.3333331", "tolerant"),
        ("0.3333", "0.3334", ""),
        ("50000000000000000", "50000000000000001", "tolerant"),
        ("YES", "yes", "tolerant"),
        ("Yes 1.0000001", "yes 1", "tolerant"),
        ("1\n\n2", "1\n2", ""),
        ("1 2", "1\n2", ""),
        ("1 2 3", "1 2", ""),
        ("1", "1 2", ""),
        ("", "1", ""),
        ("nan", "1", ""),
        ("sNaN", "1", ""),
        ("inf", "1e999", ""),
        ("1e999", "inf", ""),
        ("9" * 400, "8" * 400, ""),
        ("-" + "9" * 400, "-" + "8" * 400, ""),
        ("1" + "0" * 400, "1e400", "livecodebench tolerant"),
        ("+Infinity", "inf", "livecodebench tolerant"),
        ("-inf", "inf", ""),
        ("１", "1", "livecodebench tolerant"),  # as upstream's Decimal reads it
    ],
)
def test_comparisons(printed: str, expected: str, right_by: str) -> None:
    found = [name for name, matches in COMPARISONS.items() if matches(printed, expected)]
    assert found == right_by.split()


PAIRS = [("1\n", "2\n"), ("ü\ud800", "\0")]


def test_packed_cases_are_the_same_again() -> None:
    cases = text_cases.pack(PAIRS)
    assert text_cases.unpack(cases) == PAIRS
    assert text_cases.unpack(text_cases.from_parts(cases.packed * 2)) == PAIRS * 2


def _as_livecodebench(content: object, protocol: int) -> bytes:
    return zlib.compress(pickle.dumps(content, protocol))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("size", [1, 300, 100_000])
def test_a_pickled_string_is_read(protocol: int, size: int) -> None:
    text = json.dumps([{"input": "x" * size, "output": "é", "testtype": "stdin"}])
    part = _as_livecodebench(text, protocol)
    assert text_cases.unpack_part(part) == text
    assert text_cases.unpack(text_cases.from_parts((part,))) == [("x" * size, "é")]


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('unpickled')",)


@pytest.mark.parametrize(
    "part",
    [
        _as_livecodebench(Evil(), 4),
        _as_livecodebench([Evil()], 2),
        _as_livecodebench(["text"], 4),
        _as_livecodebench(b"bytes", 4),
        _as_livecodebench(("a", "b"), 4),
        zlib.compress(b"\x80\x04r\xff\xff\xff\x7fX\x01\x00\x00\x00a."),
        zlib.compress(b"\x80\x04X\x01\x00\x00\x00aX\x01\x00\x00\x00b."),
        zlib.compress(b"\x80\x04cbuiltins\nexec\n."),
        zlib.compress(b"\x80\x04."),
        zlib.compress(b"\x80\x04X\xff\xff\xff\x7fa."),
        zlib.compress(b"[]")[:-1],
        b"",
        b"text",
    ],
)
def test_everything_but_a_pickled_string_is_refused(part: bytes) -> None:
    if part == zlib.compress(b"\x80\x04r\xff\xff\xff\x7fX\x01\x00\x00\x00a."):
        assert text_cases.unpack_part(part) == "a"  # the mark is ignored, nothing is allocated
        return
    with pytest.raises(ValueError, match=r"pickle|zlib|cut off|opcode|string"):
        text_cases.unpack_part(part)


@pytest.mark.parametrize("text", ["{}", "[1]", '[{"input": 1, "output": "2"}]', "[{}]", "nonsense"])
def test_only_lists_of_cases_are_cases(text: str) -> None:
    with pytest.raises(ValueError, match=r"test case|Expecting"):
        text_cases.unpack(text_cases.from_parts((zlib.compress(text.encode()),)))
