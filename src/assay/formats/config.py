"""Hold JSON files of a model: whole for the libraries that read them, typed for assay."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from assay.data import codec
from assay.errors import ModelError
from assay.formats.rope import RopeScaling, parse_scaling

MOST_NAME = 100  # characters of a model's type


def as_number(value: Any) -> float:
    """Return a setting as a float. Raise ModelError if it is not a finite number."""
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and isfinite(value):
            return float(value)
    except OverflowError:  # an integer above all floats
        pass
    raise ModelError(
        f"config.json: {type(value).__name__} in place of a finite number. "
        "Download the folder again."
    )


@dataclass(frozen=True, slots=True)
class JsonFile:
    """The content of a JSON file that is an object."""

    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelConfig(JsonFile):
    """A config.json."""

    @property
    def model_type(self) -> str:
        return str(self.content.get("model_type", ""))[:MOST_NAME]

    @property
    def heads(self) -> int | None:
        return self.whole("num_attention_heads")

    @property
    def key_value_heads(self) -> int | None:
        return self.whole("num_key_value_heads") or self.heads

    @property
    def is_tied(self) -> bool:
        """Return whether the embedding is also the head."""
        return bool(self.content.get("tie_word_embeddings"))

    @property
    def rope_base(self) -> float:
        """Return ``rope_theta`` of an old or a new config.json."""
        parameters = self._group("rope_parameters")
        return as_number(parameters.get("rope_theta") or self.content.get("rope_theta") or 10000.0)

    @property
    def rope_scaling(self) -> RopeScaling | None:
        """Return how the rotary embedding is scaled, if it is."""
        return parse_scaling(self._group("rope_scaling") or self._group("rope_parameters"))

    def _group(self, name: str) -> dict[str, Any]:
        value = self.content.get(name) or {}
        if not isinstance(value, dict):
            raise ModelError(f"config.json: {name} is not an object. Download the folder again.")
        return value

    def whole(self, name: str) -> int | None:
        """Return a setting that is a whole number, or None."""
        value = self.content.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return value if 0 <= value < codec.HUGE else None

    def need(self, name: str, where: str) -> int:
        """Return a whole number. Raise ModelError, naming ``where``, if the setting is not one."""
        if (value := self.whole(name)) is None:
            raise ModelError(f"{where}: has no {name}. Download or convert it again.")
        return value

    def head_size(self, where: str) -> int:
        heads = self.need("num_attention_heads", where)
        size = 0 if self.content.get("head_dim") is None else self.need("head_dim", where)
        return size or self.need("hidden_size", where) // heads

    def replace(self, **settings: Any) -> ModelConfig:
        """Return a copy with other settings."""
        return ModelConfig({**self.content, **settings})


@dataclass(frozen=True, slots=True)
class TokenizerConfig(JsonFile):
    """A tokenizer_config.json: what transformers needs in addition to a tokenizer.json."""

    @property
    def default_template(self) -> str | None:
        """Return the chat template, of which there may be several by name."""
        template = self.content.get("chat_template")
        if isinstance(template, list):
            template = {one.get("name"): one.get("template") for one in template}.get("default")
        return template if isinstance(template, str) else None

    def special(self, name: str) -> str | None:
        """Return the text of a special token, which is stored as a text or an object."""
        token = self.content.get(f"{name}_token")
        found = token.get("content") if isinstance(token, dict) else token
        return found if isinstance(found, str) else None

    def flag(self, name: str, otherwise: bool) -> bool:
        return bool(self.content.get(name, otherwise))
