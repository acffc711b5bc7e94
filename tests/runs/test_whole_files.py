"""A results file of this version has every field that this version writes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.errors import RunError
from assay.runs import find_result, read_result
from assay.runs.result import WALL
from tests.report.run_folders import toy_samples, write_run
from tests.runs.test_result import content_of
from tests.test_protocol import BASE

Place = tuple[Any, ...]
# Present only if they were requested, or if there is something to say.
REQUESTED = {("flaky",), ("extraction",), ("results", "best_of_n")}
# Only the run's folder says whether they must be there.
IN_FOLDER = {"sandbox", "parity_gate", "agreement", "base", "plus"}
# Texts and facts that others gave, by names of their own.
FREE = {"engine", "chosen", "flaky", "unscorable", "unsupported", "extraction", "agreement"}


def fields(content: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every field of an object, with those of inner ones."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        here = (*place, key)
        if isinstance(content, dict):
            yield here
        if isinstance(value, dict | list) and key not in FREE:
            yield from fields(value, here)


def without(content: Any, place: Place) -> Any:
    found = copy.deepcopy(content)
    inner = found
    for step in place[:-1]:
        inner = inner[step]
    del inner[place[-1]]
    return found


def put(content: Any, place: Place, value: Any) -> Any:
    found = copy.deepcopy(content)
    inner = found
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return found


def is_read(content: Any, path: Path) -> bool:
    path.write_text(json.dumps(content))
    try:
        read_result(path)
    except RunError as error:
        assert str(error).count("\n") == 0
        return False
    return True


@pytest.mark.parametrize("name", ["a", "b", "all"])
def test_a_file_that_lacks_a_field_is_refused(name: str, tmp_path: Path) -> None:
    content, path = content_of(name), tmp_path / "mini_20260101_000000.json"
    assert is_read(content, path)
    places = [place for place in fields(content) if place not in REQUESTED]
    places = [
        place for place in places
        if place[0] not in ("flaky", "extraction") and place[-1] not in IN_FOLDER
    ]  # fmt: skip
    assert len(places) > 100
    missed = [place for place in places if is_read(without(content, place), path)]
    assert missed == []


@pytest.mark.parametrize("name", ["a", "b", "all"])
def test_an_empty_value_is_not_a_missing_one(name: str, tmp_path: Path) -> None:
    content, path = content_of(name), tmp_path / "mini_20260101_000000.json"
    for place in [*fields(content)]:
        inner = content
        for step in place:
            inner = inner[step]
        if (
            place[-1] in IN_FOLDER
            or place in REQUESTED
            or place[0] in ("flaky", "extraction", "timing")
            or inner is None
        ):
            continue
        assert not is_read(put(content, place, None), path), place
    for place in [("model_identity",), ("coverage",), ("environment",), ("timing",), ("config",)]:
        assert not is_read(put(content, place, {}), path), place


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    content = without(content_of("a"), ("results", "intervals", "pass_at_1", "version"))
    path = tmp_path / "mini_20260101_000000.json"
    path.write_text(json.dumps(content))
    with pytest.raises(RunError) as error:
        read_result(path)
    assert "results.intervals.pass_at_1.version is missing" in str(error.value)


def test_an_interval_that_cannot_be_recomputed_is_refused(tmp_path: Path) -> None:
    """Its ends can be edited together with the number of its method."""
    content = content_of("b")
    interval = content["results"]["intervals"]["pass_at_1"]
    interval |= {"version": 2, "low": max(0.0, interval["low"] - 0.1)}
    assert not is_read(content, tmp_path / "mini_20260101_000000.json")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("not_publishable",), []),
        (("not_publishable",), ["another reason"]),
        (("results", "truncated"), 1),
        (("results", "groups"), {"base": {"tests_passed": 1.0, "intervals": {}}}),
        (("timing", "judging_cpu_s"), 9.0),
        (("timing", "judging_wall_s"), 9.0),
        (("timing", "tokens_generated"), 1),
        (("timing", "prompt_tokens"), 1),
        (("timing", "inference_s"), 1.0),
        (("timing", "retries"), 1),
        (("timing", "whole_s"), 1.0),
        (("tests_seed",), ""),
    ],
)
def test_edits_that_only_the_folder_denies_are_refused(
    place: Place, value: Any, tmp_path: Path
) -> None:
    result = write_run(tmp_path, toy_samples())
    assert result is not None
    assert find_result(result.run, tmp_path).run == result.run
    content = put(json.loads(result.path.read_text()), place, value)
    if place[-1] in WALL:
        content["timing"] |= dict.fromkeys(WALL, value)
    result.path.write_text(json.dumps(content))
    with pytest.raises(RunError):
        find_result(result.run, tmp_path)


def is_found(run: str, folder: Path) -> bool:
    try:
        find_result(run, folder)
    except RunError:
        return False
    return True


@pytest.mark.parametrize("name", ["completions", "verdicts"])
def test_edited_lines_of_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    result = write_run(tmp_path, toy_samples())
    assert result is not None
    path = result.folder / f"{name}.jsonl"
    whole = path.read_text()
    lines = whole.splitlines(keepends=True)
    record = json.loads(lines[0])
    edits = {
        "empty": "",
        "first is missing": "".join(lines[1:]),
        "of another sample": json.dumps(record | {"sample": 1}) + "\n" + "".join(lines[1:]),
        "of another task": json.dumps(record | {"task_id": "x"}) + "\n" + "".join(lines[1:]),
        "a sample more": whole + json.dumps(record | {"sample": 1}) + "\n",
    }
    for edit, text in edits.items():
        path.write_text(text)
        assert not is_found(result.run, tmp_path), edit
    path.unlink()
    with pytest.raises(RunError):
        find_result(result.run, tmp_path)


@pytest.mark.parametrize(("tests", "is_refused"), [("base+plus", True), ("base", False)])
def test_groups_of_the_protocol_are_in_the_result(
    tests: str, is_refused: bool, tmp_path: Path
) -> None:
    """If problems have tests of several kinds, some verdicts have groups that are not counted."""
    groups: dict[str, tuple[int, ...]] = {"base": (1, 1), "plus": (2, 2)}
    samples = [
        (completion, program, replace(verdict, groups=groups))
        for completion, program, verdict in toy_samples(failed=())
    ]
    result = write_run(tmp_path, samples, protocol=replace(BASE, tests=tests))
    assert result is not None
    assert result.results.groups == {}
    if is_refused:
        with pytest.raises(RunError, match=r"results\.groups"):
            find_result(result.run, tmp_path)
    else:
        find_result(result.run, tmp_path)
