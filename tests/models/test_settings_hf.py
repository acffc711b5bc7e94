"""Sampling settings, thinking and own options of the hf engine, with small models that are run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the hf extra: pip install 'assay-eval[hf]'")
pytest.importorskip("transformers", reason="needs the hf extra: pip install 'assay-eval[hf]'")

import torch

from assay.errors import ModelError, UsageError
from assay.models import EngineOptions, open_model
from assay.types import Completion, Decoding, Message, Prompt, Request

from .test_hf import TEXTS, by_transformers, served, texts
from .torch_models import CONTEXT, save_model

pytestmark = pytest.mark.torch

SWITCH = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n{% if thinking is defined and thinking %}<think>{% endif %}"
)
CHAT = Prompt(messages=(Message("user", "hello"),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("thinker"), template=SWITCH)


def asked(decoding: Decoding) -> list[Request]:
    return [Request(f"t{n}", 0, Prompt(text=text), decoding, n) for n, text in enumerate(TEXTS)]


def test_a_repetition_penalty_is_that_of_transformers(folder: Path) -> None:
    punished = Decoding(max_tokens=24, repetition_penalty=1.3)
    _, found = served(folder, asked(punished), 2)
    _, free = served(folder, asked(Decoding(max_tokens=24)), 2)
    whole = 0
    for number, text in enumerate(TEXTS):
        wanted = by_transformers(folder, text, 24, repetition_penalty=1.3)
        reply = found[f"t{number}", 0]
        if reply.finish_reason == "stop":  # at a mark that transformers does not know
            assert wanted.startswith(reply.text)
        else:
            assert reply.text == wanted
            whole += 1
    assert whole >= 3
    assert texts(found) != texts(free)


def test_a_penalty_is_of_its_own_sequence_alone(folder: Path) -> None:
    """Slots are moved and filled again: what a sequence has seen goes with it."""
    sampled: dict[str, Any] = {"temperature": 0.8, "top_k": 40}
    kinds = (
        Decoding(max_tokens=24, repetition_penalty=1.3),
        Decoding(max_tokens=9, **sampled, repetition_penalty=1.5),
        Decoding(max_tokens=16, **sampled),
        Decoding(max_tokens=24),
    )
    mixed = [
        Request(f"t{n}", s, Prompt(text=text), kind, 10 * n + s)
        for s, kind in enumerate(kinds)
        for n, text in enumerate(TEXTS)
    ]
    _, together = served(folder, mixed, 3)
    _, alone = served(folder, mixed[::-1], 1)
    assert texts(together) == texts(alone)


def test_the_log_probability_is_the_models_own(folder: Path) -> None:
    """A penalty changes which token is taken, not what the model thinks of it."""
    prompt = TEXTS[0]
    _, found = served(
        folder,
        [Request("t", 0, Prompt(text=prompt), Decoding(max_tokens=1, repetition_penalty=50.0), 0)],
    )
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        RepetitionPenaltyLogitsProcessor,
    )

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.tensor([tokenizer(prompt)["input_ids"]])
    logits = model(ids).logits[:, -1]
    token = RepetitionPenaltyLogitsProcessor(50.0)(ids, logits.clone()).argmax()
    wanted = torch.log_softmax(logits[0], -1)[token]
    assert found["t", 0].logprob == pytest.approx(float(wanted.detach()), abs=1e-4)


def test_cuts_leave_only_the_likeliest_token(folder: Path) -> None:
    cut: dict[str, Any] = {"max_tokens": 16, "temperature": 3.0, "top_k": 0}
    found = [
        texts(served(folder, asked(decoding), 3)[1])
        for decoding in (
            Decoding(max_tokens=16), Decoding(**cut, top_p=1e-6), Decoding(**cut, min_p=0.999),
            Decoding(**cut),
        )
    ]  # fmt: skip
    assert found[0] == found[1] == found[2] != found[3]


def test_thinking_is_switched_by_the_template(thinker: Path) -> None:
    ends = {
        thinking: open_model(str(thinker), EngineOptions(thinking=thinking)).render(CHAT).text
        for thinking in ("", "on", "off")
    }
    assert ends["on"].endswith("<think>")
    assert ends["off"] == ends[""]
    assert not ends["off"].endswith("<think>")
    named = EngineOptions(engine_options=('chat_template_kwargs={"thinking": true}',))
    assert open_model(str(thinker), named).render(CHAT).text == ends["on"]


def test_what_cannot_be_switched_or_bound_is_refused(folder: Path, thinker: Path) -> None:
    with pytest.raises(UsageError, match="has no switch for thinking .* Drop --thinking"):
        open_model(str(folder), EngineOptions(thinking="off"))
    with pytest.raises(UsageError, match="--thinking 64: the hf engine cannot limit reasoning"):
        open_model(str(thinker), EngineOptions(thinking="64"))
    with pytest.raises(UsageError, match="--thinking on: .* plain text"):
        open_model(str(thinker), EngineOptions(thinking="on", prompt_form="text"))


def made(folder: Path, **options: Any) -> Completion:
    model = open_model(str(folder), EngineOptions(**options))
    (found,) = model.generate([Request("t", 0, CHAT, Decoding(max_tokens=CONTEXT), 0)])
    return found


def test_settings_of_the_configuration_can_be_overridden(folder: Path) -> None:
    short = made(folder, engine_options=("max_position_embeddings=64",))
    assert short.prompt_tokens + short.tokens_generated <= 64
    with pytest.raises(ModelError, match="--engine-option no_such: .* no such setting"):
        made(folder, engine_options=("no_such=1",))


@pytest.mark.parametrize("name", ["trust_remote_code", "dtype", "quantization_config"])
def test_settings_that_are_not_free_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"--engine-option {name}: is set by other options"):
        open_model(str(folder), EngineOptions(engine_options=(f"{name}=true",)))


def test_a_local_path_has_no_revisions(folder: Path) -> None:
    with pytest.raises(UsageError, match="--revision main: .* is a local path"):
        open_model(str(folder), EngineOptions(revision="main"))
