"""What every engine gives: a model that is known but not loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from assay.models.too_long import is_too_long
from assay.types import Completion, ModelIdentity, Prompt, Request, SampleKey

if TYPE_CHECKING:
    from assay.models.facts import EngineFacts
    from assay.progress import Reporter


Loading = Literal["kept", "elsewhere", "every call"]  # of a model: here once, by others, anew


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

    def describe(self) -> EngineFacts:
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


@runtime_checkable
class Watchable(Protocol):
    """A model whose engine reports between two completions. Servers and recordings do not."""

    reporter: Reporter | None


def watch(model: Model, reporter: Reporter) -> None:
    """Let the model report what its engine does, if it can."""
    if isinstance(model, Watchable):
        model.reporter = reporter


@runtime_checkable
class RecordedModel(Model, Protocol):
    """A model whose completions were all made before."""

    def recorded(self) -> list[SampleKey]:
        """The samples there are, in the order of the file."""
        ...


def failed(task_id: str, sample: int, why: str, seed: int = 0) -> Completion:
    """Return what stands for a completion that could not be made.

    If the prompt is longer than the model's context, that is an answer: the model cannot give one.
    """
    too_long = is_too_long(why)
    return Completion(
        task_id, sample, "", "prompt-too-long" if too_long else "error", 0, 0, 0.0, seed,
        used_gpu=False, error=None if too_long else why,
    )  # fmt: skip
