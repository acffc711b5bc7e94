"""Connect to a Ray cluster, or start one on this machine. Ray is imported here and nowhere else."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.cluster.host_messages import make_portable
from assay.errors import AssayError, RunError, UsageError, install_hint
from assay.work.machine import usable_cores

LOCAL, AUTO = "local", "auto"
HOST_AND_PORT = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[\w.-]+):(?P<port>[0-9]{1,5})")
ADVICE = "Start a cluster with `ray start --head`, or give --ray without an address."
# Ray needs a node of its own on every machine that has a driver.
JOIN = "The command has to run on a node. `ray start --address={} --num-cpus=0` makes this one."
# What both sides of gRPC say first: the client's preface, and a frame of settings.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
SETTINGS = 4
TOKEN = Path("~/.ray/auth_token")
REACH_S = 5.0
LONGEST = 200  # characters of an error of Ray
OBJECT_STORE = 512 << 20  # bytes, for large contexts: of a cluster on this machine alone
# Ray reads these when it is imported.
QUIET = {
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # of calls whose answer nobody needs
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


class LostHostError(RunError):
    """A host cannot be reached: its process or its node has ended."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is alive."""

    id: str
    name: str
    cpus: int
    gpus: int


def import_ray() -> Any:
    """Return the module. Raise UsageError if it is not installed."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--ray: ray is not installed. Run {install_hint('ray')}.") from error
    return ray


def check_address(address: str) -> None:
    """Raise UsageError unless the text is an address that can be reached."""
    if address in (LOCAL, AUTO):
        return
    match = HOST_AND_PORT.fullmatch(address)
    if match is None:
        raise UsageError(
            f"--ray {address}: is not an address. Give HOST:PORT, {AUTO}, or nothing for a cluster "
            "on this machine. Without an address, write --ray after the other arguments."
        )
    try:
        _greet(match["host"].strip("[]"), int(match["port"]))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"--ray {address}: cannot be reached ({reason}). Check the address of the head node, "
            "as `ray status` shows it."
        ) from error


def _greet(host: str, port: int) -> None:
    """Raise OSError unless a server of the kind that Ray's head has answers.

    Ray itself tries for minutes to talk to any other.
    """
    with socket.create_connection((host, port), REACH_S) as head:
        if os.environ.get("RAY_USE_TLS", "0") != "0":
            return
        head.sendall(PREFACE)
        if head.recv(4)[3:] != bytes([SETTINGS]):
            raise OSError(None, "it is not the head of a Ray cluster")


@contextlib.contextmanager
def connect(address: str) -> Iterator[Any]:
    """Yield the module while it is connected. A cluster that was started here ends with it."""
    check_address(address)
    ray = import_ray()
    if ray.is_initialized():  # of the program that uses assay; it stays connected
        yield ray
        return
    with _signals_kept():
        try:
            _initialize(ray, address)
        except Exception as error:  # of any kind: Ray raises plain ones too
            ray.shutdown()
            reason = " ".join(str(error).split())[:300]
            what = "start" if address == LOCAL else "connect"
            advice = ADVICE if address in (LOCAL, AUTO) else JOIN.format(address)
            raise UsageError(f"--ray {address}: cannot {what} ({reason}). {advice}") from error
    try:
        yield ray
    finally:
        with _signals_kept():
            ray.shutdown()


def _initialize(ray: Any, address: str) -> None:
    quiet = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    if address != LOCAL:
        ray.init(address=address, **quiet)
        return
    is_new = not TOKEN.expanduser().exists()
    ray.init(
        address="local", num_cpus=usable_cores(), include_dashboard=False,
        object_store_memory=OBJECT_STORE,
        **quiet,
    )  # fmt: skip
    if is_new:  # Ray writes it readable for everyone, and listens on all addresses
        with contextlib.suppress(OSError):
            TOKEN.expanduser().chmod(0o600)


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep the handlers of signals, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def list_nodes(ray: Any) -> list[Node]:
    """Return the nodes that are alive and have CPUs. A head node often has none.

    Raise RunError if the head is gone.
    """
    try:
        nodes = ray.nodes()
    except Exception as error:  # of any kind: Ray raises plain ones too
        raise RunError(
            f"cluster: its head cannot be reached ({summarize(error)}). Completed work is saved; "
            "run the same command to resume."
        ) from error
    alive = []
    for node in nodes:
        cpus, gpus = (int(node["Resources"].get(kind, 0)) for kind in ("CPU", "GPU"))
        if node["Alive"] and cpus:
            alive.append(Node(node["NodeID"], node["NodeName"], cpus, gpus))
    return alive


def ask(ray: Any, reference: Any, timeout_s: float) -> Any:
    """Return the answer to a call. Raise assay's own error, or LostHostError."""
    try:
        return ray.get(reference, timeout=timeout_s)
    except ray.exceptions.RayError as error:
        raise unwrap(error) from None


def unwrap(error: BaseException) -> AssayError:
    """Return the error that was raised in a host, or LostHostError."""
    cause = getattr(error, "cause", None)
    for one in (cause, error):
        if isinstance(one, AssayError):
            return one if type(one).__module__.startswith("assay") else make_portable(one)
    return LostHostError(f"cluster: {summarize(cause or error)}")


def summarize(error: BaseException) -> str:
    """Return an error of Ray, which may have many lines, as one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if "Traceback" in str(error) else " ".join(lines)
    return f"{type(error).__name__}: {text}"[:LONGEST]
