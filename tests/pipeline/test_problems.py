"""Selections of problems: ranges, task ids, files of them, and what they are called."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.pipeline import ProblemSelection
from assay.types import Benchmark, Problem, Tests

WHOLE = Benchmark(
    "toy", "1", "d", tuple(Problem(f"toy/{n}", "", "", Tests("f", "")) for n in range(12))
)


def chosen(selection: ProblemSelection) -> tuple[list[str], str]:
    part, label = selection.apply(WHOLE)
    assert dataclasses.replace(part, problems=WHOLE.problems) == WHOLE
    return [problem.task_id for problem in part.problems], label


@pytest.mark.parametrize("text", ["", "0", "12", "99", ":", "0:", ":12", "0:99"])
def test_all_problems_have_no_label(text: str) -> None:
    ids, label = chosen(ProblemSelection(text))
    assert (len(ids), label) == (12, "")


@pytest.mark.parametrize(
    ("text", "first", "count", "label"),
    [("3", 0, 3, "[:3]"), (":3", 0, 3, "[:3]"), ("9:", 9, 3, "[9:]"), ("2:4", 2, 2, "[2:4]")],
)
def test_ranges_count_as_slices_do(text: str, first: int, count: int, label: str) -> None:
    ids = [problem.task_id for problem in WHOLE.problems]
    assert chosen(ProblemSelection(text)) == (ids[first : first + count], label)


@given(st.integers(0, 15), st.integers(0, 15))
def test_a_range_selects_what_python_selects(first: int, last: int) -> None:
    selection = ProblemSelection(f"{first}:{last}")
    expected = [problem.task_id for problem in WHOLE.problems[first:last]]
    if expected:
        assert chosen(selection)[0] == expected
    else:
        with pytest.raises(UsageError, match="selects no problem of toy, which has 12"):
            selection.apply(WHOLE)


@pytest.mark.parametrize("text", ["-1", "x", "1:2:3", "1.5", "1e3", " 1", "9999999999", "٣"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a number or a range such as 10:20"):
        ProblemSelection(text)


def test_task_ids_keep_the_benchmarks_order() -> None:
    few = ProblemSelection(tasks=("toy/7", "toy/2", "toy/7"))
    assert chosen(few) == (["toy/2", "toy/7"], "[toy/2,toy/7]")
    many = ProblemSelection(tasks=tuple(f"toy/{n}" for n in range(5)))
    assert chosen(many)[1] == "[5 tasks]"


def test_task_ids_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    file.write_text("# the hard ones\ntoy/3\n\n  toy/1  \n")
    assert chosen(ProblemSelection(tasks=("toy/5",), file=file))[0] == ["toy/1", "toy/3", "toy/5"]
    file.write_bytes(b"\xef\xbb\xbftoy/3\r\ntoy/1\r\n")  # as editors on Windows write it
    assert chosen(ProblemSelection(file=file))[0] == ["toy/1", "toy/3"]
    file.write_text("# none\n")
    with pytest.raises(UsageError, match="has no task ids"):
        ProblemSelection(file=file).apply(WHOLE)


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(UsageError, match=r"toy/99: is not a task of toy. Give ids such as toy/0"):
        ProblemSelection(tasks=("toy/1", "toy/99")).apply(WHOLE)


def test_one_way_of_selecting_at_a_time() -> None:
    with pytest.raises(UsageError, match="--problems: cannot be combined with --task"):
        ProblemSelection("3", tasks=("toy/1",))
