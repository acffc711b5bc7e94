"""``POST /judge``: verdicts on programs and completions, by benchmarks and by tests of clients."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from assay.types import Benchmark
from tests.serve.conftest import judge, serving

RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
CODE = {"entry_point": "add", "code": "assert add(1, 2) == 3\nassert add(0, 0) == 0\n"}
SHARED = {"code": "assert add(1, 2) == 3\n"}
CASES = {
    "entry_point": "add",
    "cases": [{"arguments": [1, 2], "expected": 3}, {"arguments": [0, 0], "expected": 0}],
}
STDIN = {"stdin_cases": [{"input": "1 2\n", "output": "3\n"}, {"input": "0 0\n", "output": "0\n"}]}
SCRIPT = "a, b = map(int, input().split())\nprint(a + b)\n"
KINDS = {"code": (CODE, RIGHT), "shared": (SHARED, RIGHT), "cases": (CASES, RIGHT),
         "stdin": (STDIN, SCRIPT)}  # fmt: skip
CHEATS = {
    "exits": "import sys\nsys.exit(0)\n",
    "leaves": "import os\nos._exit(0)\n",
    "prints": "print('passed')\nprint('3')\nprint('OK')\n",
    "claims success at exit": "import atexit, os\natexit.register(os._exit, 0)\nraise SystemExit\n",
    "equals everything": "class A:\n    __eq__ = lambda *_: True\nadd = lambda *_: A()\n",
    "silences assertions": "import builtins\nbuiltins.AssertionError = BaseException\n",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_program_passes_by_tests_of_every_kind(client: httpx.Client, kind: str) -> None:
    tests, program = KINDS[kind]
    (verdict,) = judge(client, [{"program": program, "tests": tests}])
    assert (verdict["status"], verdict["reason"]) == ("pass", "passed")
    assert verdict["passed"] == verdict["total"] >= 1
    assert verdict["integrity"] == ("shared" if kind == "shared" else "separated")
    assert verdict["cpu_s"] > 0
    assert verdict["peak_mb"] > 0


@pytest.mark.parametrize("cheat", CHEATS)
@pytest.mark.parametrize("kind", ["code", "cases", "stdin"])
def test_cheats_that_fool_an_exit_code_earn_nothing(
    client: httpx.Client, kind: str, cheat: str
) -> None:
    (verdict,) = judge(client, [{"program": CHEATS[cheat], "tests": KINDS[kind][0]}])
    assert verdict["status"] == "fail", verdict
    assert verdict["passed"] == 0


@pytest.mark.parametrize("cheat", ["exits", "leaves", "prints"])
def test_leaving_earns_nothing_next_to_shared_tests(client: httpx.Client, cheat: str) -> None:
    (verdict,) = judge(client, [{"program": CHEATS[cheat], "tests": SHARED}])
    assert verdict["status"] == "fail"


def test_partial_credit_counts_cases(client: httpx.Client) -> None:
    found = judge(
        client,
        [{"program": WRONG, "tests": CASES}, {"program": "print(3)", "tests": STDIN},
         {"program": WRONG, "tests": CODE}],
    )  # fmt: skip
    assert [(v["passed"], v["total"]) for v in found] == [(1, 2), (1, 2), (0, 1)]


def test_tuples_and_close_numbers_match_where_json_has_others(client: httpx.Client) -> None:
    cases = [{"arguments": [1], "expected": [1, 0.3]}]
    tests = {"entry_point": "f", "cases": cases}
    program = "def f(x):\n    return (x, 0.1 + 0.2)\n"
    exact, tolerant = judge(
        client,
        [
            {"program": program, "tests": tests},
            {"program": program, "tests": {**tests, "tolerance": 1e-6}},
        ],
    )
    assert [v["status"] for v in (exact, tolerant)] == ["fail", "pass"]


def test_references_and_failing_programs_of_a_benchmark(
    client: httpx.Client, humaneval: Benchmark
) -> None:
    problems = humaneval.problems[:5]
    programs = [{"task_id": p.task_id, "program": p.reference} for p in problems]
    programs += [{"task_id": p.task_id, "program": "import os; os._exit(0)"} for p in problems]
    found = judge(client, programs, benchmark="humaneval")
    assert [v["status"] for v in found] == ["pass"] * 5 + ["fail"] * 5
    assert [v["task_id"] for v in found[:5]] == [p.task_id for p in problems]


def test_a_completion_is_extracted_and_the_rule_is_named(client: httpx.Client) -> None:
    text = f"Here it is:\n\n```python\n{RIGHT}```\nIt adds."
    (verdict,) = judge(client, [{"completion": text, "tests": CASES}], with_program=True)
    assert (verdict["status"], verdict["rule"]) == ("pass", "fenced")
    assert verdict["program"] == RIGHT
    found = judge(client, [{"completion": "I cannot.", "tests": CASES, "truncated": True}])
    assert (found[0]["status"], found[0]["rule"]) == ("fail", "none")
    assert found[0]["reason"] == "truncated"


def test_verdicts_come_in_the_order_of_the_programs_with_the_clients_ids(
    client: httpx.Client,
) -> None:
    programs = [
        {"id": f"p{n}", "program": RIGHT if n % 3 else WRONG, "tests": "one"} for n in range(12)
    ]
    found = judge(client, programs, named_tests={"one": CASES})
    assert [v["id"] for v in found] == [f"p{n}" for n in range(12)]
    assert [v["index"] for v in found] == list(range(12))
    assert [v["status"] for v in found] == ["pass" if n % 3 else "fail" for n in range(12)]


@pytest.mark.parametrize("way", ["header", "field"])
def test_verdicts_are_streamed_when_asked(client: httpx.Client, way: str) -> None:
    body: dict[str, Any] = {"programs": [{"program": RIGHT, "tests": CODE}] * 5}
    headers = {"Accept": "application/x-ndjson"} if way == "header" else {}
    if way == "field":
        body["stream"] = True
    response = client.post("/judge", json=body, headers=headers)
    assert response.headers["content-type"].startswith("application/x-ndjson")
    *lines, last = map(json.loads, response.text.splitlines())
    assert sorted(line["index"] for line in lines) == list(range(5))
    assert last["end"] is True
    assert last["count"] == 5
    assert last["judge"]["tier"]


def test_limits_of_a_request_hold(client: httpx.Client) -> None:
    loop = {"program": "while True:\n    pass\n", "tests": SHARED, "limits": {"cpu_s": 0.5}}
    (verdict,) = judge(client, [loop])
    assert verdict["reason"] == "timeout"
    assert "0.5 s" in verdict["detail"]


BAD = {
    "no programs": ({"programs": []}, "programs: needs"),
    "unknown field": ({"programs": [{"program": "", "tests": CODE, "x": 1}]}, "unknown field 'x'"),
    "unknown common field": ({"programs": [{}], "testz": {}}, "unknown field 'testz'"),
    "both": ({"programs": [{"program": "", "completion": "", "tests": CODE}]}, "either"),
    "no tests": ({"programs": [{"program": ""}]}, "give tests, or a benchmark"),
    "limits": (
        {"programs": [{"program": "", "tests": CODE}], "limits": {"cpu_s": 1e9}},
        "limits.cpu_s: 1e+09 is more than this server's 600",
    ),
    "two kinds": ({"programs": [{"program": "", "tests": {**CODE, **CASES}}]}, "exactly one"),
    "no entry point": ({"programs": [{"completion": "x", "tests": SHARED}]}, "entry_point"),
    "not Python": (
        {"programs": [{"program": "", "tests": {"entry_point": "f", "code": "def ("}}]},
        "is not valid Python",
    ),
    "task": (
        {"programs": [{"program": "", "benchmark": "mini", "task_id": "nobody"}]},
        "'nobody' is not a task of mini",
    ),
    "name": ({"programs": [{"program": "", "tests": "nobody"}]}, "is not in named_tests"),
    "flag": ({"programs": [{"program": "", "tests": CODE}], "stream": "no"}, "stream: is not true"),
    "flag of one": (
        {"programs": [{"program": "", "tests": CODE, "truncated": 1}]}, "truncated: is not true"
    ),
    "long code": (
        {"programs": [{"program": "", "tests": {"code": "1\n" * 140_000, "entry_point": "f"}}]},
        "tests.code: is longer than 262144 characters with its preamble",
    ),
    "long id": ({"programs": [{"program": "", "tests": CODE, "id": "x" * 501}]}, "longer than 500"),
    "id": ({"programs": [{"program": "", "tests": CODE, "id": [1]}]}, "id: is not a text"),
    "half a character": (
        {"programs": [{"program": RIGHT, "tests": CODE, "task_id": "\ud800"}]},
        "task_id: is not valid Unicode",
    ),
    "tolerance": (
        {"programs": [{"program": "", "tests": {**CASES, "tolerance": 10**400}}]}, "not from 0 to"
    ),
    "no output": (
        {"programs": [{"program": "", "tests": {"stdin_cases": [{"input": "", "output": "\n"}]}}]},
        "expect no output",
    ),
    **{
        f"limit {name}={value!s:.8}": (
            {"programs": [{"program": "", "tests": CODE}], "limits": {name: value}},
            f"limits.{name}: {expected}",
        )
        for name, value, expected in (
            ("memory_mb", float("-inf"), "must be above 0"),
            ("memory_mb", 1, "must be at least 16"),
            ("cpu_s", -(10**400), "must be above 0"),
            ("cpu_s", float("nan"), "is not a number"),
            ("wall_s", float("inf"), "1.09951e+12 is more than"),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_request_is_refused_in_one_line(client: httpx.Client, case: str) -> None:
    body, expected = BAD[case]
    response = client.post("/judge", content=json.dumps(body))  # JSON of Python: it may have NaN
    assert response.status_code == 400
    assert expected in response.json()["detail"]


def test_bodies_that_are_not_json_are_refused(client: httpx.Client) -> None:
    for body in (b"{", b"[]", b"[" * 100_000, b'"\xff"'):
        response = client.post("/judge", content=body)
        assert response.status_code == 400, body


def test_unknown_benchmarks_are_not_found(client: httpx.Client) -> None:
    programs = [{"program": "", "task_id": "1"}]
    assert client.post("/judge", json={"programs": programs, "benchmark": "no"}).status_code == 404
    assert client.get("/benchmarks/no").status_code == 404


def test_large_batches_and_bodies_are_refused() -> None:
    with serving(batch=2, body_mb=1) as server, httpx.Client(base_url=server.url) as client:
        many = client.post("/judge", json={"programs": [{"program": "", "tests": CODE}] * 3})
        assert (many.status_code, "more than the 2" in many.text) == (400, True)
        assert client.post("/judge", content=b" " * (2 << 20)).status_code == 413
        pieces = (b" " * (1 << 16) for _ in range(40))  # without a Content-Length
        assert client.post("/judge", content=pieces).status_code == 413


def test_tests_can_be_sent_once_and_named_by_their_digest(client: httpx.Client) -> None:
    from assay.judging.wire import name_tests

    tests = {**CASES, "tolerance": 0.125}
    name = name_tests(tests)[0]
    programs = [{"program": RIGHT, "tests": name}]
    unknown = client.post("/judge", json={"programs": programs})
    assert (unknown.status_code, unknown.json()["unknown_tests"]) == (409, [name])
    assert judge(client, programs, named_tests={name: tests})[0]["status"] == "pass"
    assert judge(client, programs)[0]["status"] == "pass"
    forged = client.post("/judge", json={"programs": programs, "named_tests": {name: CODE}})
    assert (forged.status_code, "is not the digest" in forged.text) == (400, True)


def test_nobody_chooses_the_digest_that_an_oracle_caches_tests_by(client: httpx.Client) -> None:
    def native(expected: int) -> dict[str, Any]:
        cases = {"inputs": {"a": [[1, 2]]}, "expected": {"a": [expected]}, "digest": "the same"}
        code = "def matcher():\n    return lambda arguments, expected, got: expected == got\n"
        return {
            "native": {
                "entry_point": "add", "code": code, "integrity": "separated",
                "cases": {**cases, "slowest_s": 0.0},
            }
        }  # fmt: skip

    found = judge(client, [{"program": RIGHT, "tests": native(n)} for n in (3, 4, 3, 4)])
    assert [v["status"] for v in found] == ["pass", "fail", "pass", "fail"]


def test_health_ready_and_metrics(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"ready": True}
    judge(client, [{"program": WRONG, "tests": CODE}])
    text = client.get("/metrics").text
    assert 'assay_programs_total{status="fail",reason="wrong-answer"}' in text
    assert 'assay_requests_total{route="/judge",status="200"}' in text
    assert 'assay_request_seconds_bucket{route="/judge",le="+Inf"}' in text
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        assert line.startswith("# ") or (name.startswith("assay_") and float(value) >= 0)


def test_many_completions_and_programs_at_once(client: httpx.Client) -> None:
    text = f"```python\n{RIGHT}```"
    programs: list[dict[str, Any]] = []
    for number in range(30):
        kind = "completion" if number % 2 else "program"
        programs.append({kind: text if number % 2 else WRONG, "tests": CASES})
    found = judge(client, programs)
    assert [v["status"] for v in found] == ["fail", "pass"] * 15


def test_a_program_that_was_cut_in_doubt_is_judged_in_both_forms(client: httpx.Client) -> None:
    from tests.judging.test_alternatives import FUNCTION
    from tests.judging.test_alternatives import RIGHT as SHOWN_RIGHT
    from tests.judging.test_alternatives import WRONG as SHOWN_WRONG

    name = "celsius_to_fahrenheit"
    tests = {"entry_point": name, "cases": [{"arguments": [100], "expected": 212}]}
    shown = f"print({name}(100))\n"
    found = judge(
        client,
        [{"completion": f"```python\n{FUNCTION}{line}{shown}```", "tests": tests}
         for line in (SHOWN_RIGHT, SHOWN_WRONG)],
        with_program=True,
    )  # fmt: skip
    assert [v["status"] for v in found] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"imports": ["ensurepip"]}, "imports: 'ensurepip' is not of a benchmark"),
        ({"tests": {}}, "tests.preamble: the code before scripts is not of a benchmark"),
    ],
)  # fmt: skip
def test_clients_choose_nothing_that_runs_before_a_worker_is_isolated(
    client: httpx.Client, fields: dict[str, Any], expected: str
) -> None:
    from assay.data import text_cases
    from assay.judging.wire import encode_tests
    from assay.types import Tests

    one: dict[str, Any] = {"program": "", "tests": CASES, **fields}
    if "tests" in fields:
        texts = text_cases.pack([("1", "2")])
        script = Tests("", "", "import os", "separated", texts=texts)
        one["tests"] = {"native": encode_tests(script)}
    response = client.post("/judge", json={"programs": [one]})
    assert response.status_code == 400
    assert expected in response.json()["detail"]


def native(**changes: Any) -> dict[str, Any]:
    """Return tests in full, as a remote sandbox sends them."""
    cases = {"inputs": {"a": [[1, 2]]}, "expected": {"a": [3]}, "digest": "", "slowest_s": 0.0}
    code = "def matcher():\n    return lambda arguments, expected, got: expected == got\n"
    tests = {"entry_point": "add", "code": code, "integrity": "separated", "cases": cases}
    return {"native": {**tests, **changes}}


TEXTS = {"digest": "", "style": "stdin", "comparison": "exact", "run_all": False}
MALFORMED: dict[str, dict[str, Any]] = {
    "an answer": {"answer": {"kind": "nonsense", "function": ""}},
    "groups": {"cases": {"inputs": {"a": [[1]]}, "expected": {"b": [1]}, "digest": ""}},
    "numbers": {"cases": {"inputs": {"a": [[1]]}, "expected": {"a": [1, 2]}, "digest": ""}},
    "not packed": {"cases": None, "texts": {**TEXTS, "packed": ["AAAA"]}},
    "not cases": {"cases": None, "texts": {**TEXTS, "packed": ["eJwDAAAAAAE="]}},
    "not base64": {"cases": None, "texts": {**TEXTS, "packed": ["?"]}},
    "a wrong type": {"code": 1},
    "an unknown field": {"x": 1},
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_tests_are_refused_before_they_reach_a_worker(
    client: httpx.Client, case: str
) -> None:
    good = {"program": RIGHT, "tests": native()}
    bad = {"program": RIGHT, "tests": native(**MALFORMED[case])}
    response = client.post("/judge", json={"programs": [good, bad]})
    assert response.status_code == 400, response.text
    assert "programs[1]" in response.json()["detail"]
    assert judge(client, [good])[0]["status"] == "pass"


def test_test_code_that_is_hard_to_parse_is_refused(client: httpx.Client) -> None:
    for code in ("(" * 100_000, "x" * (2 << 20), "f(" + "-" * 90_000 + "1)"):
        tests = {"entry_point": "f", "code": code}
        response = client.post("/judge", json={"programs": [{"program": "", "tests": tests}]})
        assert response.status_code == 400, response.text[:200]
