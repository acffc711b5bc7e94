"""The words for a failed program, made of the data of its verdict, and where that data goes."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.data import codec
from assay.data.failures import explain_failure
from assay.judging import wire
from assay.runs import VerdictCache
from assay.runs.folder import encode_judged
from assay.sandbox.host import verdicts
from assay.sandbox.host.report import WorkerReport
from assay.sandbox.inside.judging.messages import Result, read_result
from assay.sandbox.judges import judge_messages  # noqa: F401 - it changes how verdicts are pickled
from assay.types import Job, Program, Tests, Verdict

FAILED = Verdict("t", 0, "fail", "wrong-answer")
OF_CASE = replace(FAILED, call="f(1)", expected="'1, got 2'", actual="[1, …]", difference="at [0]")
OF_SCRIPT = replace(FAILED, input="1 2", expected="3", actual="")
OLD = replace(FAILED, detail="expected 3, got 2")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"expected": "6", "actual": "5"}, "expected 6, got 5"),
        ({"expected": "[…]", "actual": "[…]", "difference": "at [9]: 1, 2"},
         "expected […], got […] (at [9]: 1, 2)"),
        ({"detail": "AssertionError", "call": "f(1)", "actual": "3"},
         "AssertionError: f(1) gave 3"),
        ({"input": "", "expected": "3", "actual": "2\n"}, "expected '3', printed '2\\n'"),
        ({"input": "1 2", "expected": "3", "actual": ""}, "expected '3', printed nothing"),
        ({"detail": "wrong-answer", "expected": "6", "actual": "5"},
         "wrong-answer: expected 6, got 5"),
        ({"detail": "ValueError: no", "call": "f(1)"}, "ValueError: no"),
        ({"detail": "left with exit code 3", "input": "1 2"}, "left with exit code 3"),
        ({"detail": "expected 3, got 2"}, "expected 3, got 2"),
    ],
)  # fmt: skip
def test_words_follow_from_the_data(data: dict[str, Any], words: str) -> None:
    assert explain_failure(replace(FAILED, **data)) == words


@pytest.mark.parametrize("verdict", [OF_CASE, OF_SCRIPT, OLD])
def test_every_channel_carries_the_data(verdict: Verdict, tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(verdict)) == verdict  # a judge process, a cluster's node
    line = json.loads(wire.encode_verdict(verdict))  # a judge service
    assert wire.decode_verdict(line, "t", 0) == verdict
    assert codec.from_json(Verdict, json.loads(encode_judged(verdict).verdict_line)) == verdict
    cache, job = VerdictCache(tmp_path), Job("t", 0, Program("", ""), Tests("f", ""))
    cache.put(cache.key(job), verdict)
    assert cache.get(cache.key(job), job) == verdict


def test_only_what_is_known_is_written() -> None:
    """Lines of earlier versions, and of programs that pass, have none of these fields."""
    compared = {"call", "expected", "actual", "difference", "input"}
    for line in (wire.encode_verdict(OLD), encode_judged(OLD).verdict_line):
        assert not compared.intersection(json.loads(line))
    assert compared.intersection(json.loads(wire.encode_verdict(OF_SCRIPT))) == {
        "expected", "actual", "input",
    }  # fmt: skip


def test_a_workers_result_becomes_a_verdict_with_the_data() -> None:
    result = Result("fail", "wrong-answer", call="f(1)", expected="2", actual="3", difference="x")
    report = WorkerReport(
        None, 0, "answered", False, 0.1, 0.1, 5.0, "",
        oracle_result=read_result(json.loads(json.dumps(result))),
    )  # fmt: skip
    job = Job("t", 0, Program("", ""), Tests("f", "", integrity="separated"))
    verdict = verdicts.verdict_of(job, report)
    assert (verdict.call, verdict.expected, verdict.actual) == ("f(1)", "2", "3")
    assert (verdict.difference, verdict.input) == ("x", None)
    killed = verdicts.verdict_of(job, replace(report, out_of_memory=True))
    assert (killed.reason, killed.call) == ("memory", "f(1)")
    assert (killed.expected, killed.actual, killed.difference) == (None, None, None)
    assert explain_failure(killed) == "used more than 512 MB"
