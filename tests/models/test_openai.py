"""The openai engine against a server on loopback that behaves as it is told."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from assay.errors import ModelError, UsageError
from assay.models import EngineOptions, open_model
from assay.models.engines.openai import session as gate
from assay.models.engines.openai.session import TRIES
from assay.types import Decoding, Request
from tests.models.faulty_server import USAGE, FaultyServer
from tests.models.openai_requests import ask, made, opened

pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")

pytestmark = pytest.mark.usefixtures("quick_retries")
KEY = "sk-never-to-be-seen-0123456789"


def test_a_chat_is_asked_and_counted(server: FaultyServer) -> None:
    model = opened(server)
    assert (model.identity.engine, model.identity.prompt_form) == ("openai", "chat")
    found = made(model, ask(5))
    assert {c.text for c in found.values()} == {f"said prompt {n}" for n in range(5)}
    one = found["t/3"]
    assert (one.prompt_tokens, one.tokens_generated) == (
        USAGE["prompt_tokens"],
        USAGE["completion_tokens"],
    )
    assert (one.finish_reason, one.seed, one.retries, one.error) == ("stop", 3, 0, None)
    assert one.inference_ms > 0
    assert set(server.paths) == {"/v1/chat/completions"}
    assert {b["seed"] for b in server.bodies} == set(range(5))


def test_plain_text_goes_to_the_completions_endpoint(server: FaultyServer) -> None:
    model = opened(server, prompt_form="text")
    assert model.identity.prompt_form == "text"
    found = made(model, ask(2, text=True))
    assert found["t/1"].text == "said prompt 1"
    assert set(server.paths) == {"/v1/completions"}


def test_reasoning_is_not_lost(server: FaultyServer) -> None:
    server.reasoning = "let me see"
    (one,) = opened(server).generate(ask(1))
    assert one.text == "<think>let me see</think>\nsaid prompt 0"


@pytest.mark.parametrize("text", [False, True])
def test_log_probabilities_are_averaged_when_asked_for(server: FaultyServer, text: bool) -> None:
    server.logprobs = (-0.5, -1.5)
    (one,) = opened(server, logprobs=True).generate(ask(1, text=text))
    assert one.logprob == -1.0
    (other,) = opened(server).generate(ask(1, text=text))
    assert other.logprob is None


def test_log_probabilities_that_do_not_come_are_told(server: FaultyServer) -> None:
    model = opened(server, logprobs=True)
    made(model, ask(1))
    assert model.describe().to_json()["logprobs"] == "not reported by the server"


def test_a_server_that_does_not_stream_is_read_too(server: FaultyServer) -> None:
    server.streams = False
    (one,) = opened(server).generate(ask(1))
    assert (one.text, one.finish_reason) == ("said prompt 0", "length")
    assert one.prompt_tokens == USAGE["prompt_tokens"]


def test_the_only_model_needs_no_name(server: FaultyServer) -> None:
    assert opened(server, "").identity.name == "tiny"
    server.models = [{"id": "a"}, {"id": "b"}]
    with pytest.raises(ModelError, match=r"has 2 models \(a, b\)\. Give the name of one"):
        opened(server, "")
    server.models = []
    with pytest.raises(ModelError, match="does not list its models"):
        opened(server, "")


def test_the_base_url_may_stand_in_the_environment(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="Give --base-url or OPENAI_BASE_URL"):
        open_model("openai:tiny")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert open_model("openai:tiny").identity.name == "tiny"


def test_identity_holds_what_stays_over_a_restart(server: FaultyServer) -> None:
    first = opened(server).identity
    server.models = [{"id": "tiny", "created": 2, "permission": [{"id": "random"}]}]
    assert opened(server).identity == first
    server.models = [{"id": "tiny", "created": 2, "root": "/other/weights"}]
    assert opened(server).identity.weights_sha256 != first.weights_sha256
    server.models = [{"id": "tiny", "meta": {"n_params": 7}}, {"id": "b"}]
    assert opened(server).identity.weights_sha256 != first.weights_sha256


def test_facts_for_the_result(server: FaultyServer) -> None:
    model = opened(server, parallel=3)
    made(model, ask(1))
    facts = model.describe().to_json()
    assert (
        facts.items() >= {"base_url": server.url, "parallel": 3, "batch_invariant": False}.items()
    )
    assert not facts.keys() & {"left_out", "listed_by_server"}
    assert opened(server, "other").describe().to_json()["listed_by_server"] is False


def test_credentials_in_the_address_are_used_and_not_told(server: FaultyServer) -> None:
    url = server.url.replace("http://", "http://me:hunter22@") + "?token=querysecret"
    model = open_model("openai:tiny", EngineOptions(base_url=url))
    made(model, ask(1))
    assert server.headers[0]["Authorization"].startswith("Basic ")
    assert server.paths == ["/v1/chat/completions?token=querysecret"]
    told = f"{model.describe()} {model.identity}"
    assert server.url in told
    assert "hunter22" not in told
    assert "querysecret" not in told
    assert model.identity == opened(server).identity


@pytest.mark.parametrize("field", ["top_k", "seed", "stream_options", "stream", "min_p", "top_p"])
def test_a_field_the_server_refuses_is_left_out_and_told(server: FaultyServer, field: str) -> None:
    server.refuses = (field,)
    model = opened(server, parallel=2)
    found = made(model, ask(6, Decoding(16, temperature=0.8, top_k=40)))
    assert {c.error for c in found.values()} == {None}
    assert {c.retries for c in found.values()} == {0}
    assert model.describe().to_json()["left_out"] == [field]
    assert sum(field in body for body in server.bodies) <= 2


def test_max_tokens_has_two_names(server: FaultyServer) -> None:
    server.refuses = ("max_tokens", "seed")
    model = opened(server)
    (one,) = model.generate(ask(1))
    assert one.error is None
    assert model.describe().to_json()["left_out"] == ["max_tokens", "seed"]
    assert server.bodies[-1]["max_completion_tokens"] == 16


@pytest.mark.parametrize(
    ("field", "decoding", "options"),
    [
        ("top_p", Decoding(9, 0.8, top_p=0.9), {}),
        ("min_p", Decoding(9, 0.8, min_p=0.1), {}),
        ("repetition_penalty", Decoding(9, repetition_penalty=1.1), {}),
        ("chat_template_kwargs", Decoding(9), {"thinking": "off"}),
        ("effort", Decoding(9), {"engine_options": ("effort=low",)}),
    ],
)
def test_a_setting_that_was_chosen_is_not_left_out(
    server: FaultyServer, field: str, decoding: Decoding, options: dict[str, Any]
) -> None:
    server.refuses = (field,)
    with pytest.raises(ModelError, match=rf"refuses {field} .*. Use other settings"):
        made(opened(server, **options), ask(2, decoding))


def test_thinking_of_a_server(server: FaultyServer) -> None:
    model = opened(server, thinking="on")
    assert model.thinks
    made(model, ask(1))
    assert server.bodies[-1]["chat_template_kwargs"]["enable_thinking"] is True
    with pytest.raises(UsageError, match="--engine-option thinking_token_budget=64"):
        opened(server, thinking="64")
    with pytest.raises(UsageError, match="--thinking off: .* plain text"):
        opened(server, thinking="off", prompt_form="text")
    with pytest.raises(UsageError, match="--revision: the openai engine has no such setting"):
        opened(server, revision="main")


def test_what_was_asked_for_is_not_left_out(server: FaultyServer) -> None:
    server.refuses = ("temperature",)
    server.refusal = "Unsupported value: '{}' does not support 0 with this model."
    with pytest.raises(ModelError, match=r"refuses temperature .*. Use other settings"):
        made(opened(server), ask(3))


def test_no_more_requests_at_a_time_than_asked(server: FaultyServer) -> None:
    server.delay_s = 0.05
    made(opened(server, parallel=4), ask(24))
    assert 2 <= server.busiest <= 4


def test_connections_are_used_again(server: FaultyServer) -> None:
    made(opened(server, parallel=3), ask(30))
    assert len(server.connections) <= 1 + 3  # one to list the models


def test_batch_mode_off_is_one_at_a_time(server: FaultyServer) -> None:
    server.delay_s = 0.01
    model = opened(server, batch_mode="off")
    made(model, ask(6))
    assert server.busiest == 1
    assert model.describe().to_json()["parallel"] == 1


def test_requests_are_taken_as_they_are_needed(server: FaultyServer) -> None:
    taken = 0

    def requests() -> Iterator[Request]:
        nonlocal taken
        for request in ask(200):
            taken += 1
            yield request

    stream = opened(server, parallel=5).generate(requests())
    for given in range(1, 21):
        next(stream)
        assert taken <= given + 5
    stream.close()  # type: ignore[attr-defined]
    assert taken <= 25


def test_requests_per_minute_hold(server: FaultyServer) -> None:
    model, began = opened(server, requests_per_minute=1200), time.monotonic()
    made(model, ask(9))
    assert server.times[-1] - began >= 8 * 0.05


def test_tokens_per_minute_hold(server: FaultyServer) -> None:
    """18 are expected of each request and 10 come: 12,000 a minute are 0.05 s for each."""
    model, began = opened(server, parallel=1, tokens_per_minute=12_000), time.monotonic()
    made(model, ask(9))
    assert server.times[-1] - began >= 8 * 0.05


@pytest.mark.parametrize("fault", ["hang", "hang-half"])
def test_closing_from_another_thread_ends_generation(server: FaultyServer, fault: str) -> None:
    server.fault = lambda prompt, _: "" if prompt == "prompt 0" else fault
    others = set(threading.enumerate())
    model = opened(server, parallel=4)
    stream = model.generate(ask(40))
    assert next(stream).task_id == "t/0"
    began = time.monotonic()
    threading.Timer(0.2, model.close).start()
    with pytest.raises(ModelError, match="Interrupted"):
        list(stream)
    assert time.monotonic() - began < 30
    new = set(threading.enumerate()) - others
    assert not [thread for thread in new if "_serve" in thread.name]


def test_closing_ends_a_long_pause(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "FIRST_PAUSE_S", 50.0)
    server.fault = lambda *_: "500"
    model = opened(server)
    began = time.monotonic()

    def close_while_it_pauses() -> None:
        while not server.paths:  # on a busy machine the first request may take seconds
            time.sleep(0.02)
        model.close()

    threading.Thread(target=close_while_it_pauses, daemon=True).start()
    with pytest.raises(ModelError, match="Interrupted"):
        list(model.generate(ask(3)))
    assert time.monotonic() - began < 20


def test_httpx_missing_is_one_line(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ModelError, match=r"pip install 'assay-eval\[openai\]'"):
        opened(server)


@pytest.mark.parametrize("option", [{"dtype": "float16"}, {"adapter": "x"}, {"device": "cuda"}])
def test_what_the_server_decides_is_refused(server: FaultyServer, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="the openai engine has no such setting"):
        opened(server, **option)


@pytest.mark.parametrize("retries", [2, TRIES])
def test_the_key_is_sent_and_never_told(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch, retries: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.key = KEY
    model = opened(server)
    server.fault = lambda _, before: "429" if before < retries else ""
    (one,) = model.generate(ask(1))
    assert one.retries == (2 if retries == 2 else 0)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in f"{one} {model.describe()} {model.identity}"
    server.key = "another"
    with pytest.raises(ModelError) as caught:
        opened(server)
    assert KEY not in str(caught.value)
    assert "Set another OPENAI_API_KEY" in str(caught.value)
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ModelError, match="Set OPENAI_API_KEY"):
        opened(server)


def test_a_key_in_a_long_complaint_is_not_told_in_part(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.refuses = ("model",)
    server.refusal = "x" * 280 + KEY + " is not welcome, {}"
    (one,) = opened(server).generate(ask(1))
    assert one.error is not None
    assert one.error.startswith("400: xxx")
    assert KEY[:5] not in one.error
