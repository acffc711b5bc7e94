"""Run a model on several devices: one engine process per device, all fed from one queue."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
import os
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.models.model import (
    EngineFacts,
    Model,
    Usage,
    add_usage,
    check_infilling,
    check_prefilling,
    preload,
    start_early,
    watch,
)
from assay.progress import Silent
from assay.types import Completion, Request
from assay.work import run_in_background
from assay.work.machine import usable_physical_cores

if TYPE_CHECKING:
    from assay.models.model import Loading, Rendered
    from assay.models.options import EngineOptions
    from assay.progress import Reporter
    from assay.types import Decoding, ModelIdentity, Prompt


CPU = "cpu"
DEVICE = re.compile("cpu|[0-9]{1,3}")
MOST_DEVICES = 64

_Item = Completion | BaseException | None  # an answer, a failure, or the end of one device


def parse_devices(options: EngineOptions) -> tuple[str, ...]:
    """Return the devices that ``--devices`` names. Raise UsageError for another text."""
    if not options.devices:
        return ()
    names = tuple(name.strip() for name in options.devices.split(","))
    if not all(map(DEVICE.fullmatch, names)) or len(names) > MOST_DEVICES:
        raise UsageError(
            f"--devices {options.devices}: is not a list of GPUs. Give numbers such as 0,1, or cpu."
        )
    if (options.device == "cpu" and set(names) != {CPU}) or (
        options.device == "cuda" and CPU in names
    ):
        raise UsageError(
            f"--device {options.device}: contradicts --devices {options.devices}. Drop one."
        )
    return names


def device_environment(names: Sequence[str]) -> dict[str, str]:
    """Return the variables that make only these GPUs visible to a process."""
    gpus = [name for name in names if name != CPU]
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {}


def open_on_devices(
    open_one: Callable[[EngineOptions], Model], options: EngineOptions, names: Sequence[str]
) -> Model:
    """Open the model once per device. CPU processes share the cores."""
    cores = max(1, usable_physical_cores() // max(1, names.count(CPU)))
    members = []
    for name in names:
        on_cpu = name == CPU
        threads = options.threads or (cores if on_cpu else 0)
        own = dataclasses.replace(
            options, devices="", device="cpu" if on_cpu else "cuda", threads=threads
        )
        member = open_one(own)
        if hasattr(member, "set_environment"):
            member.set_environment(device_environment([name]))
        members.append(member)
    return members[0] if len(members) == 1 else DevicesModel(tuple(members), tuple(names))


@dataclass(frozen=True, slots=True)
class DevicesFacts(EngineFacts):
    """The facts of one device's engine, and the list of all devices."""

    first: EngineFacts
    devices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {**self.first.to_json(), "devices": list(self.devices)}


class _Part(Silent):
    """The reports of one device, as a part of the whole."""

    def __init__(self, reporter: Reporter, generated: list[int], number: int) -> None:
        self._reporter, self._generated, self._number = reporter, generated, number

    def loading(self) -> None:
        self._reporter.loading()

    def generating(self, tokens: int) -> None:
        self._generated[self._number] = tokens
        self._reporter.generating(sum(self._generated))


class _Shared:
    """Requests for several threads, which get those with one prompt together."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._groups = itertools.groupby(requests, key=lambda request: request.prompt)
        self._lock = threading.Lock()
        self._stopped = False

    def take(self) -> Iterator[Request]:
        """Yield requests until there are none, or until they are stopped."""
        while True:
            with self._lock:
                next_group = None if self._stopped else next(self._groups, None)
                group = [] if next_group is None else list(next_group[1])
            if not group:
                return
            yield from group

    def stop(self) -> None:
        self._stopped = True


class DevicesModel:
    """The same model in several processes. A device that is free takes the next requests."""

    def __init__(self, members: tuple[Model, ...], names: tuple[str, ...]) -> None:
        self.members, self._names = members, names
        self.identity: ModelIdentity = members[0].identity
        self.thinks = members[0].thinks
        self._reporter: Reporter | None = None

    @property
    def reporter(self) -> Reporter | None:
        return self._reporter

    @reporter.setter
    def reporter(self, reporter: Reporter | None) -> None:
        self._reporter = reporter
        if reporter is not None:
            generated = [0] * len(self.members)
            for number, member in enumerate(self.members):
                watch(member, _Part(reporter, generated, number))

    def gpu(self) -> str:
        return self.members[0].gpu()

    def render(self, prompt: Prompt) -> Rendered:
        return self.members[0].render(prompt)

    def check_infilling(self) -> str:
        return check_infilling(self.members[0])

    def check_prefilling(self) -> None:
        check_prefilling(self.members[0])

    @contextlib.contextmanager
    def start_early(self) -> Iterator[None]:
        with contextlib.ExitStack() as processes:
            for member in self.members:
                processes.enter_context(start_early(member))
            yield

    def preload(self, decoding: Decoding) -> None:
        for member in self.members:
            preload(member, decoding)

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        shared = _Shared(requests)
        answers: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        threads = [
            run_in_background(partial(_serve, member, shared, answers)) for member in self.members
        ]
        complete = False
        try:
            working = len(threads)
            while working:
                item = answers.get()
                if isinstance(item, BaseException):
                    raise item
                if item is None:
                    working -= 1
                else:
                    yield item
            complete = True
        finally:
            shared.stop()
            if not complete:
                self.close()
            for thread in threads:
                thread.join()

    def describe(self) -> EngineFacts:
        return DevicesFacts(self.members[0].describe(), self._names)

    @contextlib.contextmanager
    def keep_loaded(self) -> Iterator[Loading]:
        with contextlib.ExitStack() as loaded:
            loadings = [loaded.enter_context(member.keep_loaded()) for member in self.members]
            yield loadings[0]

    def usage(self) -> Usage | None:
        return add_usage(member.usage() for member in self.members)

    def close(self) -> None:
        for member in self.members:
            member.close()


def _serve(member: Model, shared: _Shared, answers: queue.SimpleQueue[_Item]) -> None:
    """Put the answers of one device into the queue, then its failure or its end."""
    try:
        for completion in member.generate(shared.take()):
            answers.put(completion)
        answers.put(None)
    except BaseException as error:
        answers.put(error)


def require_gpu(device: str) -> None:
    """Raise UsageError if a GPU is requested on a machine that has none."""
    if device == "cuda" and not driver_gpu():
        raise UsageError("--device cuda: this machine has no NVIDIA GPU. Use --device auto or cpu.")


def driver_gpu() -> str:
    """Return the first GPU's name and the driver's version; an empty text if there is none."""
    count, device, version = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0)
    name = ctypes.create_string_buffer(256)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGetCount(ctypes.byref(count))
        or not count.value
        or driver.cuDeviceGet(ctypes.byref(device), 0)
        or driver.cuDeviceGetName(name, len(name), device)
        or driver.cuDriverGetVersion(ctypes.byref(version))
    )
    return "" if failed else f"{name.value.decode(errors='replace')}, CUDA {version.value}"


def free_memory() -> int:
    """Return the free memory in bytes. The kernel's file cache counts as free where reported."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        if free := proc_bytes("/proc/meminfo", "MemAvailable"):
            return free
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def proc_bytes(path: str, name: str) -> int:
    """Return an entry of one of the kernel's lists of kilobytes, in bytes; 0 if it has none."""
    for line in Path(path).read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0
