"""Write and read what a judge service and its clients exchange, as JSON.

Tests are sent in full, so that a program gets the same verdict wherever it is judged. Their bytes
are in base64. A service builds nothing but data from them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.data import codec, text_cases
from assay.types import Answer, Cases, Tests, TextCases, Verdict

NAMED = "sha256:"
_NESTED = ("cases", "texts", "answer")
_encode = json.JSONEncoder(separators=(",", ":")).encode
_FIELDS = (
    "status", "reason", "detail", "failing_test", "cpu_s", "wall_s", "peak_mb", "integrity", "rule",
    "output",
)  # fmt: skip
_COMPARED = ("call", "expected", "actual", "difference", "input")  # only what is known is sent


def encode_verdict(
    verdict: Verdict,
    name: str | None = None,
    program: str | None = None,
    outputs: Cases | None = None,
) -> bytes:
    """Return a verdict as a line of JSON, without a line end.

    ``name`` is the client's for the program; ``outputs`` are what a reference returned.
    """
    passed, total = partial_credit(verdict)
    line: dict[str, Any] = {"index": verdict.sample}
    if name is not None:
        line["id"] = name
    line["task_id"] = verdict.task_id
    line.update((field, getattr(verdict, field)) for field in _FIELDS)
    for field in _COMPARED:
        if (text := getattr(verdict, field)) is not None:
            line[field] = text
    line.update(passed=passed, total=total, groups=verdict.groups)
    if program is not None:
        line["program"] = program
    if outputs is not None:
        line["outputs"] = {"expected": outputs.expected, "slowest_s": outputs.slowest_s}
    return _encode(line).encode()


def partial_credit(verdict: Verdict) -> tuple[int | None, int | None]:
    """Return how many cases are right, and how many there are; None for both if it is invalid.

    Test code counts as one case.
    """
    if verdict.status == "invalid":
        return None, None
    if not verdict.groups:
        return int(verdict.status == "pass"), 1
    counts = list(verdict.groups.values())
    return sum(count[0] for count in counts), sum(count[1] for count in counts)


def decode_verdict(line: Mapping[str, Any], task_id: str, sample: int) -> Verdict:
    """Return the verdict of a service's line. Raise ValueError if it is malformed."""
    try:
        fields = {field: line[field] for field in _FIELDS}
        fields |= {field: line[field] for field in _COMPARED if field in line}
        return codec.from_json(
            Verdict, {**fields, "groups": line["groups"], "task_id": task_id, "sample": sample}
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a verdict: {error!r}") from error


def decode_outputs(line: Mapping[str, Any], cases: Cases | None) -> Cases | None:
    """Return the cases with what a reference returned, if a line has any."""
    found = line.get("outputs")
    if found is None or cases is None:
        return None
    try:
        expected, slowest_s = dict(found["expected"]), float(found["slowest_s"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not outputs: {error!r}") from error
    return Cases(cases.inputs, expected, codec.digest([cases.digest, expected]), slowest_s)


def encode_tests(tests: Tests) -> dict[str, Any]:
    """Return tests as JSON-ready data."""
    data: dict[str, Any] = codec.to_json(tests)
    if texts := tests.texts:
        packed = [base64.b64encode(part).decode() for part in texts.packed]
        data["texts"] = {**data["texts"], "packed": packed}
    return data


def name_tests(data: Any) -> tuple[str, int]:
    """Return the name by which a service knows tests, which depends on their content; their size.

    Sizes are in bytes of JSON.
    """
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
    return f"{NAMED}{hashlib.sha256(canonical).hexdigest()}", len(canonical)


def decode_tests(data: Any) -> Tests:
    """Return the tests of JSON data. Raise ValueError if they are malformed.

    Digests are computed again: oracles cache tests by them, so nobody may choose them.
    """
    if not isinstance(data, dict):
        raise ValueError("tests: expected an object")
    plain = {name: value for name, value in data.items() if name not in _NESTED}
    return replace(
        codec.from_json(Tests, plain),
        cases=_decode_cases(data["cases"]) if data.get("cases") else None,
        texts=_decode_texts(data["texts"]) if data.get("texts") else None,
        answer=codec.from_json(Answer, data["answer"]) if data.get("answer") else None,
    )


def _decode_texts(data: Any) -> TextCases:
    try:
        packed = tuple(base64.b64decode(part, validate=True) for part in data["packed"])
        found = codec.from_json(TextCases, {**data, "packed": []})
    except (KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"texts: {error!r}") from error
    return text_cases.from_parts(packed, found.style, found.comparison, run_all=found.run_all)


def _decode_cases(data: Any) -> Cases:
    try:
        inputs, expected = data["inputs"], data["expected"]
        if not all(isinstance(calls, list) for calls in (*inputs.values(), *expected.values())):
            raise TypeError("a group is not a list")
        counts = {name: len(calls) for name, calls in inputs.items()}
        if expected and counts != {name: len(values) for name, values in expected.items()}:
            raise TypeError("other groups or numbers of expected values than of inputs")
        digest = codec.digest(["cases", inputs, expected])
        return Cases(inputs, expected, digest, float(data.get("slowest_s", 0.0)))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"cases: {error!r}") from error
