"""Identify the model in a folder, as an engine uses it."""

from __future__ import annotations

from pathlib import Path

from assay.formats.huggingface.folder import (
    chat_template,
    read_config,
    sha256_of,
    tokenizer_digest,
    weights_digest,
)
from assay.models.names import default_name
from assay.models.options import EngineOptions, prompt_form
from assay.types import ModelIdentity


def folder_identity(
    engine: str,
    reference: str,
    folder: Path,
    adapter: Path | None,
    dtype: str,
    options: EngineOptions,
) -> ModelIdentity:
    """Return the identity of a model folder as an engine uses it."""
    read_config(folder)  # raises an error that transformers would hide
    template = chat_template(folder)
    return ModelIdentity(
        name=options.name or _default_name(reference, adapter, options.revision),
        engine=engine,
        weights_sha256=weights_digest(folder),
        prompt_form=prompt_form(options, template, reference),
        tokenizer_sha256=tokenizer_digest(folder),
        template_sha256=sha256_of(template),
        variant=f"{dtype}, adapter {weights_digest(adapter)}" if adapter else dtype,
        path=str(folder),
    )


def _default_name(reference: str, adapter: Path | None, revision: str) -> str:
    if Path(reference).is_dir():
        return default_name(Path(reference), adapter=adapter)
    name = f"{reference}@{revision}" if revision else reference  # a hub's id
    return f"{name} + {default_name(adapter)}" if adapter else name
