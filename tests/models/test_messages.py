"""What travels between the harness and engines' processes comes out as it went in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data import codec
from assay.models import Rendered, Usage
from assay.models.engines.llamacpp.gguf_model import LlamaFacts, LlamaSettings
from assay.models.engines.torch.torch_model import Generate, TorchFacts, TorchSettings
from assay.models.engines.vllm.vllm_model import VllmFacts, VllmSettings
from assay.models.options import EngineOptions, NamedValue, by_name, parse_engine_options
from assay.models.workers.engine_messages import (
    TO_HARNESS,
    TO_WORKER,
    Ask,
    AskUsage,
    EngineWorkerSettings,
    Fatal,
    Generated,
    LogprobsReply,
    Pause,
    Ready,
    Render,
    RenderReply,
    Reply,
    Score,
    Scoring,
    Tokenize,
    TokensReply,
    decode,
    encode,
)
from assay.types import Decoding, Message, Prompt, Request

CHAT = Prompt((Message("system", "ä\ud800\u2028"), Message("user", "")), stop=("\n", "x"))
OPTIONS = (NamedValue("a", '{"b": [1, null, 0.5, "c"]}'), NamedValue("d", "false"))
CHOSEN = EngineOptions(
    batch_mode="on", parallel=4, threads=2, device="cuda", devices="0,1", dtype="bfloat16",
    adapter="lora", logprobs=True, timeout=1.5, thinking="99",
    engine_options=("a=1", 'b={"c": [2]}'),
)  # fmt: skip
QUESTIONS = (
    Ask(3, Request("t/1", 2, CHAT, Decoding(8, 0.5, 40, 0.9, 0.1, 1.1, 7), 11)),
    Render(CHAT),
    AskUsage(),
    Pause(),
    Tokenize("a\nb", special=True),
    Score(((1, 2), (3,)), last=1, logits="/tmp/x.npy"),
)
REPLIES = (
    Ready(used_gpu=True, in_hand=4, scoring=Scoring(512, 16)),
    Ready(used_gpu=False, in_hand=0),
    Fatal("gone"),
    Generated(12),
    Reply(1, "text", "length", 3, 4, 1.5, -0.25),
    Reply(1, error="why"),
    RenderReply(Rendered("a", (1, 2), ("a", "\ufffd")), None),
    Usage(1.5, None),
    TokensReply((1, 2), 3),
    LogprobsReply(((-0.5, -1.0), ()), "why"),
)


@pytest.mark.parametrize("message", QUESTIONS, ids=lambda one: type(one).__name__)
def test_questions_cross_as_they_are(message: object) -> None:
    line = encode(message)
    assert line.count("\n") == 1
    assert decode(line, TO_WORKER) == message


@pytest.mark.parametrize("message", REPLIES, ids=lambda one: type(one).__name__)
def test_replies_cross_as_they_are(message: object) -> None:
    assert decode(encode(message), TO_HARNESS) == message


def test_every_kind_is_tried() -> None:
    assert {type(one) for one in QUESTIONS} == set(TO_WORKER)
    assert {type(one) for one in REPLIES} == set(TO_HARNESS)


def test_engines_have_kinds_of_their_own() -> None:
    for message in (
        Generate(128),
        LlamaFacts(device="cpu", engine_options=OPTIONS),
        TorchFacts(torch="2", threads=1),
        VllmFacts(dtype="float32"),
    ):
        assert decode(encode(message), (type(message),)) == message
        with pytest.raises(ValueError, match="unknown kind"):
            decode(encode(message), (*TO_WORKER, *TO_HARNESS))


@pytest.mark.parametrize(
    "settings",
    [
        LlamaSettings("m.gguf", CHOSEN, "{{ messages }}", 512, 8192, 4, invariant=True),
        TorchSettings("m", CHOSEN, "<think>", Generate(64)),
        TorchSettings("m"),
        VllmSettings("m", CHOSEN, adapter_rank=16),
    ],
    ids=lambda one: type(one).__name__,
)
def test_settings_cross_as_they_are(settings: EngineWorkerSettings) -> None:
    line = json.dumps(codec.to_json(settings))
    assert codec.from_json(type(settings), json.loads(line)) == settings


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)  # fmt: skip


@given(JSON)
def test_values_that_users_name_reach_the_engine_unchanged(value: object) -> None:
    options = parse_engine_options([f"own={json.dumps(value)}"])
    assert by_name(options) == {"own": value}


def test_what_vllm_reports_is_in_this_order() -> None:
    """The engine itself is rarely there to be asked."""
    facts = VllmFacts("0.1", "gpu", "bfloat16", 8, 4096, False, True)
    assert list(facts.to_json().items()) == [
        ("vllm", "0.1"), ("device", "gpu"), ("dtype", "bfloat16"), ("parallel", 8),
        ("context", 4096), ("batch_invariant", False), ("thinks", True),
    ]  # fmt: skip
    assert VllmFacts(vllm="0.1").to_json() == {"vllm": "0.1"}
