"""SandboxFusion's API: its own client and its own tests, and verl's requests."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from assay.serve.backlog import FullError
from assay.serve.fusion.requests import LANGUAGES
from assay.serve.server import JudgeServer
from assay.types import Benchmark
from tests.serve.conftest import judge

fusion = pytest.importorskip("sandbox_fusion")
HELLO = base64.b64encode(b'"hello, this is a test"').decode()


@pytest.fixture(autouse=True)
def _endpoint(server: JudgeServer) -> Iterator[None]:
    fusion.set_endpoint(server.url)
    yield
    fusion.set_endpoint("http://localhost:8080")


def run(code: str, language: str = "python", **fields: Any) -> Any:
    return fusion.run_code(
        fusion.RunCodeRequest(code=code, language=language, **fields), max_attempts=1
    )


# From SandboxFusion's own sandbox/tests/runners/test_python.py and test_bash.py.
@pytest.mark.parametrize(
    ("language", "code"), [("python", "print(123)"), ("bash", "echo 123")]
)  # fmt: skip
def test_output_is_returned(language: str, code: str) -> None:
    result = run(code, language, run_timeout=5)
    assert (result.status, result.run_result.stdout) == ("Success", "123\n")
    assert result.run_result.return_code == 0
    assert 0 < result.run_result.execution_time < 5
    assert result.compile_result is None


@pytest.mark.parametrize(
    ("language", "code"),
    [("python", "import time; time.sleep(2)"), ("bash", "sleep 2")],
)
def test_time_limits_hold(language: str, code: str) -> None:
    result = run(code, language, run_timeout=0.3)
    assert (result.status, result.run_result.status) == ("Failed", "TimeLimitExceeded")
    assert result.run_result.return_code is None


def test_output_before_a_time_limit_is_returned() -> None:
    result = run("import time; print('so far', flush=True); time.sleep(5)", run_timeout=0.5)
    assert result.run_result.stdout == "so far\n"


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("python", "assert 1 == 2", "AssertionError"),
        ("python", "int a = 1", "SyntaxError: invalid syntax"),
        ("python", "import sys; sys.exit('sorry')", "sorry"),
        ("bash", "if [", "syntax error"),
    ],
)
def test_failures_are_returned(language: str, code: str, expected: str) -> None:
    result = run(code, language, run_timeout=5)
    assert (result.status, result.run_result.status) == ("Failed", "Finished")
    assert result.run_result.return_code != 0
    assert expected in result.run_result.stderr


@pytest.mark.parametrize(
    ("language", "code"),
    [("python", "print(open('dir1/dir2/flag').read())"), ("bash", "cat dir1/dir2/flag")],
)
def test_files_are_there(language: str, code: str) -> None:
    result = run(code, language, files={"dir1/dir2/flag": HELLO})
    assert (result.status, "hello, this is a test" in result.run_result.stdout) == ("Success", True)


def test_files_are_fetched() -> None:
    code = "open('a.txt', 'w').write('secret'); open('/tmp/b', 'w').write('sauce')"
    result = run(code, fetch_files=["a.txt", "/tmp/b", "missing", "no\0file"])
    found = {name: base64.b64decode(data) for name, data in result.files.items()}
    assert found == {"a.txt": b"secret", "/tmp/b": b"sauce"}


@pytest.mark.parametrize(
    ("language", "code"), [("python", "print(int(input()))"), ("bash", "read x; echo $x")]
)
def test_standard_input_is_given(language: str, code: str) -> None:
    assert run(code, language, stdin="65535").run_result.stdout == "65535\n"


def test_a_module_of_the_request_can_be_imported() -> None:
    files = {"helper.py": base64.b64encode(b"VALUE = 7").decode()}
    code = "import helper\nif __name__ == '__main__':\n    print(helper.VALUE)\n"
    assert run(code, files=files).run_result.stdout == "7\n"


def test_a_traceback_is_the_interpreters() -> None:
    error = run("def f():\n    return 1 / 0\n\nf()\n").run_result.stderr
    assert error.startswith("Traceback (most recent call last):\n  File ")
    assert error.endswith("ZeroDivisionError: division by zero\n")
    assert error.count("File ") == 2  # none of the harness


def test_large_outputs_and_inputs_cross_in_full() -> None:
    result = run("import sys; data = sys.stdin.read(); print(len(data)); print('x' * 500_000)",
                 stdin="y" * 3_000_000)  # fmt: skip
    assert result.run_result.stdout == f"3000000\n{'x' * 500_000}\n"


def test_exit_code_zero_is_success_as_it_is_there() -> None:
    """The documented weakness of this route. ``/judge`` is the safe one."""
    assert run("import sys; sys.exit(0)\nassert False").status == "Success"


def test_a_program_that_kills_its_runner_does_not_succeed() -> None:
    result = run("import os, signal; os.kill(os.getppid(), signal.SIGKILL)")
    assert (result.status, result.run_result.return_code) == ("Failed", -9)


@pytest.mark.parametrize("language", ["cpp", "go", "lean"])
def test_a_language_that_is_not_installed_is_the_sandboxs_error(language: str) -> None:
    with pytest.raises(Exception, match="no runner for the language"):
        run("x", language)


def test_a_bad_request_has_fastapis_form(client: httpx.Client) -> None:
    for body, name, kind in (
        ({"code": "x", "language": "cobol"}, "language", "literal_error"),
        ({"language": "python"}, "code", "missing"),
        ({"code": "x", "language": "python", "run_timeout": 1e6}, "run_timeout", "value_error"),
        ({"code": "x", "language": "python", "run_timeout": 10**400}, "run_timeout", "value_error"),
    ):
        response = client.post("/run_code", json=body)
        assert response.status_code == 422
        (detail,) = response.json()["detail"]
        assert (detail["loc"], detail["type"]) == (["body", name], kind)


def test_ping_and_datasets(client: httpx.Client) -> None:
    assert client.get("/v1/ping").json() == "pong"
    assert {"humaneval", "mbpp", "mini"} <= set(client.get("/list_datasets").json())
    ids = client.post("/list_ids", json={"dataset": "mini", "config": {}, "limit": 2}).json()
    assert len(ids) == 2
    unknown = client.post("/list_ids", json={"dataset": "no", "config": {}})
    assert unknown.status_code == 400
    assert unknown.json()["detail"] == "no eval class found for dataset no"
    assert client.post("/run_jupyter", json={"cells": []}).status_code == 501


def test_prompts_and_submissions(humaneval: Benchmark) -> None:
    config = fusion.TestConfig()
    request = fusion.GetPromptsRequest(dataset="humaneval", config=config, offset=1, limit=2)
    prompts = fusion.get_prompts(request)
    assert [p.id for p in prompts] == ["HumanEval/1", "HumanEval/2"]
    one = fusion.get_prompt_by_id(
        fusion.GetPromptByIdRequest(dataset="humaneval", config=config, id=1)
    )
    assert one.prompt == prompts[0].prompt
    assert humaneval.problems[1].tests.entry_point in one.prompt
    text = f"```python\n{humaneval.problems[1].reference}\n```"
    for completion, accepted in ((text, True), ("```python\nimport os; os._exit(0)\n```", False)):
        result = fusion.submit(
            fusion.SubmitRequest(
                dataset="humaneval", id="HumanEval/1", completion=completion, config=config
            ),
            max_attempts=1,
        )
        assert result.accepted is accepted
        assert [test.passed for test in result.tests] == [accepted]
    assert result.extracted_type in ("empty", "fenced")


def test_code_of_clients_is_never_run_by_the_server(client: httpx.Client) -> None:
    config = {"custom_extract_logic": "import os; os._exit(0)"}
    body = {"dataset": "mini", "id": 1, "completion": "", "config": config}
    response = client.post("/submit", json=body)
    assert (response.status_code, "never runs" in response.text) == (400, True)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 10**400])
def test_a_time_limit_of_a_submission_must_be_one(client: httpx.Client, seconds: float) -> None:
    body = {"dataset": "mini", "id": 1, "completion": "", "config": {"run_timeout": seconds}}
    assert client.post("/submit", content=json.dumps(body)).status_code == 422


def test_the_asynchronous_client_works_too() -> None:
    request = fusion.RunCodeRequest(code="print(1)", language="python")

    async def call() -> list[Any]:
        return await asyncio.gather(
            *(fusion.run_code_async(request, max_attempts=1) for _ in range(4))
        )

    assert [r.run_result.stdout for r in asyncio.run(call())] == ["1\n"] * 4


# verl's request, from verl/utils/reward_score/sandbox_fusion/utils.py (volcengine/verl@b178a3cd).
WRAPPER = """
import json
import sys

# === User's Original Code START ===
{generation}
# === User's Original Code END ===

_SANDBOX_FN_NAME = "{fn_name}"

def _execute_user_function():
    _args = [json.loads(line) for line in sys.stdin.read().split('\\n')]
    return globals()[_SANDBOX_FN_NAME](*_args)

if __name__ == '__main__':
    print(json.dumps(_execute_user_function()))
"""


def verl_result(client: httpx.Client, code: str, stdin: str | None, expected: str | None) -> Any:
    """Send what ``call_sandbox_api`` sends, and decide as ``_process_single_case`` does."""
    payload = {
        "compile_timeout": 10, "run_timeout": 10, "code": code, "stdin": stdin,
        "memory_limit_MB": 1024, "language": "python", "files": {}, "fetch_files": [],
    }  # fmt: skip
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    response = client.post("/run_code", headers=headers, content=json.dumps(payload))
    response.raise_for_status()
    answer = response.json()
    if answer["status"] == "SandboxError":
        return -1
    run = answer["run_result"]
    if answer["status"] == "Failed":
        return -3 if run["status"] == "TimeLimitExceeded" else -2
    assert (answer["status"], run["status"]) == ("Success", "Finished")
    return expected is None or run["stdout"].rstrip("\n") == expected.rstrip("\n")


def test_verl_rewards_what_is_right(client: httpx.Client) -> None:
    script = "a, b = map(int, input().split())\nprint(a + b)\n"
    assert verl_result(client, script, "1 2", "3\n") is True
    assert verl_result(client, script, "1 2", "4\n") is False
    assert verl_result(client, "raise ValueError", "1 2", "3\n") == -2
    function = WRAPPER.format(generation="def add(a, b):\n    return a + b\n", fn_name="add")
    assert verl_result(client, function, "1\n2", "3") is True
    asserts = "def add(a, b):\n    return a - b\n\n\nassert add(1, 2) == 3"
    assert verl_result(client, asserts, "", None) == -2


def test_a_full_queue_is_waited_for_because_verl_takes_429_for_a_failed_program(
    client: httpx.Client, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, calls = server.service.engine.submit, itertools.count()

    def refuse_first(ticket: Any) -> None:
        if next(calls) == 0:
            raise FullError("the queue is full", 1)
        submit(ticket)

    monkeypatch.setattr(server.service.engine, "submit", refuse_first)
    assert verl_result(client, "print(input())", "1", "1\n") is True


@pytest.mark.parametrize("cheat", ["import sys\nsys.exit(0)\n", "import os\nos._exit(0)\n"])
def test_a_cheat_that_verls_assert_cases_reward_earns_nothing_by_judge(
    client: httpx.Client, cheat: str
) -> None:
    assertion = "assert add(1, 2) == 3"
    assert verl_result(client, f"{cheat}\n\n{assertion}", "", None) is True
    tests = {"entry_point": "add", "code": assertion}
    assert judge(client, [{"program": cheat, "tests": tests}])[0]["status"] == "fail"


def test_all_languages_of_verl_are_known() -> None:
    assert {"python", "cpp", "nodejs", "lean", "swift", "racket", "D_ut"} <= set(LANGUAGES)
