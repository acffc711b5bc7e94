"""Provide a sandbox whose workers are on the nodes of a cluster."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from assay import __version__
from assay.cluster.actors import HostPlace, RayHosts
from assay.cluster.connection import LostHostError, ask
from assay.cluster.dispatch import HostDispatch
from assay.cluster.host import PoolFacts
from assay.errors import SandboxError
from assay.sandbox import Stage
from assay.sandbox.stages import JudgeStage, OutputsStage, each, split_job
from assay.types import Capabilities, Cases, Job, Verdict

OPEN_S, RELEASE_S = 300.0, 60.0
AHEAD = 8  # programs per worker at first
C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")


class PoolRules:
    """The rules by which all nodes judge alike. The first one sets them."""

    def __init__(self) -> None:
        self.found: Capabilities | None = None
        self._first = ""

    def accept(self, place: HostPlace, facts: PoolFacts) -> int:
        """Return the number of workers of a node. Raise SandboxError if it judges differently."""
        check_version(place.node.name, facts.version)
        if self.found is None:
            self.found, self._first = facts.capabilities, place.node.name
        ours, theirs = _promise(self.found), _promise(facts.capabilities)
        if ours != theirs:
            raise SandboxError(
                f"node {place.node.name}: its sandbox is {', '.join(theirs)}, that of node "
                f"{self._first} is {', '.join(ours)}. Give a --sandbox-tier and a --python that "
                "all nodes have."
            )
        return facts.workers


def check_version(node: str, version: str) -> None:
    if version != __version__:
        raise SandboxError(
            f"node {node}: has assay {version}, but the driver has {__version__}. Install the same "
            "version."
        )


def _promise(found: Capabilities) -> tuple[str, ...]:
    return tuple(filter(None, (found.kind, found.tier, found.python, found.image)))


class ClusterSandbox:
    """The pools of all nodes, which share items. Each pool has the sandbox of its machine."""

    def __init__(self, ray: Any, hosts: RayHosts, rules: PoolRules) -> None:
        self._ray, self._hosts, self._rules = ray, hosts, rules
        self._lock = threading.Lock()
        hosts.wait(OPEN_S)

    def capabilities(self) -> Capabilities:
        assert self._rules.found is not None
        return self._rules.found

    def judge(self, jobs: Iterable[Job]) -> Iterator[Verdict]:
        return each(self._answers(JudgeStage(), map(split_job, jobs)))

    def outputs(self, jobs: Iterable[Job]) -> Iterator[tuple[Verdict, Cases | None]]:
        return each(self._answers(OutputsStage(), map(split_job, jobs)))

    def run_stage(
        self,
        stage: Stage[C, P, R],
        items: Iterable[tuple[C, P] | None],
        answer: Callable[[Sequence[R]], None],
        count: int | None = None,  # noqa: ARG002 - as in Sandbox.run_stage
    ) -> None:
        with contextlib.closing(self._answers(stage, items)) as batches:
            for batch in batches:
                answer(batch)

    def close(self) -> None:
        """Release what the nodes keep warm. The actors stay for the next stage."""
        calls = [host.actor.release.remote() for host in self._hosts.hosts()]
        for call in calls:
            with contextlib.suppress(LostHostError):
                ask(self._ray, call, RELEASE_S)

    def _answers(
        self, stage: Stage[C, P, R], items: Iterable[tuple[C, P] | None]
    ) -> Generator[list[R], None, None]:
        """Yield the answers of a stage. End all actors if the caller stops early."""
        if not self._lock.acquire(blocking=False):
            raise SandboxError("cluster: its sandbox already runs a stage.")
        finished = False
        try:
            yield from HostDispatch(stage, items, self._hosts, AHEAD).answers()
            finished = True
        finally:
            self._lock.release()
            if not finished:
                self._hosts.reset()
