"""Hold the metadata of .apr files: a JSON object that any program may have written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VOCABULARY, MERGES = "tokenizer.vocabulary", "tokenizer.merges"
OURS = "assay"  # the key for values that the format has no keys for


@dataclass(frozen=True, slots=True)
class AprMetadata:
    """All entries. Other programs write some of them with the prefix ``model.``."""

    content: dict[str, Any]

    def get(self, key: str, otherwise: Any = None) -> Any:
        return self.content.get(key, otherwise)

    def first(self, *keys: str) -> Any:
        """Return the first entry that exists, in either spelling; None if there is none."""
        both = [spelling for key in keys for spelling in (key, f"model.{key}")]
        return next((self.content[k] for k in both if self.content.get(k) is not None), None)
