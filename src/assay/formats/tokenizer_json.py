"""Convert between a vocabulary and the tokenizer.json of the ``tokenizers`` library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.errors import ModelError
from assay.formats.config import JsonFile, TokenizerConfig
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

FILLER = "[PAD{}]"  # a number without a token, in llama.cpp's spelling
_SPECIAL = (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))


class AddedToken(NamedTuple):
    """A token that is searched before a text is split."""

    id: int
    content: str
    special: bool


@dataclass(frozen=True, slots=True)
class TokenizerJson(JsonFile):
    """A tokenizer.json."""

    @property
    def is_bpe(self) -> bool:
        return bool(self.content.get("model", {}).get("type") == "BPE")

    @property
    def vocab(self) -> dict[str, int]:
        """Return BPE's token numbers by token."""
        numbers: dict[str, int] = self.content["model"]["vocab"]
        return numbers

    @property
    def merges(self) -> list[str]:
        """Return BPE's merges, each with a space between its halves."""
        merges = self.content["model"]["merges"]
        return [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]

    @property
    def added(self) -> list[AddedToken]:
        tokens = self.content.get("added_tokens", [])
        return [AddedToken(one["id"], one["content"], one["special"]) for one in tokens]

    def tokens(self) -> list[str]:
        """Return tokens by number. Numbers without a token get one that occurs in no text."""
        known = {number: token for token, number in self.vocab.items()}
        known |= {token.id: token.content for token in self.added}
        return [known.get(number, FILLER.format(number)) for number in range(max(known) + 1)]

    def pre_tokenizer(self) -> PreTokenizer | None:
        """Return how it splits a text, or None if llama.cpp has no such rule.

        llama.cpp never composes characters (NFC) before it splits, and has no other normalisation.
        """
        if not self.is_bpe:
            return None
        if (self.content.get("normalizer") or {"type": "NFC"}).get("type") != "NFC":
            return None
        steps = _essence(self.content.get("pre_tokenizer"))
        ignores = bool(self.content["model"].get("ignore_merges"))
        known = (p for p in PRE_TOKENIZERS if p.ignore_merges == ignores)
        return next((p for p in known if _essence(p.to_json()) == steps), None)

    def adds(self) -> tuple[bool, bool]:
        """Return whether it puts a token before a text, and one after it."""
        processor = self.content.get("post_processor")
        for one in (processor or {}).get("processors", [processor]):
            if one and one.get("type") == "TemplateProcessing" and one["single"]:
                return "SpecialToken" in one["single"][0], "SpecialToken" in one["single"][-1]
        return False, False


class SplitTokenizer(NamedTuple):
    """A BPE tokenizer with its vocabulary stored separately. Others are whole in ``rest``."""

    rest: TokenizerJson
    tokens: list[str] | None = None
    merges: list[str] | None = None


def tokenizer_json(vocabulary: Vocabulary, where: str) -> TokenizerJson:
    """Return the tokenizer that produces the same ids as llama.cpp."""
    pre = pre_tokenizer(vocabulary.pre, where)
    typed = list(enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True)))
    content = {
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
        "pre_tokenizer": pre.to_json(),
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
    return TokenizerJson(content)


def tokenizer_config(vocabulary: Vocabulary, chat_template: str) -> TokenizerConfig:
    """Return the settings that transformers needs in addition."""
    numbers = {f"{theirs}_token": getattr(vocabulary, ours) for theirs, ours in _SPECIAL}
    config: dict[str, str | bool] = {
        name: vocabulary.tokens[number] for name, number in numbers.items() if number is not None
    }
    config["add_bos_token"] = vocabulary.add_bos
    config["add_eos_token"] = vocabulary.add_eos
    config["clean_up_tokenization_spaces"] = False
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    if chat_template:
        config["chat_template"] = chat_template
    return TokenizerConfig(dict(config))


def vocabulary_of(tokenizer: TokenizerJson, settings: TokenizerConfig, where: str) -> Vocabulary:
    """Read the vocabulary of a tokenizer. Raise ModelError if it is of another kind or damaged."""
    try:
        return _vocabulary_of(tokenizer, settings, where)
    except (AttributeError, TypeError, LookupError) as error:  # another shape than the library's
        why = f"{type(error).__name__}: {error}"
        raise ModelError(f"{where}: has a damaged tokenizer ({why}). Download it again.") from error


def _vocabulary_of(tokenizer: TokenizerJson, settings: TokenizerConfig, where: str) -> Vocabulary:
    pre = tokenizer.pre_tokenizer()
    if pre is None:
        raise ModelError(
            f"{where}: has a tokenizer that a GGUF file cannot store. Only byte-level BPE of "
            f"{', '.join(known.names[0] for known in PRE_TOKENIZERS)} can be converted."
        )
    tokens, vocab = tokenizer.tokens(), tokenizer.vocab
    added = {token.id: token.special for token in tokenizer.added}

    def kind(number: int, token: str) -> int:
        if number in added:
            return CONTROL if added[number] else USER_DEFINED
        return NORMAL if token in vocab else UNUSED

    numbers = {token: number for number, token in enumerate(tokens)}
    starts, ends = tokenizer.adds()
    return Vocabulary(
        tokens=tokens,
        merges=tokenizer.merges,
        types=[kind(number, token) for number, token in enumerate(tokens)],
        pre=pre.names[0],
        add_bos=settings.flag("add_bos_token", starts),
        add_eos=settings.flag("add_eos_token", ends),
        **{
            ours: numbers[token]
            for theirs, ours in _SPECIAL
            if (token := settings.special(theirs)) in numbers
        },
    )


def split_tokenizer(tokenizer: TokenizerJson) -> SplitTokenizer:
    """Separate the vocabulary of a BPE tokenizer. Others stay whole."""
    if not tokenizer.is_bpe:
        return SplitTokenizer(tokenizer)
    model, tokens = tokenizer.content["model"], tokenizer.tokens()
    small = {key: value for key, value in model.items() if key not in ("vocab", "merges")}
    small["absent"] = [n for n, token in enumerate(tokens) if model["vocab"].get(token) != n]
    small["pairs"] = any(not isinstance(merge, str) for merge in model["merges"])
    rest = TokenizerJson({**tokenizer.content, "model": small})
    split = SplitTokenizer(rest, tokens, tokenizer.merges)
    return split if whole_tokenizer(split) == tokenizer else SplitTokenizer(tokenizer)


def whole_tokenizer(split: SplitTokenizer) -> TokenizerJson:
    """Undo ``split_tokenizer``. Raise LookupError if the vocabulary is missing."""
    model = dict(split.rest.content["model"])
    if "absent" not in model:
        return split.rest
    if split.tokens is None or split.merges is None:
        raise LookupError("the tokenizer's vocabulary is missing")
    absent, pairs = set(model.pop("absent")), model.pop("pairs")
    model["vocab"] = {token: n for n, token in enumerate(split.tokens) if n not in absent}
    model["merges"] = [merge.split(" ") for merge in split.merges] if pairs else split.merges
    return TokenizerJson({**split.rest.content, "model": model})


def _essence(step: Any) -> Any:
    """Return a pre-tokenizer without the settings that affect no token."""
    if not isinstance(step, dict):
        return step
    if step.get("type") == "ByteLevel":
        return "ByteLevel", step.get("add_prefix_space"), step.get("use_regex", True)
    if step.get("type") == "Sequence":
        return [_essence(one) for one in step.get("pretokenizers", [])]
    return sorted((key, str(value)) for key, value in step.items())


def _post_processor(vocabulary: Vocabulary) -> dict[str, Any] | None:
    before = vocabulary.bos if vocabulary.add_bos else None
    after = vocabulary.eos if vocabulary.add_eos else None
    tokens = {number: vocabulary.tokens[number] for number in (before, after) if number is not None}
    if not tokens:
        return None

    def special(number: int | None) -> list[Any]:
        if number is None:
            return []
        return [{"SpecialToken": {"id": tokens[number], "type_id": 0}}]

    def around(sequence: str) -> list[Any]:
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
