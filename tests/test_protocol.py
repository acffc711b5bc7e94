"""Protocols: hash and difference."""

from __future__ import annotations

import dataclasses
from typing import Any

from assay.data import codec
from assay.protocol import VERSION, PromptSettings, Protocol, RecordedProtocol, differences
from assay.types import Decoding, Limits, TimeRule

BASE = Protocol(
    version=VERSION,
    benchmark="humaneval",
    benchmark_version="1",
    data_sha256="d",
    problems=164,
    problems_sha256="p",
    n_samples=1,
    prompt_strategy="standard",
    prompt_strategy_version=1,
    asking=PromptSettings("chat", "own"),
    decoding=Decoding(),
    extraction_version=1,
    tests="base",
    limits=Limits(),
    sandbox="process",
    python="cpython 3.11",
)


RULED = dataclasses.replace(BASE, time_rule=TimeRule(1.0, 100.0))


def other(value: Any) -> Any:
    if value is None:
        return RULED.time_rule
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    first = dataclasses.fields(value)[0].name
    return dataclasses.replace(value, **{first: other(getattr(value, first))})


def test_every_field_changes_the_hash_and_is_named() -> None:
    for field in dataclasses.fields(Protocol):
        changed = dataclasses.replace(BASE, **{field.name: other(getattr(BASE, field.name))})
        assert changed.hash != BASE.hash
        (difference,) = differences(BASE.to_json(), changed.to_json())
        assert difference[0].split(".")[0] == field.name


def test_equal_protocols_have_equal_hashes_and_no_difference() -> None:
    copy = codec.from_json(Protocol, codec.to_json(BASE))
    assert copy.hash == BASE.hash
    assert differences(BASE.to_json(), copy.to_json()) == []


def test_hashes_of_earlier_results_stay() -> None:
    assert BASE.hash == "ba6e9686b9e2bc6b8140582c2b151f989dd44ffa48eba50eebfd3d22287045be"
    before = dataclasses.replace(BASE, version=2)
    assert before.hash == "6df29b8ac4df2377d113132e8dd07f8f6420491aaa5de72d241cb77873f02163"
    assert "judge" not in BASE.to_json()
    assert "time_rule" not in BASE.to_json()


def test_a_time_rule_is_part_of_the_hash_and_read_again() -> None:
    stricter = dataclasses.replace(RULED, time_rule=TimeRule(1.0, 50.0))
    assert len({BASE.hash, RULED.hash, stricter.hash}) == 3
    assert differences(RULED.to_json(), stricter.to_json()) == [("time_rule.factor", 100.0, 50.0)]
    read = codec.read_known(RecordedProtocol, RULED.to_json())
    assert read.time_rule == RULED.time_rule
    assert codec.read_known(RecordedProtocol, BASE.to_json()).time_rule is None


def test_nested_fields_have_dotted_names() -> None:
    hotter = dataclasses.replace(BASE, decoding=Decoding(temperature=0.8))
    assert differences(BASE.to_json(), hotter.to_json()) == [("decoding.temperature", 0.0, 0.8)]
