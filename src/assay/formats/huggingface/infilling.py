"""Find the fill-in-the-middle tokens of a Hugging Face folder or of a tokenizer.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.formats.gaps import Gap, find_gap
from assay.formats.huggingface.checkpoint import read_json

if TYPE_CHECKING:
    from pathlib import Path


def read_gap(folder: Path) -> Gap | None:
    """Return how the model marks a gap, or None if its tokenizer has no tokens for that."""
    found = _numbers(read_json(folder / "vocab.json", {}))
    found |= _vocabulary(read_json(folder / "tokenizer.json", {}))
    found |= _numbers(read_json(folder / "added_tokens.json", {}))
    settings = read_json(folder / "tokenizer_config.json", {})
    added = settings.get("added_tokens_decoder") if isinstance(settings, dict) else None
    for number, token in (added if isinstance(added, dict) else {}).items():
        if isinstance(token, dict) and number.isdecimal():
            found[str(token.get("content"))] = int(number)
    return find_gap(found)


def gap_of(tokenizer_json: Any) -> Gap | None:
    """Return how a model with this tokenizer.json marks a gap, or None."""
    return find_gap(_vocabulary(tokenizer_json))


def _vocabulary(tokenizer_json: Any) -> dict[str, int]:
    """Return the token numbers by token, those that are added to the vocabulary included."""
    if not isinstance(tokenizer_json, dict):
        return {}
    model, added = tokenizer_json.get("model"), tokenizer_json.get("added_tokens")
    listed = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(listed, list):  # Unigram: tokens with scores
        listed = {str(one[0]): n for n, one in enumerate(listed) if isinstance(one, list) and one}
    found = _numbers(listed)
    for token in added if isinstance(added, list) else []:
        if isinstance(token, dict) and isinstance(token.get("id"), int):
            found[str(token.get("content"))] = token["id"]
    return found


def _numbers(vocabulary: Any) -> dict[str, int]:
    """Return the entries of a JSON object whose values are numbers."""
    entries = vocabulary.items() if isinstance(vocabulary, dict) else ()
    return {token: number for token, number in entries if isinstance(number, int)}
