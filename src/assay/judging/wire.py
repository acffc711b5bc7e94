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
from dataclasses import asdict, fields, replace
from typing import Any

from assay.data import codec, text_cases
from assay.errors import SandboxError
from assay.types import Answer, Cases, Job, Tests, TextCases, Verdict

NAMED = "sha256:"
_NESTED = ("cases", "texts", "answer")
_VERDICT = {field.name for field in fields(Verdict)}
_ALWAYS = {field.name for field in fields(Verdict) if field.default is not None}  # in a line


def encode_verdict(
    verdict: Verdict,
    name: str | None = None,
    program: str | None = None,
    outputs: Cases | None = None,
) -> bytes:
    """Return a verdict as a line of JSON, without a line end.

    ``name`` is the client's for the program; ``outputs`` are what a reference returned.
    """
    data = {name: value for name, value in codec.to_json(verdict).items() if value is not None}
    line: dict[str, Any] = {"index": data.pop("sample")}
    if name is not None:
        line["id"] = name
    line["task_id"] = data.pop("task_id")
    groups = data.pop("groups")
    # Nobody has counted what an invalid verdict could not judge.
    passed, total = (None, None) if verdict.status == "invalid" else count_cases(verdict)
    line.update(data, passed=passed, total=total, groups=groups)
    if program is not None:
        line["program"] = program
    if outputs is not None:
        line["outputs"] = {"expected": outputs.expected, "slowest_s": outputs.slowest_s}
    return codec.dumps(line).encode()


def count_cases(verdict: Verdict) -> tuple[int, int]:
    """Return how many cases are right, and how many there are. Test code counts as one case."""
    counts = verdict.groups.values()
    total = sum(count[1] for count in counts)
    if not total:
        return int(verdict.status == "pass"), 1
    return sum(count[0] for count in counts), total


def decode_verdict(line: Mapping[str, Any], task_id: str, sample: int) -> Verdict:
    """Return the verdict of a service's line. Raise SandboxError if it is malformed."""
    known = {name: value for name, value in line.items() if name in _VERDICT}
    known |= {"task_id": task_id, "sample": sample}
    if lacking := sorted(_ALWAYS - known.keys()):
        raise _malformed(f"not a verdict: field {lacking[0]!r} is missing")
    try:
        return codec.from_json(Verdict, known)
    except ValueError as error:
        raise _malformed(f"not a verdict: {error}") from error


def decode_outputs(line: Mapping[str, Any], cases: Cases | None) -> Cases | None:
    """Return the cases with what a reference returned, if a line has any. Raise SandboxError."""
    outputs = line.get("outputs")
    if outputs is None or cases is None:
        return None
    try:
        expected, slowest_s = dict(outputs["expected"]), float(outputs["slowest_s"])
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(f"not outputs: {error!r}") from error
    return Cases(cases.inputs, expected, codec.digest([cases.digest, expected]), slowest_s)


def _malformed(why: str) -> SandboxError:
    return SandboxError(f"judge service: {why}. Use the same version of assay.")


def encode_job(job: Job, tests: str) -> dict[str, Any]:
    """Return a job as a program of a request, whose tests have this name."""
    program: dict[str, Any] = {
        "task_id": job.task_id, "program": job.program.code, "rule": job.program.rule,
        "tests": tests, "limits": asdict(job.limits), "seed": job.seed,
    }  # fmt: skip
    optional = {"imports": list(job.imports), "environment": job.environment, "alone": job.alone}
    return program | {name: value for name, value in optional.items() if value}


def native_tests(tests: Tests) -> dict[str, Any]:
    """Return tests in the form of a request.

    A sandbox executes programs. Answers that are not programs were decided about before.
    """
    return {"native": encode_tests(replace(tests, answer=None))}


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
