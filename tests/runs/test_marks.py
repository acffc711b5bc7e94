"""The marks of results: what they are, and which keep a result from being published."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from assay.errors import RunError
from assay.protocol import PromptSettings
from assay.runs import Environment, ParityGateOutcome, Result, read_result, write_result
from assay.runs.marks import (
    ADDED_IN_ROUNDS,
    MARKS,
    WITHOUT_GPU,
    MarkKind,
    MarkName,
    list_marks,
    with_publication,
)
from assay.runs.results import parse_result
from assay.scoring import Coverage
from assay.types import Completion, ModelIdentity
from tests.report.leaderboards import make_result
from tests.runs.consistent import agree
from tests.test_protocol import BASE

ON_GPU = Completion("t", 0, "x", "stop", 1, 1, 1.0, 0, used_gpu=True)
ON_CPU = replace(ON_GPU, used_gpu=False)
WHOLE = make_result("m")
OPTION = PromptSettings("chat", "own", engine_options=('cache_type_k="q4_0"',))
SERVED = ModelIdentity("m", "openai", "w", "chat")


def scores(**changes: Any) -> Any:
    return replace(WHOLE.results, **changes)


def protocol(**changes: Any) -> Any:
    return replace(BASE, **changes).to_recorded()


def test_every_mark_is_one_sentence_and_defects_come_first() -> None:
    assert tuple(MARKS) == get_args(MarkName)
    kinds = [mark.kind for mark in MARKS.values()]
    assert kinds == sorted(kinds, key=get_args(MarkKind).index)
    for mark in MARKS.values():
        assert re.fullmatch(r"[A-Z][^.]+\.( [A-Z][^.]+\.)?", mark.meaning)


def test_a_whole_run_on_a_gpu_that_passed_the_gate_is_publishable() -> None:
    found = with_publication(WHOLE, [ON_GPU])
    assert (found.publishable, found.not_publishable, found.marks) == (True, (), ())


@pytest.mark.parametrize(
    ("changes", "completion", "marks", "publishable"),
    [
        ({}, ON_CPU, ("no-gpu",), False),
        ({"model_identity": SERVED}, ON_CPU, ("served",), False),
        ({"environment": Environment(parity_gate=ParityGateOutcome("off"))}, ON_GPU,
         ("unverified-device",), False),
        ({"protocol": protocol(asking=OPTION)}, ON_GPU, ("unverified-device",), False),
        ({"coverage": Coverage(164, 100, 100, 100, 100)}, ON_GPU, ("partial",), False),
        ({"coverage": Coverage(100, 100, 99, 100, 99), "results": scores(invalid=1)}, ON_GPU,
         ("partial", "invalid"), False),
        ({"protocol": protocol(origin="digest")}, ON_CPU, ("recorded",), False),
        ({"protocol": protocol(judge="generous")}, ON_GPU, ("other-judge",), False),
        ({"not_publishable": (ADDED_IN_ROUNDS,)}, ON_GPU, ("sequential",), False),
        # A score of such a run may be published: they are properties, and known.
        ({"results": scores(integrity={"shared": 3, "separated": 1})}, ON_GPU, ("shared-tests",),
         True),
        ({"environment": Environment(engine={"batch_invariant": False},
                                     parity_gate=ParityGateOutcome("passed"))},
         ON_GPU, ("batch-dependent",), True),
        # Nobody knows whether a server's texts depend on its batches.
        ({"model_identity": SERVED, "environment": Environment(engine={"batch_invariant": False})},
         ON_CPU, ("served",), False),
    ],
)  # fmt: skip
def test_every_mark_has_its_cause(
    changes: dict[str, Any],
    completion: Completion,
    marks: tuple[MarkName, ...],
    publishable: bool,
    tmp_path: Path,
) -> None:
    made = with_publication(replace(WHOLE, **changes), [completion])
    found = replace(made, path=tmp_path / "r.json")
    assert (found.marks, found.publishable) == (marks, publishable)
    assert bool(found.not_publishable) is not publishable
    write_result(found)
    content = json.loads(found.path.read_text())
    assert content["marks"] == list(marks)
    assert parse_result(content, found.path).marks == marks
    del content["marks"]  # as earlier versions wrote it
    assert parse_result(content, found.path).marks == marks


def test_a_file_cannot_take_a_mark_back(tmp_path: Path) -> None:
    found = agree(replace(with_publication(WHOLE, [ON_CPU]), path=tmp_path / "r.json"))
    write_result(found)
    assert read_result(found.path).marks == ("no-gpu",)
    content = json.loads(found.path.read_text())
    for field, value in (("marks", []), ("publishable", True)):
        found.path.write_text(json.dumps({**content, field: value}))
        with pytest.raises(RunError, match=f"contradicts itself: {field} is"):
            read_result(found.path)


@pytest.mark.parametrize("missing", ["marks", "not_publishable", "coverage"])
def test_a_publishable_result_says_why_it_is(tmp_path: Path, missing: str) -> None:
    """Without its coverage, part of a benchmark would be publishable and have no mark."""
    found = agree(replace(with_publication(WHOLE, [ON_GPU]), path=tmp_path / "r.json"))
    write_result(found)
    assert read_result(found.path).publishable
    content = json.loads(found.path.read_text())
    del content[missing]
    found.path.write_text(json.dumps(content))
    with pytest.raises(RunError, match=f"{missing} is missing"):
        read_result(found.path)


def test_a_result_of_an_earlier_version_without_reasons_is_marked() -> None:
    old = replace(WHOLE, publishable=False, coverage=None, environment=Environment())
    assert old.marks == ("unrecorded",)
    assert list_marks(old)[0].detail == "not recorded why"


@pytest.mark.parametrize(
    ("option", "obstacles"),
    [
        ('chat_template_kwargs={"reasoning_effort":"low"}', ()),
        ('cache_type_k="q4_0"', ("the parity gate does not cover --engine-option cache_type_k",)),
    ],
)
def test_options_that_the_gate_does_not_cover_are_obstacles(
    option: str, obstacles: tuple[str, ...]
) -> None:
    """The gate compares logits without the options, and says nothing about a result with them."""
    asking = PromptSettings("chat", "own", engine_options=(option,))
    found = with_publication(replace(WHOLE, protocol=protocol(asking=asking)), [ON_GPU])
    assert found.not_publishable == obstacles


def test_each_thing_that_is_missing_is_named() -> None:
    half: Result = replace(WHOLE, coverage=Coverage(164, 100, 50, 100, 50))
    assert with_publication(half, [ON_GPU, ON_CPU]).not_publishable == (
        "100 of 164 problems were selected",
        "50 of 100 problems were judged",
        "50 of 100 samples have no verdict",
        f"some {WITHOUT_GPU}",
    )
