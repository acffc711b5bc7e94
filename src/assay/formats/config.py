"""Hold JSON files of a model: whole for the libraries that read them, typed for assay."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from assay.data import codec
from assay.errors import ModelError
from assay.formats.rope import RopeScaling, parse_scaling

MOST_NAME = 100  # characters of a model's type
# By the names that configurations have for them.
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
OTHER = ("vocab_size", "intermediate_size", "n_inner", "ffn_dim", "max_position_embeddings")
PARAMETERS_PER_BYTE = 8  # no weights take less than a bit each
LEAST_BYTES = 1 << 26  # smaller models are harmless; the engine reports their damaged weights
MOST_LAYERS = 10_000
MOST_POSITIONS = 1 << 40  # computed, not stored, in most models
NESTED = ("text_config",)


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
        text = token.get("content") if isinstance(token, dict) else token
        return text if isinstance(text, str) else None

    def flag(self, name: str, otherwise: bool) -> bool:
        return bool(self.content.get(name, otherwise))


def check_sizes(config: ModelConfig, weight_bytes: int, where: object) -> None:
    """Raise ModelError, naming ``where``, if the weights cannot have so many parameters.

    transformers builds the model of a configuration before it looks at the weights, even with a
    billion layers or a vocabulary of a terabyte.
    """
    most = max(weight_bytes, LEAST_BYTES) * PARAMETERS_PER_BYTE
    hidden = max((_size(config, name, where) for name in HIDDEN), default=1) or 1
    for name in LAYERS:
        layers = _size(config, name, where)
        if layers > MOST_LAYERS or layers * hidden > most:
            raise _impossible(where, name, layers)
    for name in OTHER:
        size = _size(config, name, where)
        stored = name != "max_position_embeddings"
        if (stored and size * hidden > most) or size > MOST_POSITIONS:
            raise _impossible(where, name, size)
    if hidden > most:
        raise _impossible(where, "the hidden size", hidden)
    for name in NESTED:
        if isinstance(inner := config.content.get(name), dict):
            check_sizes(ModelConfig(inner), weight_bytes, where)


def _size(config: ModelConfig, name: str, where: object) -> int:
    """Return a size, 0 if it is not given. Some are null, or a list with one for each layer."""
    value = config.content.get(name)
    if value is None or isinstance(value, list):
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _impossible(where, name, value)
    return value


def _impossible(where: object, name: str, value: object) -> ModelError:
    return ModelError(
        f"{where}: {name} is {str(value)[:40]}, which does not fit its weights. Download it again."
    )
