"""The tokenizers made from GGUF vocabularies, against llama.cpp's own ids."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from assay.datasets import packaged_file
from assay.errors import ModelError
from assay.formats.config import TokenizerConfig
from assay.formats.format import read_checkpoint
from assay.formats.gguf.file import read_header
from assay.formats.tokenizer_json import (
    SplitTokenizer,
    TokenizerJson,
    split_tokenizer,
    tokenizer_config,
    tokenizer_json,
    vocabulary_of,
    whole_tokenizer,
)
from assay.formats.vocabulary import PRE_TOKENIZERS, Vocabulary
from assay.models import DEFAULT_WEIGHTS
from assay.types import Benchmark

NAMES = [name for known in PRE_TOKENIZERS for name in known.names]
ODD = [
    "",
    " ",
    "\n",
    "a\n\n\n  b\t\t c   \r\n   ",
    "   leading and trailing   ",
    "I'm you'RE WE'LL it'S don'T 'quoted'",
    "1 12 123 1234 12345678 3.14159 0x1F 1e-10 ½ ² ٣٤ Ⅳ",
    "x==y!=z<=>+-*/%^&|~$`#@()[]{};:,.?\\\"'",
    "Grüße, 世界! Привет עברית हिन्दी ภาษาไทย 한국어 — “quotes” …",
    "e\u0301 \u00e9 \u200b\u00a0\u3000\ufeff",
    "🦀 👩‍💻 🇩🇪",
    "def f(x):\n    return x**2  # square\n\n\tif x>=10: pass\n",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|> <|im_start|><|im_start|>",
    "camelCaseAndUPPERCase snake_case_word kebab-case",
]


def made_by(tokenizer: TokenizerJson) -> Any:
    library = pytest.importorskip("tokenizers", reason="needs tokenizers: pip install tokenizers")
    return library.Tokenizer.from_str(json.dumps(tokenizer.content))


def vocabulary(pre: str = "smollm", **changes: Any) -> Vocabulary:
    return Vocabulary(
        tokens=["<s>", "</s>", "a", "b", "ab", "<tool>", "[PAD6]"],
        merges=["a b"],
        types=[3, 3, 1, 1, 1, 4, 5],
        pre=pre,
        bos=0,
        eos=1,
        **changes,
    )


@pytest.mark.parametrize("pre", NAMES)
def test_a_vocabulary_comes_back_out_of_its_tokenizer(pre: str) -> None:
    first = vocabulary(pre, add_bos=True, add_eos=True)
    back = vocabulary_of(tokenizer_json(first, "x"), tokenizer_config(first, ""), "x")
    assert back.tokens == first.tokens[:-1]  # what is unused is left out
    assert back.types == first.types[:-1]
    assert (back.merges, back.bos, back.eos) == (first.merges, 0, 1)
    assert (back.add_bos, back.add_eos) == (True, True)
    again, before = (tokenizer_json(one, "x").content["pre_tokenizer"] for one in (back, first))
    assert again == before


def test_what_is_put_around_a_text_is_read_off_the_template() -> None:
    first = vocabulary(add_bos=True)
    settings = {"bos_token": {"content": "<s>", "special": True}, "eos_token": "</s>"}
    back = vocabulary_of(tokenizer_json(first, "x"), TokenizerConfig(settings), "x")
    assert (back.add_bos, back.add_eos, back.bos, back.eos) == (True, False, 0, 1)


def test_a_text_gets_its_beginning_and_end() -> None:
    tokenizer = made_by(tokenizer_json(vocabulary(add_bos=True, add_eos=True), "x"))
    assert tokenizer.encode("abb<tool>a").ids == [0, 4, 3, 5, 2, 1]
    assert tokenizer.encode("ab", add_special_tokens=False).ids == [4]


@pytest.mark.parametrize("merges", [["a b"], [["a", "b"]]])
@pytest.mark.parametrize("more", [[], [{"id": 9, "content": "<new>", "special": True}]])
def test_a_tokenizer_taken_apart_and_put_together_is_the_same(
    merges: list[Any], more: list[Any]
) -> None:
    tokenizer = tokenizer_json(vocabulary(), "x")
    tokenizer.content["model"]["merges"] = merges
    tokenizer.content["added_tokens"] += more
    before = copy.deepcopy(tokenizer)
    split = split_tokenizer(tokenizer)
    assert "vocab" not in split.rest.content["model"]
    assert split.merges == ["a b"]
    rest, *apart = json.loads(json.dumps([split.rest.content, split.tokens, split.merges]))
    assert whole_tokenizer(SplitTokenizer(TokenizerJson(rest), *apart)) == before == tokenizer
    with pytest.raises(LookupError, match="vocabulary is missing"):
        whole_tokenizer(SplitTokenizer(split.rest))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t["model"].update(merges=[["a b", "c"]]),
        lambda t: t["model"].update(type="WordPiece"),
        lambda t: t["model"]["vocab"].update(again=2),
    ],
)
def test_a_tokenizer_that_cannot_be_taken_apart_stays_whole(change: Any) -> None:
    tokenizer = tokenizer_json(vocabulary(), "x")
    change(tokenizer.content)
    split = split_tokenizer(tokenizer)
    assert split == SplitTokenizer(tokenizer)
    assert whole_tokenizer(split) == tokenizer


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"pre_tokenizer": None},
    ],
)
def test_a_tokenizer_that_gguf_cannot_say_is_refused(change: dict[str, Any]) -> None:
    other = TokenizerJson({**tokenizer_json(vocabulary(), "x").content, **change})
    with pytest.raises(ModelError, match="my-model: has a tokenizer that a GGUF file cannot store"):
        vocabulary_of(other, TokenizerConfig({}), "my-model")


def test_an_unknown_pre_tokenizer_is_named() -> None:
    with pytest.raises(ModelError, match="m.gguf: has the unknown pre-tokenizer 'tekken'"):
        tokenizer_json(vocabulary("tekken"), "m.gguf")


@pytest.mark.slow
@pytest.mark.model
def test_every_humaneval_prompt_gets_llama_cpps_ids(humaneval: Benchmark) -> None:
    pytest.importorskip("xllamacpp", reason="needs llama.cpp: pip install 'assay-eval[gguf]'")
    from tests.models.llama_tokens import llama_tokens

    path = packaged_file(DEFAULT_WEIGHTS)
    checkpoint = read_checkpoint(path)
    assert checkpoint.generation_config.content["eos_token_id"] == [
        2,
        0,
        4,
    ]  # llama.cpp's, as it prints
    tokenizer = made_by(checkpoint.tokenizer_json)
    texts = [problem.prompt for problem in humaneval.problems] + ODD
    chats = [[{"role": "user", "content": problem.prompt}] for problem in humaneval.problems]
    theirs = llama_tokens(path, texts, chats)
    assert sum(len(ids) for ids in theirs["texts"][:20]) == 2069
    assert [tokenizer.encode(text).ids for text in texts] == theirs["texts"]
    assert [tokenizer.encode(chat).ids for chat in theirs["chats"]] == theirs["chat_ids"]


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("pre", NAMES)
def test_every_pre_tokenizer_splits_as_llama_cpp_does(
    pre: str, tmp_path: Path, humaneval: Benchmark
) -> None:
    """The default model's vocabulary under each name, in a model of nothing but noise."""
    pytest.importorskip("xllamacpp", reason="needs llama.cpp: pip install 'assay-eval[gguf]'")
    from tests.models.llama_tokens import llama_tokens
    from tests.models.small_models import write_small

    real: dict[str, Any] = {**read_header(packaged_file(DEFAULT_WEIGHTS), arrays=True).metadata}
    path = write_small(
        tmp_path / "x.gguf",
        ("Q4_K",),
        pre=pre,
        tokens=real["tokenizer.ggml.tokens"],
        types=real["tokenizer.ggml.token_type"],
        merges=real["tokenizer.ggml.merges"],
    )
    tokenizer = made_by(read_checkpoint(path).tokenizer_json)
    texts = [problem.prompt for problem in humaneval.problems[::8]] + ODD
    theirs = llama_tokens(path, texts, [])["texts"]
    for text, ids in zip(texts, theirs, strict=True):
        assert tokenizer.encode(text).ids == ids, text
