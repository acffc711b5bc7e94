"""Servers that send too much, too slowly or nonsense: an error of that prompt, and never more.

Each case says what happens without the limit.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import resource
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ModelError, UsageError
from assay.models import EngineOptions
from assay.models.engines.openai.answer import MOST_TOKENS, PartialCompletion, answer_limits
from assay.models.engines.openai.session import SLOW_TRIES
from assay.types import Completion, Decoding, Message, Prompt, Request
from tests.models.faulty_server import USAGE, FaultyServer, serving
from tests.models.openai_requests import ask, made, opened

pytest.importorskip("httpx", reason="the openai engine needs httpx (the openai extra)")

pytestmark = pytest.mark.usefixtures("quick_retries")

OK = b"HTTP/1.1 200 OK\r\n"
JSON = OK + b"Content-Type: application/json\r\n"
STREAM = OK + b"Content-Type: text/event-stream\r\n\r\n"
ANSWER: dict[str, Any] = {
    "choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}],
    "usage": USAGE,
}
DRIP_S = 0.05
KEYS = st.sampled_from(
    ["choices", "usage", "prompt_tokens", "completion_tokens", "index", "delta", "message", "text",
     "content", "reasoning", "finish_reason", "logprobs", "token_logprobs", "logprob"]
)  # fmt: skip


def one(server: FaultyServer, **options: Any) -> Completion:
    return made(opened(server, **options), ask(1))["t/0"]


def whole(body: bytes) -> Callable[[], list[bytes]]:
    return lambda: [JSON + b"Content-Length: %d\r\n\r\n" % len(body) + body]


def answering(body: bytes | dict[str, Any]) -> Callable[[], list[bytes]]:
    return whole(body if isinstance(body, bytes) else json.dumps(body).encode())


def dripping(start: bytes, drop: bytes) -> Callable[[], Iterator[bytes]]:
    """Give one drop after another for ever, more often than the read timeout."""

    def drops() -> Iterator[bytes]:
        yield start
        while True:
            time.sleep(DRIP_S)
            yield drop

    return drops


def usage(value: str) -> bytes:
    return json.dumps(ANSWER).replace('"prompt_tokens": 7', f'"prompt_tokens": {value}').encode()


@pytest.mark.parametrize(
    "value", ["1" + "0" * 400, "-5", '"12"', "true", "1e999", "NaN", "Infinity", "1.5", "[1]"]
)
def test_counts_of_tokens_that_are_none(server: FaultyServer, value: str) -> None:
    """Without a check, 10**400, -5, "12", true and 1.5 become the completion's prompt_tokens."""
    server.raw = answering(usage(value))
    failed = one(server)
    assert (failed.finish_reason, failed.text, failed.prompt_tokens) == ("error", "", 0)
    assert failed.error is not None
    assert failed.error.startswith("the answer is not valid")
    assert len(failed.error) < 200


def test_counts_that_are_missing_or_whole_floats_are_as_good() -> None:
    for value, count in (("null", 0), ("7.0", 7)):
        with serving(raw=answering(usage(value))) as server:
            assert one(server).prompt_tokens == count


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1e999", '"nan"', "true", "9" * 400])
def test_log_probabilities_that_are_none(server: FaultyServer, value: str) -> None:
    """Without a check, all are averaged but the last, which is an OverflowError."""
    answer = json.loads(json.dumps(ANSWER))
    answer["choices"][0]["logprobs"] = {"content": [{"token": "x", "logprob": "HERE"}]}
    server.raw = answering(json.dumps(answer).replace('"HERE"', value).encode())
    failed = one(server, logprobs=True)
    assert (failed.finish_reason, failed.logprob) == ("error", None)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(KEYS, JSON_VALUES, max_size=4) | JSON_VALUES, max_size=3))
def test_any_messages_give_an_answer_within_bounds_or_a_value_error(messages: list[Any]) -> None:
    answer = PartialCompletion(100)
    try:
        for message in messages:
            answer.add(message)
    except ValueError:
        return
    assert len(answer.text) <= 100 + len("<think></think>\n")
    assert 0 <= answer.prompt_tokens <= MOST_TOKENS
    assert 0 <= answer.tokens_generated <= MOST_TOKENS
    assert answer.logprob is None or math.isfinite(answer.logprob)


def test_more_than_one_choice(server: FaultyServer) -> None:
    """Texts of two choices taken for one are counted as a wrong answer of the model."""
    choice = ANSWER["choices"][0]
    server.raw = answering({**ANSWER, "choices": [choice, {**choice, "index": 1}]})
    assert "2 choices instead of one" in (one(server).error or "")
    server.raw = answering({**ANSWER, "choices": [{**choice, "index": 1}]})
    assert "a second choice" in (one(server).error or "")


def test_more_text_than_was_asked_for(server: FaultyServer) -> None:
    """Half a megabyte for 16 tokens is not a completion."""
    server.text = lambda _: "x" * 500_000
    assert "more text than the requested" in (one(server).error or "")
    server.text, server.reasoning = lambda _: "x", "y" * 500_000
    assert "more text than the requested" in (one(server).error or "")


@pytest.mark.slow
@pytest.mark.parametrize("drop", [b": comment\n" * 5000, b"x" * 50_000, b"data: {}\n\n" * 5000])
def test_a_stream_without_end_is_left_soon(server: FaultyServer, drop: bytes) -> None:
    """With a limit of 64 MiB alone, all of it is read, and a line of that length kept in memory."""
    sent = []

    def stream() -> Iterator[bytes]:
        yield STREAM
        for _ in itertools.count():
            sent.append(len(drop))
            yield drop

    server.raw = stream
    assert "more than 1,114,112 bytes" in (one(server).error or "")
    assert sum(sent) < 7 * 10_000_000  # with what the system buffers


def test_an_answer_without_end(server: FaultyServer) -> None:
    server.raw = lambda: itertools.chain([JSON + b"\r\n["], itertools.repeat(b"1," * 50_000))
    assert "more than 1,114,112 bytes" in (one(server).error or "")


SLOW = {
    "body": dripping(JSON + b"Content-Length: 1000000\r\n\r\n", b" "),
    "body without a length": dripping(JSON + b"\r\n", b" "),
    "comments": dripping(STREAM, b": ping\n\n"),
    "tokens": dripping(STREAM, b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'),
    "headers": dripping(OK, b"X: y\r\n"),
    "one header": dripping(OK + b"X: ", b"y"),
    "early hints": dripping(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "error": dripping(b"HTTP/1.1 500 Oh\r\n\r\n", b"x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SLOW)
def test_a_server_that_drips(server: FaultyServer, kind: str) -> None:
    """Each byte restarts the read timeout, so only a limit on the whole answer ends these."""
    server.raw = SLOW[kind]
    began = time.monotonic()
    failed = one(server, timeout=5.0, answer_timeout=0.5)
    assert failed.error == f"timeout: the answer took more than 0.5 s (tried {SLOW_TRIES} times)"
    assert time.monotonic() - began < 4


def test_a_server_that_drips_can_be_left_by_ctrl_c(server: FaultyServer) -> None:
    server.raw = SLOW["one header"]
    model = opened(server)
    closed_at: list[float] = []

    def close_when_asked() -> None:
        """Close while an answer is on its way: on a busy machine a fixed time may be too early."""
        while not server.bodies:
            time.sleep(0.01)
        closed_at.append(time.monotonic())
        model.close()

    threading.Thread(target=close_when_asked, daemon=True).start()
    with pytest.raises(ModelError, match="Interrupted"):
        list(model.generate(ask(2)))
    assert time.monotonic() - closed_at[0] < 3


def test_after_a_slow_answer_the_next_prompt_has_a_connection(server: FaultyServer) -> None:
    slow = SLOW["one header"]
    server.raw = slow
    requests = ask(3)

    def stream() -> Iterator[Request]:
        for request in requests:
            server.raw = slow if request.task_id == "t/1" else None
            yield request

    model = opened(server, timeout=5.0, answer_timeout=0.4, parallel=1)
    found = {c.task_id: c.error is None for c in model.generate(stream())}
    assert found == {"t/0": True, "t/1": False, "t/2": True}


def test_the_default_limit_grows_with_the_answer() -> None:
    options = EngineOptions(timeout=300)
    assert answer_limits(512, options).seconds == 812
    assert answer_limits(512, EngineOptions(answer_timeout=9)).seconds == 9
    assert answer_limits(10_000, options).bytes > answer_limits(10, options).bytes
    with pytest.raises(UsageError, match="--answer-timeout .*: must be 0 to"):
        EngineOptions(answer_timeout=float("inf"))


def test_a_gzip_bomb_is_not_unpacked(server: FaultyServer) -> None:
    """300 KB become 300 MB in memory before a limit on the unpacked text can apply."""
    bomb = gzip.compress(b" " * 300_000_000, 9)
    packed = JSON + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    server.raw = lambda: [packed + bomb]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (one(server).error or "").startswith("the answer is compressed (gzip)")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB
    assert server.headers[0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"a":' * 100_000, b'{"choices": "\xff\xfe"}', b"\x00",
     b'{"choices": {"a": 1}}', b'{"choices": [5]}', b'{"choices": [{"message": 5}]}',
     b'{"usage": [5]}', b"9" * 5000],
)  # fmt: skip
def test_no_answer_at_all(server: FaultyServer, body: bytes) -> None:
    server.raw = answering(body)
    assert (one(server).error or "").startswith(
        ("the answer is not valid", "the answer ended early")
    )


@pytest.mark.parametrize("depth", [300, 900, 980, 990, 20_000])
def test_an_error_that_is_nested_deep(server: FaultyServer, depth: int) -> None:
    body = b'{"error": ' + b"[" * depth + b"]" * depth + b"}"
    start = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body)
    server.raw = lambda: [start + body]
    assert (one(server).error or "").startswith("400: ")
    server.raw = answering(body)
    assert one(server).finish_reason == "error"


def test_a_redirect_is_not_followed(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
    with serving() as other:
        moved = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {other.url}/chat/completions\r\n"
        server.raw = lambda: [moved.encode() + b"Content-Length: 0\r\n\r\n"]
        with pytest.raises(ModelError, match=r"has moved \(307\). Give its new address"):
            one(server)
        assert other.bodies == []


def test_prompts_and_names_that_utf8_does_not_have(server: FaultyServer) -> None:
    """Encoding these is a UnicodeEncodeError, which must not end in a traceback."""
    server.models = [{"id": "half \ud83d"}]
    model = opened(server, name="")
    request = Request("t", 0, Prompt(messages=(Message("user", "\ud800"),)), Decoding(), 0)
    (done,) = model.generate([request])
    assert done.error is None
    assert server.bodies[0]["model"] == "half \ud83d"


MODELS: dict[str, Callable[[], Any]] = {
    "a million entries": whole(b'{"data": [' + b'{"id": "x"},' * 1_000_000 + b'{"id": "y"}]}'),
    "endless": lambda: itertools.chain([JSON + b"\r\n["], itertools.repeat(b"1," * 50_000)),
    "nested": whole(b"[" * 100_000),
    "a number for a list": whole(b'{"data": 5}'),
    "a text for a list": whole(b'"models"'),
    "entries of other kinds": whole(b'{"data": [5, null, {"id": 5}, {"name": "x"}]}'),
    "packed": whole(b""),
}


@pytest.mark.parametrize("kind", MODELS)
def test_hostile_lists_of_models(server: FaultyServer, kind: str) -> None:
    """A number in place of the list is a TypeError, which must not end in a traceback."""
    server.raw_models = MODELS[kind]
    with pytest.raises(ModelError, match="does not respond|does not list its models"):
        opened(server, name="")


def test_a_list_of_models_that_drips(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit on the whole answer, opening the model never ends."""
    from assay.models.engines.openai import model_server as openai_server
    from assay.models.engines.openai.answer import AnswerLimits

    monkeypatch.setattr(openai_server, "LISTING", AnswerLimits(0.3, 1000))
    server.raw_models = SLOW["body"]
    with pytest.raises(ModelError, match="the answer took more than 0.3 s"):
        opened(server, name="")
