"""Tests in the columns of a dataset: what is read, what is refused, how assertions are counted."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data import text_cases
from assay.data.test_code import call_tests
from assay.errors import UsageError
from assay.reward.tests import BenchmarkTask, own_problem, read_task, split
from assay.types import Problem, Tests

CASES = {"entry_point": "add", "cases": [{"arguments": [1, 2], "expected": 3}]}
STDIN = {"stdin_cases": [{"input": "1 2\n", "output": "3\n"}]}
CODE = {"code": "assert add(1, 2) == 3\nassert add(0, 0) == 0"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Mbpp/1", BenchmarkTask("mbpp", "Mbpp/1")),
        ({"task_id": "mini/0", "benchmark": "mini"}, BenchmarkTask("mini", "mini/0")),
        ('{"task_id": "Mbpp/2"}', BenchmarkTask("mbpp", "Mbpp/2")),
        ({"task_id": "Mbpp/3", "benchmark": None, "tests": None}, BenchmarkTask("mbpp", "Mbpp/3")),
    ],
)  # fmt: skip
def test_a_task_of_a_benchmark_is_named(given: object, expected: BenchmarkTask) -> None:
    assert read_task(given, "mbpp") == expected


@pytest.mark.parametrize("fields", [CASES, STDIN, CODE])
def test_json_and_an_object_are_the_same_tests(fields: dict[str, Any]) -> None:
    found = read_task(json.dumps(fields))
    assert isinstance(found, Problem)
    assert found == read_task(fields)
    assert found.tests.integrity == "separated"
    assert read_task(json.dumps(fields)) is found  # read once, so that a sandbox knows it again


def test_fields_that_a_table_leaves_empty_do_not_count() -> None:
    assert own_problem({**CODE, "cases": None, "tolerance": None}) == own_problem(CODE)


def test_different_tests_are_different_tasks() -> None:
    other = {**CASES, "cases": [{"arguments": [1, 2], "expected": 4}]}
    exact = {**STDIN, "comparison": "exact"}
    tolerant = {**STDIN, "comparison": "tolerant"}
    found = [own_problem(fields).task_id for fields in (CASES, other, exact, tolerant, CODE)]
    assert len(set(found)) == 5
    assert own_problem(exact).task_id == own_problem(STDIN).task_id


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "not a task id or tests"),
        ("", "not a task id or tests"),
        ({}, "neither tests nor a task id"),
        ("{broken", "not valid JSON"),
        ({"cases": []}, "cases without entry_point"),
        ({"cases": [], "entry_point": "f"}, "there are no cases"),
        ({"cases": [{"arguments": 1, "expected": 1}], "entry_point": "f"}, "list of arguments"),
        ({"cases": [{"input": 1}], "entry_point": "f"}, "objects with arguments and expected"),
        ({**CASES, "entrypoint": "f"}, "unknown field 'entrypoint'"),
        ({"stdin_cases": [{"input": "1", "output": "\n"}]}, "every program passes"),
        ({"stdin_cases": [{"input": "1", "output": 2}]}, "is not text"),
        ({**CASES, "tolerance": float("inf")}, "tolerance: is not from 0 to"),
        ({**CASES, "tolerance": float("nan")}, "tolerance: is not from 0 to"),
        ({**CASES, "tolerance": -1}, "tolerance: is not from 0 to"),
        ({**CASES, "tolerance": "a lot"}, "is not a number"),
        ({**STDIN, "comparison": "roughly"}, "comparison 'roughly': unknown"),
        ({"code": "assert add(1, 2 == 3"}, "no test code"),
        ({"code": "x = 1"}, "no test code"),
        ({"inputs": ["1"], "outputs": []}, "1 inputs and 0 outputs"),
        ({"inputs": ["1"]}, "not lists"),
    ],
)
def test_what_is_wrong_is_said(given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_task(given, "mbpp")


def test_a_task_id_needs_a_benchmark() -> None:
    with pytest.raises(UsageError, match="task 'Mbpp/1': its benchmark is not known"):
        read_task("Mbpp/1")


def test_the_rows_of_verl_are_read() -> None:
    stdin = own_problem({"inputs": ["1 2\n"], "outputs": ["3\n"], "time_limit": 1}).tests
    assert stdin.texts is not None
    assert text_cases.unpack(stdin.texts) == [("1 2\n", "3\n")]
    called = own_problem({"fn_name": "add", "inputs": ["1\n2"], "outputs": ["3"]}).tests
    assert called.cases is not None
    assert called.cases.inputs == {"cases": [[1, 2]]}
    assert called.cases.expected == {"cases": [3]}
    asserted = own_problem({"assert_case": ["assert add(1, 2) == 3"], "inputs": [""]}).tests
    assert asserted.entry_point == "add"


def same(expected: object, got: object, tolerance: float = 0.0, wrapped: bool = False) -> bool:
    namespace: dict[str, Any] = {}
    exec(call_tests("f", [], tolerance, wrapped=wrapped).code, namespace)
    return bool(namespace["matcher"]()([], expected, got))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def with_tuples(value: object) -> object:
    if isinstance(value, list):
        return tuple(map(with_tuples, value))
    if isinstance(value, dict):
        return {key: with_tuples(item) for key, item in value.items()}
    return value


@given(JSON, JSON)
def test_values_match_if_they_are_equal_in_json(one: object, other: object) -> None:
    assert same(one, with_tuples(one))
    assert same(one, other) == (one == other)


def test_a_tolerance_is_only_for_floats() -> None:
    assert not same(0.3, 0.1 + 0.2)
    assert same(0.3, 0.1 + 0.2, tolerance=1e-9)
    assert same([1e9], [1e9 + 0.5], tolerance=1e-9)
    assert not same(1, 2, tolerance=10.0)


def test_only_rows_of_verl_may_wrap_an_output() -> None:
    assert same([3], 3, wrapped=True)
    assert same([3], [3], wrapped=True)
    assert not same([3], 3)
    assert not same([3, 4], 3, wrapped=True)


ASSERTION = st.builds("assert f({}) == {}".format, st.integers(), st.integers())
OTHER = st.builds("x{} = {}".format, st.integers(0, 9), st.integers())


@given(st.lists(ASSERTION | OTHER, max_size=8))
def test_splitting_keeps_every_assertion_once(lines: list[str]) -> None:
    whole = Tests("f", "\n".join(lines), preamble="import math", integrity="separated")
    parts = split(whole)
    asserts = [
        ast.unparse(node) for node in ast.parse(whole.code).body if isinstance(node, ast.Assert)
    ]
    if len(asserts) < 2:
        assert parts == (whole,)
        return
    found = [ast.parse(part.code).body for part in parts]
    assert [ast.unparse(body[-1]) for body in found] == asserts
    assert not any(isinstance(node, ast.Assert) for body in found for node in body[:-1])
    assert {(part.entry_point, part.preamble, part.integrity) for part in parts} == {
        ("f", "import math", "separated")
    }


def test_cases_are_counted_by_the_sandbox_and_not_split() -> None:
    for fields in (CASES, STDIN):
        tests = own_problem(fields).tests
        assert split(tests) == (tests,)
