"""Judge on one node: the sandbox that the node would have by itself, behind a host."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from assay import __version__
from assay.cluster.host import Answer, AnyItem, Host, TaggedStage
from assay.errors import AssayError, SandboxError
from assay.sandbox import PAUSE, Sandbox, open_sandbox
from assay.types import Capabilities
from assay.work.machine import usable_cores


class PoolSettings(NamedTuple):
    """Describe the sandbox that every node opens."""

    kind: str
    workers: int  # per node; 0: one per core
    tier: str
    python: str = ""  # version or path of the Python that judges, on every node


class PoolFacts(NamedTuple):
    """Say what a node's sandbox promises, and how many programs it judges at a time."""

    capabilities: Capabilities
    workers: int
    version: str = __version__


class JudgePool(Host):
    """Hold the sandbox of a node."""

    def __init__(self, cpus: int = 0) -> None:
        super().__init__()
        self._cpus = cpus  # that Ray says the node has; 0: not said
        self._sandbox: Sandbox | None = None

    def open(self, settings: PoolSettings) -> PoolFacts:
        """Open the sandbox. Raise SandboxError that says what the node lacks."""
        cores = min(self._cpus, usable_cores()) if self._cpus else usable_cores()
        workers = settings.workers or cores
        try:
            self._sandbox = open_sandbox(settings.kind, workers, settings.tier, settings.python)
        except AssayError as error:
            raise SandboxError(f"node {platform.node()}: {error}") from error
        return PoolFacts(self._sandbox.capabilities(), workers)

    def run(self, stage: Any, items: Iterator[AnyItem | None], answer: Answer) -> None:
        assert self._sandbox is not None

        def tag() -> Iterator[tuple[Any, Any] | None]:
            for item in items:
                yield PAUSE if item is PAUSE else (item.context, (item.tag, item.payload))

        def pass_on(results: Sequence[tuple[int, Any]]) -> None:
            for one, result in results:
                answer(one, result)

        self._sandbox.run_stage(TaggedStage(stage), tag(), pass_on)

    def release(self) -> None:
        """Release what is kept warm. The next stage starts it again."""
        if self._sandbox is not None:
            self._sandbox.close()
