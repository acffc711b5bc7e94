"""A Ray cluster of several nodes on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from assay.cluster.connection import import_ray

SOON_S = 60.0
ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "120"}


def require_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs the ray extra")


def retry(start: Callable[[], Any]) -> Any:
    """Start something of Ray, which gives up after 30 s on a machine that is busy."""
    for _ in range(2):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    return start()


class LocalCluster:
    """Start nodes, and kill them."""

    def __init__(self, nodes: int) -> None:
        self.ray = import_ray()
        from ray.cluster_utils import Cluster

        # The head has no CPUs, as on most clusters: it can be reached whichever node is killed.
        settings = {"num_cpus": 0, "include_dashboard": False}
        self._cluster = retry(lambda: Cluster(initialize_head=True, head_node_args=settings))
        self.nodes = [self.add() for _ in range(nodes)]

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self) -> Any:
        return retry(lambda: self._cluster.add_node(num_cpus=1, wait=True))

    def kill(self, node: Any) -> None:
        """End a node as a power cut does: its raylet and the processes that it started."""
        (raylet,) = node.all_processes["raylet"]
        for pid in [*descendants(raylet.process.pid), raylet.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def restore(self, count: int) -> None:
        """Start nodes until there are so many."""
        deadline = time.monotonic() + SOON_S
        while True:
            alive = [node for node in self.nodes if raylet_is_alive(node)]
            if len(alive) >= count:
                break
            self.nodes = [*alive, self.add()]
            assert time.monotonic() < deadline

    def judges(self) -> set[int]:
        """Return the processes of judge actors."""
        raylets = [node.all_processes["raylet"][0].process.pid for node in self.nodes]
        pids = (pid for raylet in raylets for pid in descendants(raylet))
        return {pid for pid in pids if read_title(pid).startswith("ray::JudgePool")}

    def wait_for_judges(self, expected: set[int]) -> None:
        """Wait until there are no others than these."""
        deadline = time.monotonic() + SOON_S
        while left := self.judges() - expected:
            assert time.monotonic() < deadline, left
            time.sleep(0.1)

    def close(self) -> None:
        self._cluster.shutdown()


def raylet_is_alive(node: Any) -> bool:
    (raylet,) = node.all_processes["raylet"]
    return raylet.process.poll() is None


def read_title(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def descendants(pid: int) -> list[int]:
    """Return all processes that a process started, directly or not."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


@contextlib.contextmanager
def local_cluster(nodes: int, cache: Path) -> Iterator[LocalCluster]:
    """Yield a cluster whose nodes have a cache of their own."""
    environment = {**ENVIRONMENT, "ASSAY_CACHE_DIR": str(cache)}
    with mock.patch.dict(os.environ, environment):
        cluster = LocalCluster(nodes)
        try:
            yield cluster
        finally:
            cluster.close()
