"""Dataclasses to JSON and back."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data import codec
from assay.types import Completion, Decoding, Message, Prompt, Request, Verdict

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.builds(Completion, inference_ms=FINITE),
    st.builds(Verdict, cpu_s=FINITE, wall_s=FINITE, peak_mb=FINITE),
)
def test_round_trip(completion: Completion, verdict: Verdict) -> None:
    for record in (completion, verdict):
        assert codec.from_json(type(record), json.loads(codec.dumps(record))) == record


def test_nested_round_trip() -> None:
    request = Request("a", 1, Prompt((Message("user", "hi"),), stop=("x",)), Decoding(), 7)
    assert codec.from_json(Request, json.loads(codec.dumps(request))) == request


def test_a_record_is_one_line_of_ascii_whatever_the_model_said() -> None:
    completion = Completion("a", 0, "é\n\r\u2028\ud800\0", "stop", 1, 1, 1.0, 0, False)
    line = codec.dumps(completion)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert codec.from_json(Completion, json.loads(line)) == completion


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([], "expected an object"),
        ({"role": "user"}, "'content' is missing"),
        ({"role": "user", "content": 3}, "'content'"),
        ({"role": "robot", "content": ""}, "'role'"),
        ({"role": "user", "content": "", "extra": 1}, "unknown field 'extra'"),
    ],
)
def test_damage_is_named(data: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        codec.from_json(Message, data)


def test_true_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="'max_tokens'"):
        codec.from_json(Decoding, {"max_tokens": True})


@pytest.mark.parametrize("value", [10**400, math.inf, math.nan, -1])
def test_a_number_that_no_count_can_be_is_damage(value: int) -> None:
    with pytest.raises(ValueError, match="'max_tokens'"):
        codec.check_numbers(Decoding(max_tokens=value))


def test_a_number_that_no_float_holds_is_damage() -> None:
    with pytest.raises(ValueError, match="'temperature'"):
        codec.from_json(Decoding, {"temperature": 10**400})


def test_digest_does_not_depend_on_field_order() -> None:
    assert codec.digest({"a": 1, "b": 2}) == codec.digest({"b": 2, "a": 1})
    assert codec.digest({"a": 1}) != codec.digest({"a": 2})
