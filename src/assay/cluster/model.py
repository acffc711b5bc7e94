"""Provide a model whose engines are on the nodes of a cluster."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from assay.cluster.actors import RayHosts
from assay.cluster.connection import LostHostError, ask
from assay.cluster.dispatch import HostDispatch, HostHandle
from assay.cluster.engine import GenerateStage, split_request
from assay.cluster.host_messages import Taken
from assay.errors import ModelError
from assay.models import (
    EngineFacts,
    LoadedOnDemand,
    Model,
    Rendered,
    Usage,
    add_usage,
    check_infilling,
    check_prefilling,
)
from assay.progress import Reporter
from assay.runs import EncodedCompletion
from assay.types import Completion, Decoding, Prompt, Request

AHEAD = 32  # requests per engine at first
ASK_S = 60.0
OPEN_S, CHECK_S = 3600.0, 7200.0  # to copy files; to compare devices
ASKED = 8  # engines, for the facts of all
Call = Callable[[Any], Any]  # calls a method of an actor, and returns the reference


@dataclass(frozen=True, slots=True)
class ClusterFacts(EngineFacts):
    """The facts of one engine, and where all of them are."""

    first: EngineFacts
    ray: str
    engines: int
    nodes: int

    def to_json(self) -> dict[str, Any]:
        own = {"ray": self.ray, "engines": self.engines, "nodes": self.nodes}
        return {**self.first.to_json(), **own}


class ClusterModel(LoadedOnDemand):
    """The same model in one actor per GPU, or per some cores. A free engine takes requests."""

    def __init__(
        self,
        ray: Any,
        here: Model,
        start: Callable[[], RayHosts],
        probe: Callable[[Call], Any],
        gpus: int = 0,
    ) -> None:
        self._ray, self._here, self._start, self._probe = ray, here, start, probe
        self.identity, self.thinks = here.identity, here.thinks
        self.reporter: Reporter | None = None
        self._hosts: RayHosts | None = None
        self._gpu = None if gpus else ""  # None: not asked yet
        self._decoding: Decoding | None = None  # that engines are loaded for
        self._preloaded: dict[int, HostHandle] = {}  # by identity
        self._facts: EngineFacts = here.describe()
        self._size = (0, 0)  # engines, nodes
        self._tokens: dict[str, int] = {}

    def gpu(self) -> str:
        if self._gpu is None:
            self._gpu = str(self.ask_engine(lambda actor: actor.gpu.remote()))
        return self._gpu

    def ask_engine(self, call: Call) -> Any:
        """Return the answer of an engine. One is started for this alone if none is there.

        Engines that are there have all GPUs, so another one would wait for ever.
        """
        if self._hosts is None:
            return self._probe(call)
        return ask(self._ray, call(self._hosts.wait(OPEN_S)[0].actor), CHECK_S)

    def render(self, prompt: Prompt) -> Rendered:
        return self._here.render(prompt)

    def check_infilling(self) -> str:
        return check_infilling(self._here)

    def check_prefilling(self) -> None:
        check_prefilling(self._here)

    def preload(self, decoding: Decoding) -> None:
        self._decoding = decoding
        self._require().start_missing(self._preload)

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for batch in self.generate_encoded(requests):
            for one in batch:
                yield one.completion

    def generate_encoded(self, requests: Iterable[Request]) -> Iterator[list[EncodedCompletion]]:
        """Yield completions in the batches in which they arrive, with their lines."""
        items = map(split_request, requests)
        first = next(items, None)
        if first is None:
            return
        with self.serving():
            if self.reporter is not None:
                self.reporter.loading()
            self._tokens = {}
            dispatch: HostDispatch[Any, Any, EncodedCompletion] = HostDispatch(
                GenerateStage(), itertools.chain([first], items), self._require(), AHEAD,
                (ModelError,), self._watch,
            )  # fmt: skip
            with contextlib.closing(dispatch.answers()) as batches:
                yield from batches
            self._describe()

    def describe(self) -> EngineFacts:
        self._describe()
        version = str(self._ray.__version__)
        return ClusterFacts(self._facts, version, *self._size)

    def usage(self) -> Usage | None:
        found = []
        for host in self._hosts.hosts() if self._hosts else []:
            with contextlib.suppress(LostHostError):
                found.append(ask(self._ray, host.actor.usage.remote(), ASK_S))
        return add_usage(found)

    def end(self) -> None:
        self.close()

    def close(self) -> None:
        hosts, self._hosts, self._preloaded = self._hosts, None, {}
        if hosts is not None:
            hosts.close()

    def _require(self) -> RayHosts:
        if self._hosts is None:
            self._hosts = self._start()
        return self._hosts

    def _preload(self, host: HostHandle) -> None:
        """Load an engine. Called from any thread, perhaps more than once for a host."""
        if self._decoding is not None and id(host) not in self._preloaded:
            self._preloaded[id(host)] = host
            host.actor.preload.remote(self._decoding)  # type: ignore[attr-defined]

    def _watch(self, host: HostHandle, taken: Taken) -> None:
        if self.reporter is None:
            return
        self._tokens[f"{host.name} {id(host)}"] = taken.tokens
        if total := sum(self._tokens.values()):
            self.reporter.generating(total)

    def _describe(self) -> None:
        """Ask engines for their facts. They stay known after the engines have ended."""
        if self._hosts is None:
            return
        self._size = self._hosts.count()
        for host in self._hosts.hosts()[:ASKED]:
            with contextlib.suppress(LostHostError):
                found: EngineFacts = ask(self._ray, host.actor.describe.remote(), ASK_S)
                # An engine that is still loading knows less about itself than another.
                if len(found.to_json()) >= len(self._facts.to_json()):
                    self._facts = found
