"""Pack and unpack test cases that are pairs of texts.

A packed part is JSON, a list of objects with the fields ``input`` and ``output``, compressed by
zlib. LiveCodeBench publishes its private tests in the same form, but pickles the JSON first. Such a
part is read by an unpickler that knows nothing but strings.
"""

from __future__ import annotations

import hashlib
import json
import pickletools
import zlib
from collections.abc import Iterable
from typing import Any

from assay.types import TextCases, TextStyle

Pair = tuple[str, str]  # an input and the expected output
MOST_BYTES = 1 << 30  # of one part when unpacked
PICKLE = b"\x80"  # begins all pickles of version 2 or later
# All that the pickle of a string consists of. An unpickler's memo is not used, so its marks do
# nothing: one of them could make an unpickler allocate gigabytes.
TEXTS = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
AROUND_TEXTS = {"PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "STOP"}


def pack(
    pairs: Iterable[Pair],
    style: TextStyle = "stdin",
    comparison: str = "livecodebench",
    *,
    run_all: bool = False,
) -> TextCases:
    """Return the cases in packed form."""
    fields = [{"input": given, "output": expected} for given, expected in pairs]
    part = zlib.compress(json.dumps(fields).encode(), 1)
    return from_parts((part,), style, comparison, run_all=run_all)


def from_parts(
    parts: tuple[bytes, ...],
    style: TextStyle = "stdin",
    comparison: str = "livecodebench",
    *,
    run_all: bool = False,
) -> TextCases:
    """Return cases whose parts are packed already."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return TextCases(parts, digest.hexdigest(), style, comparison, run_all)


def unpack(cases: TextCases) -> list[Pair]:
    """Return the pairs. Raise ValueError if a part is not a list of such cases."""
    return [pair for part in cases.packed for pair in parse_pairs(unpack_part(part))]


def unpack_part(part: bytes, most: int = MOST_BYTES) -> str:
    """Return the JSON of one part. Raise ValueError if it is damaged, or has more bytes."""
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(part, most)
    except zlib.error as error:
        raise ValueError(f"not compressed by zlib ({error})") from error
    if not unpacker.eof:
        raise ValueError(f"cut off, or larger than {most >> 20} MB")
    return _unpickle(data) if data.startswith(PICKLE) else data.decode("utf-8", "surrogatepass")


def parse_pairs(text: str) -> list[Pair]:
    """Return the pairs of a JSON list of cases. Raise ValueError if it is not one."""
    try:
        fields: Any = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(fields, list):
        raise ValueError("not a list of test cases")
    pairs = []
    for case in fields:
        match case:
            case {"input": str(given), "output": str(expected)}:
                pairs.append((given, expected))
            case _:
                raise ValueError("a test case without the texts input and output")
    return pairs


def _unpickle(data: bytes) -> str:
    """Return a pickled string, read by its opcodes: nothing is ever called, imported or built."""
    found: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in TEXTS:
                found.append(str(argument))
            elif opcode.name not in AROUND_TEXTS:
                raise ValueError(f"refused the opcode {opcode.name}")
    except Exception as error:  # a hostile pickle fails in many ways
        raise ValueError(f"not a pickled string ({error})") from error
    if len(found) != 1:
        raise ValueError("not one pickled string")
    return found[0]
