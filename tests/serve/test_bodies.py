"""Bodies that are large or hostile: they are refused in one line, and hold nobody else up."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import httpx
import pytest

from assay.serve.client_tests import MOST_CASES
from assay.serve.judge_request import MOST_VALUES, count_values
from assay.serve.options import ServeOptions
from assay.types import Limits
from tests.serve.conftest import READ_S, judge, make_options, serving
from tests.serve.test_judge import CASES, CODE, RIGHT

CASE = {"arguments": [1, 2], "expected": 3}
FLOOR_S = 1.0  # a health check on this machine, when nothing else is asked


def cases_of(count: int) -> dict[str, Any]:
    return {"entry_point": "add", "cases": [CASE] * count}


def worst_health_s(url: str, busy: threading.Thread) -> tuple[float, int]:
    """Return the longest wait for ``/health`` while a thread runs, and how often it was asked."""
    worst, count = 0.0, 0
    with httpx.Client(base_url=url, timeout=READ_S) as client:
        while busy.is_alive():
            started = time.monotonic()
            assert client.get("/health").status_code == 200
            worst, count = max(worst, time.monotonic() - started), count + 1
            time.sleep(0.005)
    return worst, count


def large_body() -> bytes:
    """Return the largest body that is accepted, about 29 MB of cases that all differ."""
    programs = []
    for number in range(25):
        cases = [
            {"arguments": [f"{number} {case} {'x' * 66}", 1], "expected": case}
            for case in range(MOST_CASES)
        ]
        programs.append({"program": RIGHT, "tests": {"entry_point": "add", "cases": cases}})
    return json.dumps({"programs": programs}).encode()


def test_health_is_answered_while_a_large_body_is_read() -> None:
    body = large_body()
    assert 28_000_000 < len(body) < 32 << 20
    assert count_values(body) <= MOST_VALUES
    with serving() as server, httpx.Client(base_url=server.url, timeout=READ_S) as client:
        took: list[float] = []

        def post() -> None:
            started = time.monotonic()
            assert client.post("/judge", content=body).status_code == 200
            took.append(time.monotonic() - started)

        busy = threading.Thread(target=post)
        busy.start()
        worst, count = worst_health_s(server.url, busy)
        busy.join()
    print(f"health waited {worst:.2f} s at most ({count} times), the request took {took[0]:.1f} s")
    assert count > 10
    assert worst < max(FLOOR_S, took[0] / 3)


def test_other_requests_are_judged_while_a_large_body_is_read() -> None:
    body = json.dumps({"programs": [{"program": RIGHT, "tests": cases_of(MOST_CASES)}] * 60})
    with serving() as server, httpx.Client(base_url=server.url, timeout=READ_S) as client:
        judge(client, [{"program": RIGHT, "tests": CASES}])  # starts the worker
        busy = threading.Thread(
            target=lambda: httpx.post(f"{server.url}/judge", content=body, timeout=READ_S)
        )
        busy.start()
        found = judge(client, [{"program": RIGHT, "tests": CASES}])
        busy.join()
    assert found[0]["status"] == "pass"


@pytest.mark.parametrize("kind", ["cases", "stdin_cases", "native"])
def test_a_program_has_a_limited_number_of_cases(client: httpx.Client, kind: str) -> None:
    count = MOST_CASES + 1
    tests: dict[str, Any] = {
        "cases": cases_of(count),
        "stdin_cases": {"stdin_cases": [{"input": "1", "output": "2"}] * count},
        "native": {
            "native": {
                "entry_point": "f",
                "code": "",
                "cases": {"inputs": {"a": [[1]] * count}, "expected": {"a": [1] * count}},
            }
        },
    }[kind]
    response = client.post("/judge", json={"programs": [{"program": RIGHT, "tests": tests}]})
    assert response.status_code == 400
    assert "10,001 are more than 10,000 for one program" in response.json()["detail"]


@pytest.mark.parametrize("part", ["[],", "1,", '{"a":{}},', '"",'])
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    client: httpx.Client, part: str
) -> None:
    body = '{"programs":[' + part * (MOST_VALUES + 1) + "1]}"
    response = client.post("/judge", content=body)
    assert response.status_code == 413
    assert response.json()["detail"].startswith("body: has more than 2,000,000 values.")
    assert client.post("/run_code", content=body).status_code == 422


def test_separators_in_texts_are_not_values(client: httpx.Client) -> None:
    text = ',[{:\\"' * 600_000
    body = json.dumps({"programs": [{"program": f"{RIGHT}T = {text!r}\n", "tests": CODE}]})
    assert sum(map(body.count, ",[{:")) > MOST_VALUES
    assert count_values(body.encode()) < 20
    assert client.post("/judge", content=body).json()["verdicts"][0]["status"] == "pass"


HOSTILE: dict[str, str] = {
    "deep tests": '{"programs":[{"program":"","tests":' + "[" * 900 + "]" * 900 + "}]}",
    "deep arguments": '{"programs":[{"program":"","tests":{"entry_point":"f","cases":'
    '[{"arguments":[' + "[" * 900 + "]" * 900 + '],"expected":1}]}}]}',
    "deep named tests": '{"programs":[{"program":"","tests":"sha256:1"}],"named_tests":{"sha256:1":'
    + "[" * 900 + "]" * 900 + "}}",
    "very deep": "[" * 500_000,
    "digits": '{"programs":[{"program":"","tests":{"code":"1"},"limits":{"cpu_s":'
    + "9" * 5000 + "}}]}",
    "digits of a name": '{"programs":[{"id":' + "9" * 4200 + ',"program":1}]}',
    "infinite": '{"programs":[{"program":"","tests":{"code":"1"},"limits":{"cpu_s":1e999}}]}',
    "not a number": '{"programs":[{"program":"","tests":{"entry_point":"f","cases":[],'
    '"tolerance":NaN}}]}',
    "programs of wrong types": '{"programs":[1,null,[],{}]}',
    "a hundred thousand programs": '{"programs":[' + "{}," * 100_000 + "{}]}",
    "half a surrogate": '{"programs":[{"task_id":"\\ud800","program":"","tests":{"code":"1"}}]}',
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("route", ["/judge", "/run_code", "/submit", "/list_ids"])
def test_a_hostile_body_is_refused_in_one_line(client: httpx.Client, route: str, case: str) -> None:
    response = client.post(route, content=HOSTILE[case])
    if case == "deep arguments" and response.status_code == 200:  # Python 3.12 parses them
        assert response.json()["verdicts"][0]["status"] == "fail"
        return
    assert response.status_code in (400, 413, 422), response.text
    assert "\n" not in str(response.json()["detail"])


def test_limits_are_rounded_so_that_few_workers_are_started() -> None:
    options = make_options()
    found = {
        options.round_limits(Limits(memory_mb=m, processes=p, files_mb=f))
        for m in range(16, 4097)
        for p, f in ((m % 256 + 1, m % 512 + 1),)
    }
    assert len({one.memory_mb for one in found}) == 9
    assert len({one.processes for one in found}) == 9
    assert len({one.files_mb for one in found}) == 10
    given = Limits(memory_mb=300, processes=3, files_mb=65)
    rounded = options.round_limits(given)
    assert (rounded.memory_mb, rounded.processes, rounded.files_mb) == (512, 4, 128)
    small = ServeOptions(limits=Limits(memory_mb=300, processes=3, files_mb=65))
    assert small.round_limits(given) == given  # never more than the server allows


def test_the_limits_of_benchmarks_are_not_rounded() -> None:
    from assay.benchmarks import bigcodebench, canitedit, leetcodedataset, livecodebench
    from assay.benchmarks.support import evalplus

    options = ServeOptions()
    known = [m.LIMITS for m in (bigcodebench, canitedit, leetcodedataset, livecodebench, evalplus)]
    for limits in (Limits(), *known):
        assert options.round_limits(limits) == limits


def test_limits_that_differ_per_program_share_a_worker(client: httpx.Client) -> None:
    program = "import os\ndef add(a, b):\n    return a + b\n"
    programs = [
        {"program": program, "tests": CODE, "limits": {"memory_mb": 300 + n, "cpu_s": 5 + n / 100}}
        for n in range(40)
    ]
    started = time.monotonic()
    found = judge(client, programs)
    assert {v["status"] for v in found} == {"pass"}
    assert time.monotonic() - started < 60
