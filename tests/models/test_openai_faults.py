"""Servers in trouble: the run ends complete, or says exactly which prompts failed and why."""

from __future__ import annotations

import random
import socket
import time

import pytest

from assay.errors import ModelError
from assay.models.engines.openai.session import TRIES
from tests.models.faulty_server import FAULTS, FaultyServer, serving
from tests.models.openai_requests import ask, made, opened

pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")

pytestmark = pytest.mark.usefixtures("quick_retries")
REASONS = {
    "429": "429: fault 429",
    "429-after": "429: slow down",
    "500": "500: fault 500",
    "503": "503: fault 503",
    "hang": "timeout: no data for 0.4 s",
    "hang-half": "timeout: no data for 0.4 s",
    "close": "connection lost",
    "broken-json": "the answer is not valid",
    "broken-body": "the answer is not valid",
    "half-stream": "the answer ended early",
    "cut-stream": "connection lost",
    "error-in-stream": "the server says: out of memory",
    "html": "the answer is not valid",
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_leaves_no_trace_but_a_count(server: FaultyServer, fault: str) -> None:
    server.fault = lambda prompt, before: fault if prompt == "prompt 1" and before < 2 else ""
    found = made(opened(server, timeout=2.0 if "hang" in fault else 60.0), ask(4))
    assert {c.text for c in found.values()} == {f"said prompt {n}" for n in range(4)}
    assert [found[f"t/{n}"].retries for n in range(4)] == [0, 2, 0, 0]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_an_error_of_that_prompt_that_says_why(
    server: FaultyServer, fault: str
) -> None:
    server.retry_after = "0.01"
    server.fault = lambda prompt, _: fault if prompt == "prompt 1" else ""
    found = made(opened(server, timeout=0.4 if "hang" in fault else 60.0), ask(3))
    assert server.counts["prompt 1"] == TRIES
    failed = found["t/1"]
    assert (failed.finish_reason, failed.text) == ("error", "")
    assert failed.error is not None
    assert failed.error.startswith(REASONS[fault])
    assert failed.error.endswith(f"(tried {TRIES} times)")
    assert {found["t/0"].error, found["t/2"].error} == {None}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_any_mix_of_faults_fails_exactly_the_prompts_it_always_hits(
    server: FaultyServer, seed: int
) -> None:
    # Hangs cost their whole time-out; they have tests of their own, here they are rare.
    kinds = [f for f in FAULTS if "hang" not in f] * 3 + ["hang", "hang-half"]

    def fault(prompt: str, before: int) -> str:
        chance = random.Random(f"{seed} {prompt} {before}")
        return chance.choice(kinds) if chance.random() < 0.7 else ""

    server.fault, server.retry_after = fault, "0.01"
    requests = ask(40)
    found = made(opened(server, timeout=3.0), requests)
    hit = {
        r.task_id
        for r in requests
        if all(fault(r.prompt.messages[0].content, n) for n in range(TRIES))
    }
    assert {t for t, c in found.items() if c.error} == hit
    assert all(c.text == f"said prompt {t[2:]}" for t, c in found.items() if t not in hit)
    assert max(server.counts.values()) <= TRIES
    for task, completion in found.items():
        if completion.error is None:
            assert completion.retries == server.counts[f"prompt {task[2:]}"] - 1


def test_the_seeds_above_hold_prompts_that_fail() -> None:
    """Or the test above would show less than it says."""
    always = [
        all(random.Random(f"{seed} prompt {p} {n}").random() < 0.7 for n in range(TRIES))
        for seed in range(3)
        for p in range(40)
    ]
    assert 0 < sum(always) < len(always)


@pytest.mark.parametrize("status", ["400", "413", "422"])
def test_a_prompt_the_server_refuses_is_not_sent_again(server: FaultyServer, status: str) -> None:
    server.fault = lambda prompt, _: status if prompt == "prompt 1" else ""
    found = made(opened(server), ask(3))
    assert found["t/1"].error == f"{status}: fault {status}"
    assert server.counts["prompt 1"] == 1
    assert found["t/2"].error is None


@pytest.mark.parametrize(
    ("status", "advice"),
    [("401", "Set OPENAI_API_KEY"), ("403", "Set OPENAI_API_KEY"), ("404", "--base-url"),
     ("402", "payment required")],
)  # fmt: skip
def test_an_engine_of_no_use_ends_the_run_at_once(
    server: FaultyServer, status: str, advice: str
) -> None:
    server.fault = lambda *_: status
    with pytest.raises(ModelError, match=advice):
        made(opened(server, parallel=2), ask(30))
    assert sum(server.counts.values()) <= 2


@pytest.mark.slow
def test_retry_after_holds_all_requests_back(server: FaultyServer) -> None:
    server.retry_after = "1.5"
    server.fault = lambda prompt, before: "429-after" if prompt == "prompt 0" and not before else ""
    server.text = lambda prompt: time.sleep(0.5) or prompt  # type: ignore[func-returns-value]
    made(opened(server, parallel=2), ask(4))
    assert min(server.times[2:]) - server.times[0] >= 1.5


def test_a_wait_of_hours_is_left_to_the_user(server: FaultyServer) -> None:
    server.retry_after = "7200"
    server.fault = lambda *_: "429-after"
    with pytest.raises(ModelError, match="accepts no requests for 7200 s .*run the same command"):
        made(opened(server), ask(3))


def test_a_server_that_is_gone_ends_the_run_without_using_up_the_prompts() -> None:
    found = []
    with serving() as served:
        model = opened(served, parallel=3)
        stream = model.generate(ask(60))
        found.append(next(stream))
    with pytest.raises(ModelError, match=rf"does not respond \(no connection.*, {TRIES} times\)"):
        found += stream
    assert len(found) < 12


def test_a_server_that_never_was_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(ModelError, match="does not respond .*. Start the server, or correct"):
        opened(FaultyServer(url=f"http://127.0.0.1:{port}/v1"))
    assert time.monotonic() - began < 20
