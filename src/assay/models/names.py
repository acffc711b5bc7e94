"""Names that distinguish models, and the identity of a model in a folder."""

from __future__ import annotations

import re
from pathlib import Path

from assay.formats.format import describe_model
from assay.formats.huggingface.folder import (
    chat_template,
    read_config,
    sha256_of,
    tokenizer_digest,
    weights_digest,
)
from assay.formats.stored import ROUNDING, SIZE, StoredModel, parse_size
from assay.models.options import EngineOptions, prompt_form
from assay.types import ModelIdentity

# Generic names: the name of the folder around them is added.
GENERIC = re.compile(
    r"(ggml[-_.])?(model|weights|checkpoint|consolidated|adapter|final|latest|last|best|merged|"
    r"output|completions|samples)s?([-_.]?\d+)?([-_.]?(f|bf|fp|i?q)\d\w*)?",
    re.IGNORECASE,
)
NUMBER_FORMAT = re.compile(
    r"i?q\d|(bf|fp|f|int)(4|8|16|32)(?!\d)|[48]-?bit|gptq|awq|nf4", re.IGNORECASE
)
DIGEST = re.compile(r"(sha256-)?[0-9a-f]{32,}")  # names of files in the caches of other programs
PART = re.compile(r"-\d{5}-of-\d{5}$")  # the number of a file of several
ADDED = re.compile(r"( \d+(\.\d+)?[KMBT])?( (I?Q|BF|F|APR_Q)\d\w*| gptq| awq)?$")


def default_name(
    path: Path, *, adapter: Path | None = None, stored: StoredModel | None = None
) -> str:
    """Return the name of a model, the same for every engine that opens these files.

    ``stored`` is what the files say about it, if the caller has read them.
    """
    path = path.absolute()
    name = compose_name(_own_name(path), describe_model(path) if stored is None else stored)
    return f"{name} + {_own_name(adapter.absolute())}" if adapter else name


def compose_name(name: str, stored: StoredModel) -> str:
    """Return a file's own name with the size and the number format, if it does not have them."""
    if DIGEST.fullmatch(name) and stored.title:
        name = stored.title
    size = _size(stored)
    if size and not SIZE.search(name):
        name += f" {size}"
    if stored.number_format and not NUMBER_FORMAT.search(name):
        name += f" {stored.number_format}"
    return name


def base_name(name: str) -> str:
    """Return a name without the size and number format that versions of assay add differently."""
    return " + ".join(ADDED.sub("", part) for part in name.split(" + "))


def short_count(parameters: int) -> str:
    """Return a number of weights as model names have it: ``135M``, ``1.5B``, ``8B``."""
    for unit, size in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if parameters >= size:
            count = parameters / size
            digits = 0 if count >= 10 else 1
            return f"{count:.{digits}f}".removesuffix(".0") + unit
    return str(parameters)


def _size(stored: StoredModel) -> str:
    """Return the size in the metadata, unless the weights contradict it; otherwise their number."""
    stated, count = parse_size(stored.size_label), stored.parameters
    if stated and (not count or abs(count / stated - 1) <= ROUNDING):
        return stored.size_label
    return short_count(count) if count else ""


def _own_name(path: Path) -> str:
    """Return the name of a file or folder. A link has that of its target, except into a cache."""
    target = path.resolve()
    path = path if DIGEST.fullmatch(target.name) else target
    hub = path.parent.parent.name if path.parent.name == "snapshots" else ""
    if hub.startswith("models--"):  # a folder of the hub's cache
        return hub.removeprefix("models--").replace("--", "/")
    name = path.name if path.is_dir() else PART.sub("", Path(path.name.removesuffix(".gz")).stem)
    if GENERIC.fullmatch(name) and path.parent.name:
        return f"{path.parent.name}/{name}"
    return name


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
