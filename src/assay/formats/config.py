"""Hold JSON files of a model: whole for the libraries that read them, typed for assay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.errors import ModelError
from assay.formats.rope import RopeScaling, parse_scaling


@dataclass(frozen=True, slots=True)
class JsonFile:
    """The content of a JSON file that is an object."""

    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelConfig(JsonFile):
    """A config.json."""

    @property
    def model_type(self) -> str:
        return str(self.content.get("model_type", ""))

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
        parameters = self.content.get("rope_parameters") or {}
        return float(parameters.get("rope_theta") or self.content.get("rope_theta") or 10000.0)

    @property
    def rope_scaling(self) -> RopeScaling | None:
        """Return how the rotary embedding is scaled, if it is."""
        parameters = self.content.get("rope_parameters") or {}
        return parse_scaling(self.content.get("rope_scaling") or parameters)

    def whole(self, name: str) -> int | None:
        """Return a setting that is a whole number, or None."""
        value = self.content.get(name)
        return value if isinstance(value, int) else None

    def need(self, name: str, where: str) -> int:
        """Return a whole number. Raise ModelError, naming ``where``, if the setting is not one."""
        if (value := self.whole(name)) is None:
            raise ModelError(f"{where}: has no {name}. Download or convert it again.")
        return value

    def head_size(self, where: str) -> int:
        heads = self.need("num_attention_heads", where)
        return self.whole("head_dim") or self.need("hidden_size", where) // heads

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
