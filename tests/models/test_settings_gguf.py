"""Sampling settings, thinking and own options of llama.cpp, with a small model that is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xllamacpp", reason="needs the gguf extra")

from assay.errors import ModelError, UsageError
from assay.models import EngineOptions, open_model
from assay.models.engines.llamacpp.options import KNOWN, RESERVED, apply_options
from assay.models.options import parse_engine_options
from assay.models.scoring import open_scorer
from assay.models.workers.process_model import ProcessModel
from assay.types import Completion, Decoding, Message, Prompt, Request
from tests.models.small_models import TOKENS, TYPES, write_small

OPENED = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>{% endfor %}"
    "<|im_start|>assistant\n{% if enable_thinking is defined and enable_thinking is false %}"
    "<think></think>{% else %}<think>{% endif %}"
)
CHAT = Prompt(messages=(Message("user", "hello"),))
GREEDY = Decoding(max_tokens=24)
HOT = Decoding(max_tokens=24, temperature=3.0, top_k=0)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small(tmp_path_factory.mktemp("plain") / "plain.gguf"))


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("thinker") / "thinker.gguf"
    marks = ["<think>", "</think>"]
    write_small(path, tokens=[*TOKENS, *marks], types=[*TYPES, 3, 3], chat_template=OPENED)
    return str(path)


def completed(model: str, *decodings: Decoding, **options: Any) -> list[Completion]:
    asked = [Request(f"t{n}", 0, CHAT, decoding, 7) for n, decoding in enumerate(decodings)]
    opened = open_model(model, EngineOptions(**options))
    found = {c.task_id: c for c in opened.generate(asked)}
    assert [c.error for c in found.values()] == [None] * len(asked)
    return [found[f"t{n}"] for n in range(len(asked))]


def test_cuts_leave_only_the_likeliest_token(plain: str) -> None:
    cut: dict[str, Any] = {"max_tokens": 24, "temperature": 3.0, "top_k": 0}
    greedy, hot, nucleus, floor = completed(
        plain, GREEDY, HOT, Decoding(**cut, top_p=1e-6), Decoding(**cut, min_p=0.999)
    )
    assert greedy.text == nucleus.text == floor.text != hot.text


def test_the_temperature_comes_before_the_cuts(plain: str) -> None:
    """Where it came last, the share would be that of the plain probabilities."""
    hot: dict[str, Any] = {"max_tokens": 24, "temperature": 50.0, "top_k": 0}
    free, narrow = completed(plain, Decoding(**hot), Decoding(**hot, min_p=0.05))
    assert free.text == narrow.text  # at this temperature all tokens are about as likely


def test_a_repetition_penalty_counts_the_prompt_and_all_of_the_text(plain: str) -> None:
    free, punished = completed(
        plain, Decoding(max_tokens=100), Decoding(max_tokens=100, repetition_penalty=1e6)
    )
    assert punished.tokens_generated > 64  # as far as llama.cpp counts unless it is told
    letters, repeated = (
        [c for c in text if c.isascii() and c.isprintable() and c not in "helo w12"]  # merged
        for text in (punished.text, free.text)
    )
    assert len(letters) == len(set(letters))
    assert len(repeated) > len(set(repeated))
    assert "hello" not in punished.text  # a token of the prompt


def test_thinking_is_switched_by_the_template(thinker: str) -> None:
    ends = {
        thinking: open_model(thinker, EngineOptions(thinking=thinking)).render(CHAT).text[-15:]
        for thinking in ("on", "off", "5")
    }
    assert ends["on"].endswith("<think>")
    assert ends["off"].endswith("</think>")
    assert ends["5"] == ends["on"]
    assert open_model(thinker, EngineOptions(thinking="on")).thinks
    assert not open_model(thinker, EngineOptions(thinking="off")).thinks


def test_a_thought_ends_at_its_budget(thinker: str) -> None:
    (free,) = completed(thinker, GREEDY, thinking="on")
    assert "</think>" not in free.text
    (bound,) = completed(thinker, GREEDY, thinking="5")
    thought, mark, _ = bound.text.partition("</think>")
    assert mark
    assert free.text.startswith(thought[:2])
    (longer,) = completed(thinker, GREEDY, thinking="12")
    assert len(longer.text.partition("</think>")[0]) > len(thought)


def test_a_switch_that_changes_nothing_is_refused_when_it_is_rendered(tmp_path: Path) -> None:
    named = OPENED.partition("{% if")[0] + "{# enable_thinking #}"
    path = write_small(tmp_path / "named.gguf", chat_template=named)
    with pytest.raises(ModelError, match="has no switch for thinking .* Drop --thinking"):
        completed(str(path), GREEDY, thinking="off")


def test_a_template_without_a_switch_is_refused_before_anything_is_loaded(plain: str) -> None:
    with pytest.raises(UsageError, match="has no switch for thinking .* Drop --thinking"):
        open_model(plain, EngineOptions(thinking="off"))
    with pytest.raises(UsageError, match="does not mark reasoning"):
        open_model(plain, EngineOptions(thinking="100"))
    with pytest.raises(UsageError, match="--thinking on: .* plain text"):
        open_model(plain, EngineOptions(thinking="on", prompt_form="text"))
    chosen = EngineOptions(engine_options=('chat_template_kwargs={"a": 1}',), prompt_form="text")
    with pytest.raises(UsageError, match="chat_template_kwargs: .* plain text"):
        open_model(plain, chosen)


def test_template_variables_reach_the_template(thinker: str) -> None:
    chosen = EngineOptions(engine_options=('chat_template_kwargs={"enable_thinking": false}',))
    assert open_model(thinker, chosen).render(CHAT).text.endswith("</think>")


def test_own_options_change_what_is_made(plain: str) -> None:
    (free,) = completed(plain, GREEDY)
    (dry,) = completed(plain, GREEDY, engine_options=("sampling.penalty_present=9",))
    assert free.text != dry.text
    model = open_model(plain, EngineOptions(engine_options=("cache_type_k=q8_0", "n_batch=64")))
    (made,) = model.generate([Request("t", 0, CHAT, GREEDY, 0)])
    assert made.error is None
    assert model.describe().to_json()["batch_invariant"] is False
    assert model.describe().to_json()["engine_options"] == {"cache_type_k": "q8_0", "n_batch": 64}


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("no_such=1", "is not a setting of llama.cpp"),
        ("n_parallel=4", "--engine-option n_parallel: is set by other options. Use --parallel"),
        ("sampling.temp=1", "Use --temperature"),
        ("model=x", "Use --model"),
    ],
)
def test_unknown_names_are_one_line(plain: str, option: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refusal:
        open_model(plain, EngineOptions(engine_options=(option,)))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("n_batch=many", "--engine-option n_batch: is not a whole number"),
        ("swa_full=1", "--engine-option swa_full: is not true or false"),
        ("cache_type_k=q9", "is not one of its values. Use one of f32, f16"),
    ],
)
def test_values_of_the_wrong_kind_are_one_line(plain: str, option: str, problem: str) -> None:
    with pytest.raises(ModelError, match=problem):
        completed(plain, GREEDY, engine_options=(option,))


def test_every_option_is_one_of_the_binding() -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    for name in (*KNOWN, *RESERVED):
        value: Any = params
        for part in name.split("."):
            value = getattr(value, part)
    chosen = ('flash_attn_type="enabled"', "sampling.typ_p=1")
    apply_options(params, parse_engine_options(chosen))
    assert params.flash_attn_type.name == "LLAMA_FLASH_ATTN_TYPE_ENABLED"


def test_settings_that_are_not_its_own_are_refused(plain: str) -> None:
    with pytest.raises(UsageError, match="--revision: the gguf engine has no such setting"):
        open_model(plain, EngineOptions(revision="main"))
    model = open_model(plain, EngineOptions(engine_options=("n_batch=64",)))
    with pytest.raises(UsageError, match="has no effect on logits and perplexity"):
        open_scorer(model)
    assert isinstance(model, ProcessModel)
    assert not model._processes  # none was started


def test_a_file_named_otherwise_still_has_these_rules(plain: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.symlink_to(plain)
    with pytest.raises(UsageError, match="--revision"):
        open_model(str(copy), EngineOptions(revision="main"))
