"""Generate on one GPU, or some cores, of a node: an engine behind a host."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from assay import __version__, models
from assay.cluster.files import Shipment, locate, read_from
from assay.cluster.host import Answer, AnyItem, Host
from assay.errors import ModelError
from assay.models import EngineFacts, EngineOptions, Model, Usage
from assay.pipeline.site import CheckModel
from assay.progress import Silent
from assay.runs import EncodedCompletion, ParityGateOutcome, encode_completion
from assay.sandbox import PAUSE
from assay.types import Decoding, ModelIdentity, Prompt, Request
from assay.work.machine import usable_physical_cores


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """A model as every node opens it. Its files are shared by path, or copied."""

    spec: str  # used if there is no shipment
    engine: str  # empty: found from the file's content
    options: EngineOptions
    identity: ModelIdentity
    model: Shipment | None = None
    adapter: Shipment | None = None


class EngineAbout(NamedTuple):
    """The place of an engine."""

    node: str
    libraries: dict[str, str]  # versions
    version: str = __version__


# A request without its prompt, which many requests share: task, sample, decoding, seed. A plain
# tuple, because a named one takes four times as long to pickle.
RequestPayload = tuple[str, int, Decoding, int]


def split_request(request: Request) -> tuple[Prompt, RequestPayload]:
    """Return a request as an item of a stage."""
    return request.prompt, (request.task_id, request.sample, request.decoding, request.seed)


@dataclass(frozen=True, slots=True)
class GenerateStage:
    """The stage that answers requests with completions, and the lines that record them."""

    def run(self, model: Model, items: Iterator[AnyItem | None], answer: Answer) -> None:
        tags: dict[tuple[str, int], int] = {}

        def requests() -> Iterator[Request]:
            for item in items:
                if item is not PAUSE:
                    task_id, sample, decoding, seed = item.payload
                    tags[task_id, sample] = item.tag
                    yield Request(task_id, sample, item.context, decoding, seed)

        for completion in model.generate(requests()):
            answer(tags.pop(completion.key), encode_completion(completion))

    def give_up(self, context: Prompt, payload: RequestPayload, why: str) -> EncodedCompletion:  # noqa: ARG002
        raise ModelError(
            f"{payload[0]}: several engines ended while they worked on it ({why}). "
            "Completed work is saved; run the same command to resume."
        )


class _Progress(Silent):
    """The progress of an engine between two completions."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host

    def loading(self) -> None:
        self._host.loading = True

    def generating(self, tokens: int) -> None:
        self._host.loading, self._host.tokens = False, tokens


class EngineHost(Host):
    """A model that stays loaded as long as this process lives, behind a host."""

    eager = True

    def __init__(self, cpus: int = 0, keep_threads: bool = False) -> None:
        super().__init__()
        self._cpus = cpus
        if not keep_threads:
            os.environ.pop("OMP_NUM_THREADS", None)  # Ray sets it; engines have their own option
        self._model: Model | None = None
        self._loaded = contextlib.ExitStack()
        self._opened = ("", EngineOptions())

    def open(self, settings: EngineSettings, files: Any) -> EngineAbout:
        """Find or copy the model's files, and open the model. Raise ModelError if it differs.

        ``files`` is the actor of a FileSource, or None if no file has to be copied.
        """
        options, spec = settings.options, settings.spec
        source = read_from(files) if files is not None else None
        if settings.model is not None:
            path = locate(settings.model, source)
            spec = f"{settings.engine}:{path}" if settings.engine else str(path)
        if settings.adapter is not None:
            options = dataclasses.replace(options, adapter=str(locate(settings.adapter, source)))
        if not options.threads and self._cpus:
            threads = min(self._cpus, usable_physical_cores())
            options = dataclasses.replace(options, threads=threads)
        if options.devices:  # as many as Ray has assigned, with their numbers
            assigned = os.environ.get("CUDA_VISIBLE_DEVICES") or options.devices
            options = dataclasses.replace(options, devices=assigned)
        model = models.open_model(spec, options)
        if _without_place(model.identity) != _without_place(settings.identity):
            raise ModelError(
                f"{spec}: is a different model on node {platform.node()} and on the driver. Copy "
                "it again, or give a path whose content is the same on all nodes."
            )
        self._model, self._opened = model, (spec, options)
        models.watch(model, _Progress(self))
        self._loaded.enter_context(model.keep_loaded())
        return EngineAbout(platform.node(), models.library_versions())

    def run(self, stage: GenerateStage, items: Iterator[AnyItem | None], answer: Answer) -> None:
        stage.run(self._require(), items, answer)

    def preload(self, decoding: Decoding) -> None:
        models.preload(self._require(), decoding)

    def gpu(self) -> str:
        return self._require().gpu()

    def describe(self) -> EngineFacts:
        return self._require().describe()

    def usage(self) -> Usage | None:
        return self._require().usage()

    def check(self, check: CheckModel) -> tuple[ParityGateOutcome, list[str]]:
        """Return the outcome of a check of the device, and its notes."""
        notes: list[str] = []
        spec, options = self._opened
        return check(spec, options, self._require(), notes.append), notes

    def close(self) -> None:
        """End the engine, even while it generates."""
        if self._model is not None:
            self._model.close()

    def _require(self) -> Model:
        assert self._model is not None
        return self._model


def check_libraries(node: str, theirs: dict[str, str], ours: dict[str, str]) -> None:
    """Raise ModelError if a node has another version of a library than the driver.

    Texts may differ then, and the driver stores them as those of its own versions. What follows a
    plus sign, such as cpu or cu130, names a build of the same version.
    """
    for name, version in theirs.items():
        here = ours.get(name, "")
        if version and here and version.partition("+")[0] != here.partition("+")[0]:
            raise ModelError(
                f"node {node}: has {name} {version}, the driver {here}. Install the same version."
            )


def _without_place(identity: ModelIdentity) -> Any:
    return dataclasses.replace(identity, name="", path="")
