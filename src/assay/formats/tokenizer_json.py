"""Between a vocabulary and the tokenizer.json of the ``tokenizers`` library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.formats.vocabulary import (
    CONTROL,
    GPT2,
    NORMAL,
    PRE_TOKENIZERS,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    PreTokenizer,
    Vocabulary,
    pre_tokenizer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

FILLER = "[PAD{}]"  # a number without a token, in llama.cpp's spelling
_SPECIAL = (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))


def tokenizer_json(vocabulary: Vocabulary, where: str) -> dict[str, Any]:
    """The tokenizer that gives the ids that llama.cpp gives."""
    pre = pre_tokenizer(vocabulary.pre, where)
    typed = list(enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True)))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind != USER_DEFINED,
            }
            for number, (token, kind) in typed
            if kind in (UNKNOWN, CONTROL, USER_DEFINED)
        ],
        "normalizer": None,
        "pre_tokenizer": pre.json,
        "post_processor": _post_processor(vocabulary),
        "decoder": GPT2,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pre.ignore_merges,
            "vocab": {token: number for number, (token, kind) in typed if kind != UNUSED},
            "merges": vocabulary.merges,
        },
    }


def tokenizer_config(vocabulary: Vocabulary, chat_template: str) -> dict[str, Any]:
    """What transformers needs beside it."""
    numbers = {f"{theirs}_token": getattr(vocabulary, ours) for theirs, ours in _SPECIAL}
    config: dict[str, Any] = {
        name: vocabulary.tokens[number] for name, number in numbers.items() if number is not None
    }
    config["add_bos_token"] = vocabulary.add_bos
    config["add_eos_token"] = vocabulary.add_eos
    config["clean_up_tokenization_spaces"] = False
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    if chat_template:
        config["chat_template"] = chat_template
    return config


def vocabulary_of(
    tokenizer: Mapping[str, Any], settings: Mapping[str, Any], where: str
) -> Vocabulary:
    """Of a tokenizer.json and its tokenizer_config.json; ModelError: it is of another kind."""
    pre = _recognised(tokenizer)
    if pre is None:
        raise ModelError(
            f"{where} has a tokenizer that a GGUF file cannot say: only byte-level BPE as of "
            f"{', '.join(known.names[0] for known in PRE_TOKENIZERS)} can be converted"
        )
    tokens = _tokens(tokenizer)
    added = {token["id"]: token["special"] for token in tokenizer.get("added_tokens", [])}
    vocab = tokenizer["model"]["vocab"]

    def kind(number: int, token: str) -> int:
        if number in added:
            return CONTROL if added[number] else USER_DEFINED
        return NORMAL if token in vocab else UNUSED

    numbers = {token: number for number, token in enumerate(tokens)}
    starts, ends = _template_ends(tokenizer.get("post_processor"))
    return Vocabulary(
        tokens=tokens,
        merges=_merges(tokenizer),
        types=[kind(number, token) for number, token in enumerate(tokens)],
        pre=pre.names[0],
        add_bos=bool(settings.get("add_bos_token", starts)),
        add_eos=bool(settings.get("add_eos_token", ends)),
        **{
            ours: numbers[token]
            for theirs, ours in _SPECIAL
            if (token := _content(settings.get(f"{theirs}_token"))) in numbers
        },
    )


def default_template(settings: Mapping[str, Any]) -> str | None:
    """The chat template of a tokenizer_config.json, which may have several by name."""
    template = settings.get("chat_template")
    if isinstance(template, list):
        template = {one.get("name"): one.get("template") for one in template}.get("default")
    return template if isinstance(template, str) else None


def split_tokenizer(tokenizer: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A BPE tokenizer without its vocabulary, and that under .apr's keys; others stay whole."""
    model = tokenizer.get("model", {})
    if model.get("type") != "BPE":
        return tokenizer, {}
    tokens = _tokens(tokenizer)
    small = {key: value for key, value in model.items() if key not in ("vocab", "merges")}
    small["absent"] = [n for n, token in enumerate(tokens) if model["vocab"].get(token) != n]
    small["pairs"] = any(not isinstance(merge, str) for merge in model["merges"])
    split = {**tokenizer, "model": small}
    taken = {"tokenizer.vocabulary": tokens, "tokenizer.merges": _merges(tokenizer)}
    return (split, taken) if whole_tokenizer(split, taken) == tokenizer else (tokenizer, {})


def whole_tokenizer(split: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What ``split_tokenizer`` was given."""
    if "absent" not in split["model"]:
        return split
    model = dict(split["model"])
    absent, pairs = set(model.pop("absent")), model.pop("pairs")
    tokens, merges = metadata["tokenizer.vocabulary"], metadata["tokenizer.merges"]
    model["vocab"] = {token: n for n, token in enumerate(tokens) if n not in absent}
    model["merges"] = [merge.split(" ") for merge in merges] if pairs else merges
    return {**split, "model": model}


def _tokens(tokenizer: Mapping[str, Any]) -> list[str]:
    """By number; numbers without a token get one that no text has."""
    known = {number: token for token, number in tokenizer["model"]["vocab"].items()}
    known |= {token["id"]: token["content"] for token in tokenizer.get("added_tokens", [])}
    return [known.get(number, FILLER.format(number)) for number in range(max(known) + 1)]


def _merges(tokenizer: Mapping[str, Any]) -> list[str]:
    merges = tokenizer["model"]["merges"]
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]


def _recognised(tokenizer: Mapping[str, Any]) -> PreTokenizer | None:
    """llama.cpp never composes characters (NFC) before it splits; other changes it cannot do."""
    if tokenizer["model"].get("type") != "BPE":
        return None
    if (tokenizer.get("normalizer") or {"type": "NFC"}).get("type") != "NFC":
        return None
    found = _essence(tokenizer.get("pre_tokenizer"))
    ignores = bool(tokenizer["model"].get("ignore_merges"))
    return next(
        (p for p in PRE_TOKENIZERS if _essence(p.json) == found and p.ignore_merges == ignores),
        None,
    )


def _essence(step: Any) -> Any:
    """A pre-tokenizer without what decides no token."""
    if not isinstance(step, dict):
        return step
    if step.get("type") == "ByteLevel":
        return "ByteLevel", step.get("add_prefix_space"), step.get("use_regex", True)
    if step.get("type") == "Sequence":
        return [_essence(one) for one in step.get("pretokenizers", [])]
    return sorted((key, str(value)) for key, value in step.items())


def _content(token: Any) -> Any:
    return token.get("content") if isinstance(token, dict) else token


def _template_ends(processor: Any) -> tuple[bool, bool]:
    """Whether the tokenizer puts a token before a text, and one after it."""
    for one in (processor or {}).get("processors", [processor]):
        if one and one.get("type") == "TemplateProcessing" and one["single"]:
            return "SpecialToken" in one["single"][0], "SpecialToken" in one["single"][-1]
    return False, False


def _post_processor(vocabulary: Vocabulary) -> dict[str, Any] | None:
    before = vocabulary.bos if vocabulary.add_bos else None
    after = vocabulary.eos if vocabulary.add_eos else None
    tokens = {number: vocabulary.tokens[number] for number in (before, after) if number is not None}
    if not tokens:
        return None

    def around(sequence: str) -> list[dict[str, Any]]:
        def special(number: int | None) -> list[dict[str, Any]]:
            if number is None:
                return []
            return [{"SpecialToken": {"id": tokens[number], "type_id": 0}}]

        return [*special(before), {"Sequence": {"id": sequence, "type_id": 0}}, *special(after)]

    return {
        "type": "TemplateProcessing",
        "single": around("A"),
        "pair": [*around("A"), *around("B")],
        "special_tokens": {
            token: {"id": token, "ids": [number], "tokens": [token]}
            for number, token in tokens.items()
        },
    }
