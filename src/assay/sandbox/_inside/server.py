"""A process that isolates itself, then serves: as fork server of programs, or as their oracle."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable
from typing import Any

from . import sample, wire
from .place import Place, by_landlock, in_container, in_namespaces
from .watch import HarnessGoneError

# What programs import most; the rest costs its import in each program.
WARM = (
    "bisect", "collections", "copy", "functools", "heapq", "itertools", "math", "operator", "re",
    "string", "typing",
)  # fmt: skip


def main() -> None:
    settings = wire.receive(0)
    jobs, reports, link = os.dup(0), os.dup(1), settings["link"]
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    os.close(null)
    try:
        # While files are in reach; what the other role needs is not loaded, since forks are dear.
        role = importlib.import_module(f"{__package__}.{settings['role']}")
        for name in (*WARM, *settings["imports"]):
            importlib.import_module(name)
        if len(os.listdir("/proc/self/task")) > 1:
            raise RuntimeError("an import started a thread, which no fork survives")
        place = _isolated(settings, [jobs, reports, link])
        judge: Callable[[dict[str, Any]], dict[str, Any]] = role.start(place, jobs, settings)
    except Exception as error:
        wire.send(reports, {"error": f"{type(error).__name__}: {error}"})
        return
    wire.send(reports, {"memory": "cgroup" if place.limit else "watch"})
    with contextlib.suppress(EOFError, HarnessGoneError):
        while True:
            wire.send(reports, judge(wire.receive(jobs)))
    place.kill_all()


def _isolated(settings: dict[str, Any], only_here: list[int]) -> Place:
    limits = settings["limits"]
    if settings["tier"] == "landlock":
        place = by_landlock(only_here)
    elif settings["tier"] == "container":
        place = in_container(only_here)
    else:
        place = in_namespaces(
            limits, settings["allowed"], as_root=settings["tier"] == "root",
            only_zygote=only_here, limit_memory=settings["role"] != "oracle",
        )  # fmt: skip
    sample.limit_worker(limits, place.neighbours)
    return place
