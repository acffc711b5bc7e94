"""Parse a server's list of models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from assay.models.named_values import NamedValue

# Facts about a model that a restart of the server does not change. ``created`` changes.
LASTING = ("root", "owned_by")
LASTING_META = ("n_params", "n_vocab", "n_embd", "size")  # llama.cpp's


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A listed model. ``lasting`` holds the facts that a restart of the server does not change."""

    name: str
    lasting: tuple[NamedValue, ...] = ()


def parse_listing(answer: Any) -> list[ListedModel]:
    """Parse the models out of an answer in any of several shapes. Skip other entries."""
    listed = answer.get("data") if isinstance(answer, dict) else answer
    if not isinstance(listed, list):
        return []
    return [
        ListedModel(model["id"], _lasting(model))
        for model in listed
        if isinstance(model, dict) and isinstance(model.get("id"), str)
    ]


def _lasting(answer: Any) -> tuple[NamedValue, ...]:
    meta = answer.get("meta")
    about = meta if isinstance(meta, dict) else {}
    found = [(name, answer[name]) for name in LASTING if name in answer]
    found += [(name, about[name]) for name in LASTING_META if name in about]
    return tuple(NamedValue(name, json.dumps(value)) for name, value in found)
