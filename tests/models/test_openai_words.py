"""What is said to OpenAI-compatible servers and how their words are read; no server needed."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.models import EngineOptions
from assay.models.engines.openai import session
from assay.models.engines.openai.answer import PartialCompletion, events
from assay.models.engines.openai.body import complaint, extra_fields, refused_fields, request_body
from assay.models.engines.openai.model_server import check_key, parse_address, retry_after_s
from assay.models.engines.openai.session import RateLimiter, pause_s
from assay.models.options import by_name
from assay.types import Decoding, Message, Prompt, Request

GREEDY = Request("t", 0, Prompt(messages=(Message("user", "hi"),)), Decoding(max_tokens=9), seed=5)
SAMPLED = replace(GREEDY, decoding=Decoding(9, temperature=0.8, top_k=40))
TEXT = replace(GREEDY, prompt=Prompt(text="def f", stop=("\ndef ",)))


def body(request: Request, *left_out: str, logprobs: bool = False) -> dict[str, Any]:
    return request_body("m", request, logprobs=logprobs, left_out=left_out).fields


def test_every_sampler_setting_is_said() -> None:
    assert body(GREEDY) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.0,
        "top_p": 1.0,
        "max_tokens": 9,
        "seed": 5,
        "repetition_penalty": 1.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert body(SAMPLED).items() >= {"temperature": 0.8, "top_k": 40, "min_p": 0.0}.items()
    assert body(replace(SAMPLED, decoding=Decoding(9, 0.8, top_k=0)))["top_k"] == -1


def test_plain_text_goes_with_its_stop_words() -> None:
    sent = body(TEXT, logprobs=True)
    assert (sent["prompt"], sent["stop"], sent["logprobs"]) == ("def f", ["\ndef "], 1)
    assert "messages" not in sent
    assert body(GREEDY, logprobs=True)["logprobs"] is True


def test_chosen_settings_are_sent_under_the_names_that_servers_know() -> None:
    chosen = Decoding(9, 0.8, 40, top_p=0.9, min_p=0.1, repetition_penalty=1.1)
    assert (
        body(replace(GREEDY, decoding=chosen)).items()
        >= {
            "top_p": 0.9,
            "min_p": 0.1,
            "repetition_penalty": 1.1,
            "repeat_penalty": 1.1,
        }.items()
    )
    assert "repeat_penalty" not in body(SAMPLED)


def test_own_fields_and_thinking_are_added() -> None:
    options = EngineOptions(thinking="off", engine_options=("effort=low", "top_a=0.5"))
    switch = {"enable_thinking": False, "thinking": False}
    extra = extra_fields(options)
    assert by_name(extra) == {"effort": "low", "top_a": 0.5, "chat_template_kwargs": switch}
    found = request_body("m", GREEDY, logprobs=False, left_out=(), extra=extra)
    assert found.fields.items() >= by_name(extra).items()
    assert found.needed >= {"effort", "top_a", "chat_template_kwargs"}
    named = EngineOptions(thinking="on", engine_options=('chat_template_kwargs={"a": 1}',))
    assert by_name(extra_fields(named)) == {
        "chat_template_kwargs": {"enable_thinking": True, "thinking": True, "a": 1}
    }


@pytest.mark.parametrize("name", ["temperature", "messages", "n", "stream", "repeat_penalty"])
def test_fields_that_other_options_decide_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"--engine-option {name}: is set by other options"):
        extra_fields(EngineOptions(engine_options=(f"{name}=1",)))


def test_what_is_left_out_is_not_sent() -> None:
    assert not body(SAMPLED, "top_k", "seed").keys() & {"top_k", "seed"}
    assert not body(GREEDY, "stream").keys() & {"stream", "stream_options"}
    other = body(GREEDY, "max_tokens")
    assert other["max_completion_tokens"] == 9
    assert "max_tokens" not in other


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ({"error": {"message": "Unrecognized request argument supplied: top_k"}}, {"top_k"}),
        ({"error": {"message": "Unrecognized arguments: min_p, top_k"}}, {"min_p", "top_k"}),
        (
            {
                "error": {
                    "message": "Unsupported parameter: 'max_tokens' is not supported with this "
                    "model. Use 'max_completion_tokens' instead.",
                    "param": "max_tokens",
                    "code": "unsupported_parameter",
                }
            },
            {"max_tokens"},
        ),
        (
            {
                "error": {
                    "message": "Unsupported value: 'temperature' does not support 0 with this "
                    "model. Only the default (1) value is supported.",
                    "param": "temperature",
                }
            },
            {"temperature"},
        ),
        (
            {"error": {"message": "bad request", "param": "seed", "code": "unknown_parameter"}},
            {"seed"},
        ),
        (
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "top_k"], "input": 40}]},
            {"top_k"},
        ),
        ({"message": "property 'stream_options' is not allowed"}, {"stream_options"}),
        (
            {
                "error": {
                    "message": "'max_tokens' or 'max_completion_tokens' is too large: 9. This "
                    "model's maximum context length is 8 tokens.",
                    "param": "max_tokens",
                }
            },
            set(),
        ),
        ({"error": "the request exceeds the available context size"}, set()),
        ("nonsense", set()),
        ({}, set()),
    ],
)
def test_a_refused_field_is_told_from_a_refused_value(answer: Any, refused: set[str]) -> None:
    assert refused_fields(complaint(answer), body(SAMPLED)) == refused


@given(
    st.lists(st.text().filter(bool), max_size=5),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(st.integers(0, 400)),
)
def test_events_do_not_depend_on_where_the_bytes_are_cut(
    texts: list[str], end: str, cuts: list[int]
) -> None:
    sent = [json.dumps(text, ensure_ascii=False).encode() for text in texts]
    raw = b"".join(
        b": ping%s%sevent: x%sdata: %s%s%s" % (*[end.encode()] * 3, data, *[end.encode()] * 2)
        for data in sent
    )
    places = sorted({0, len(raw), *(cut % (len(raw) + 1) for cut in cuts)})
    pieces = [raw[a:b] for a, b in itertools.pairwise(places)]
    assert list(events(pieces)) == sent


def test_an_event_cut_off_is_given_as_far_as_it_came() -> None:
    assert list(events([b"data: 1\n\ndata: {"])) == [b"1", b"{"]


def test_several_data_lines_are_one_event() -> None:
    assert list(events([b"data:1\ndata: 2\n\n"])) == [b"1\n2"]


@pytest.mark.parametrize(
    "message",
    [
        [],
        "x",
        {"choices": 3},
        {"choices": [{"text": 3}]},
        {"usage": 1},
        {"usage": {"prompt_tokens": float("inf")}},
    ],
)
def test_an_answer_of_another_shape_is_refused(message: Any) -> None:
    with pytest.raises(ValueError, match="unknown answer format|prompt_tokens is inf"):
        PartialCompletion(1000).add(message)


def test_reasoning_under_two_names_is_taken_once() -> None:
    answer = PartialCompletion(1000)
    answer.add({"choices": [{"delta": {"reasoning": "so", "reasoning_content": "so"}}]})
    answer.add({"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]})
    assert answer.text == "<think>so</think>\nyes"


def test_retry_after_in_seconds_and_as_a_date() -> None:
    now = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
    assert retry_after_s("2.5") == 2.5
    assert retry_after_s("Thu, 01 Jan 2026 12:00:30 GMT", now) == 30
    assert retry_after_s("Thu, 01 Jan 2026 11:00:00 GMT", now) == 0
    assert [retry_after_s(text) for text in ("", "soon", "-3", "nan")] == [0, 0, 0, 0]


@given(st.integers(1, 50))
def test_pauses_double_up_to_a_bound(failed: int) -> None:
    middle = min(2.0 ** (failed - 1), 60.0)
    assert 0.5 * middle <= pause_s(failed) <= 1.5 * middle


def test_the_gate_spreads_requests_over_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(session, "LOOK_AGAIN_S", 1e9)
    gate = RateLimiter(requests_per_minute=30, tokens_per_minute=0)
    assert gate.wait_s(10) == 0
    assert gate.wait_s(10) == 2
    now += 2
    assert gate.wait_s(10) == 0
    gate.hold(7)
    assert gate.wait_s(10) == 7


def test_the_gate_counts_tokens_and_takes_back_what_was_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(session, "LOOK_AGAIN_S", 1e9)
    gate = RateLimiter(requests_per_minute=0, tokens_per_minute=600)
    assert gate.wait_s(100) == 0
    assert gate.wait_s(100) == 10
    gate.settle(100, 40)
    assert gate.wait_s(100) == 4


@pytest.mark.parametrize(
    ("url", "shown", "asked"),
    [
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1", "/models"),
        ("https://me:p%40ss@Host.example/v1", "https://host.example/v1", "/models"),
        ("http://[::1]:80/v1?key=abcd", "http://[::1]:80/v1", "/models?key=abcd"),
    ],
)
def test_an_address_is_shown_without_credentials(url: str, shown: str, asked: str) -> None:
    address = parse_address(url)
    assert address.shown == shown
    assert address.of("models") == shown + asked
    if "@" in url:
        assert address.login == ("me", "p@ss")


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://x/v1", "http:///v1", "http://x:port/v1"]
)
def test_what_is_no_address_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(url)
    assert "base" in str(caught.value)
    assert not url or url not in str(caught.value)


def test_a_key_that_cannot_be_sent_is_not_quoted() -> None:
    assert check_key(" sk-1\n") == "sk-1"
    with pytest.raises(UsageError) as caught:
        check_key("sk-secret\nmore")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [{"timeout": 0}, {"timeout": float("nan")}, {"parallel": -1}, {"requests_per_minute": -1},
     {"price_in": float("inf")}, {"price_out": -0.1}],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(wrong)).replace('_', '-')} .*: must be"):
        EngineOptions(**wrong)
