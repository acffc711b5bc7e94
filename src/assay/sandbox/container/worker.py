"""Run a worker in a container. Its two servers share the container's input and output."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import secrets
import select
import subprocess
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.errors import SandboxError
from assay.sandbox.container.runtime import OWNER_LABEL, WORKER_LABEL, ContainerRuntime, owner
from assay.sandbox.host.local import ENVIRONMENT
from assay.sandbox.host.worker import (
    Dozing,
    LateError,
    ProcessWatch,
    WorkerLostError,
    WorkerServer,
    WorkerSettings,
    end_process,
)
from assay.sandbox.inside.isolation.machine import LOOK_EVERY_S
from assay.sandbox.inside.judging import wire
from assay.sandbox.inside.serving.container import LINK, PIECE
from assay.sandbox.inside.serving.messages import TESTS_CPU_S, TESTS_ROOM, RoleName, WorkerLimits

INTERPRETER = ("python3", "-P", "-S", "-s", "-B")
# assay's code comes over the stream, so an image needs only Python.
CODE = "/dev/shm/assay.zip"
SCRIPT = (
    "import os, sys\n"
    "def read(size):\n"
    "    data = b''\n"
    "    while len(data) < size: data += os.read(0, size - len(data)) or sys.exit(1)\n"
    "    return data\n"
    f"open({CODE!r}, 'wb').write(read(int(read(10))))\nsys.path.insert(0, {CODE!r})\n"
    "from inside.serving.container import main\nmain()"
)
OWN_MB = 256  # of the container's memory for fork server and oracle, above the program's
OWN_PROCESSES = 16
SIGN_S = 20.0  # that the next sign of tests at work may take on a busy machine
# Each container has its own user, because processes are counted per user. Engines that do not run
# as root, or that map users, know only the first 65,536.
FIRST_UID, UIDS = 20_000, 40_000
_uids = itertools.count(secrets.randbelow(UIDS))


def run_arguments(
    image: str, name: str, limits: WorkerLimits, uid: int, *, podman: bool
) -> list[str]:
    """Return the arguments of the runtime's ``run`` command."""
    processes = limits.processes + OWN_PROCESSES
    room = f"rw,nosuid,nodev,mode=1777,size={limits.files_mb}m"
    if not podman:  # podman refuses this option
        room += ",nr_inodes=4096"
    return [
        "run", "--rm", "--interactive", "--name", name,
        "--label", f"{WORKER_LABEL}=1", "--label", f"{OWNER_LABEL}={owner()}",
        "--network=none", "--ipc=private", "--read-only", "--cap-drop=ALL",
        "--security-opt=no-new-privileges", f"--user={uid}:{uid}",
        f"--memory={limits.memory_mb + OWN_MB}m",
        f"--memory-swap={limits.memory_mb + OWN_MB}m",
        f"--pids-limit={processes}", f"--ulimit=nproc={processes}", "--ulimit=nofile=1024",
        f"--tmpfs=/tmp:{room}",
        "--shm-size=1m", "--log-driver=none", "--pull=never", "--entrypoint=python3",
        image, *INTERPRETER[1:], "-c", SCRIPT,
    ]  # fmt: skip


class ContainerServers:
    """A container for a worker. It ends when its input is closed."""

    def __init__(self, runtime: ContainerRuntime, image: str, settings: WorkerSettings) -> None:
        self._runtime = runtime
        self._settings = settings
        self._stream = _Stream(runtime, image, settings)
        self.python = self._stream.python
        try:
            self.programs: WorkerServer = self._server(b"z", "keeper")
        except SandboxError:
            self.close()
            raise

    def start_oracle(self) -> WorkerServer:
        return self._server(b"o", "oracle")

    def close(self) -> None:
        self._stream.kill()

    def _server(self, name: bytes, role: RoleName) -> WorkerServer:
        server = _Inside(self._stream, name)
        server.begin(role, LINK, self._settings)
        return server


class _Stream:
    """The container's input and output, shared by its servers."""

    def __init__(self, runtime: ContainerRuntime, image: str, settings: WorkerSettings) -> None:
        self._runtime = runtime
        self._name = f"assay-{os.getpid()}-{os.urandom(4).hex()}"
        self._lock = threading.Lock()
        self._said = bytearray()
        self._unread = bytearray()
        self._heard: dict[bytes, bytearray] = {b"z": bytearray(), b"o": bytearray()}
        self._pid = 0
        arguments = run_arguments(
            image, self._name, settings.inside.limits, unused_uid(), podman=runtime.is_podman()
        )
        with tempfile.TemporaryFile() as log:
            self._process = subprocess.Popen(
                [runtime.tool, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is the harness's to handle
            )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._input, self._output = self._process.stdin, self._process.stdout
            os.set_blocking(self._input.fileno(), False)
            code = _code()
            begin = wire.dumps([settings.interpreter, ENVIRONMENT, TESTS_ROOM * TESTS_CPU_S])
            deadline = time.monotonic() + settings.start_s
            try:
                self._write(f"{len(code):>10}".encode() + code + wire.measured(begin), deadline)
                length = int.from_bytes(self._read(4, deadline), "big")
                self.python = str(wire.loads(self._read(length, deadline)))
            except (OSError, EOFError, ValueError, WorkerLostError) as error:
                self.kill()
                log.seek(0)
                raise runtime.failure(log.read().decode(errors="replace") or str(error)) from error

    @property
    def pid(self) -> int:
        """Return the pid of the container's first process on this machine, or 0 if unknown."""
        if not self._pid:
            with contextlib.suppress(SandboxError):
                self._pid = int(self._runtime.inspect("container", self._name)["State"]["Pid"])
        return self._pid

    def send(self, name: bytes, data: bytes) -> None:
        """Buffer a message until an answer is awaited, so that the runtime wakes up only once."""
        for start in range(0, len(data), PIECE):
            self._said += wire.frame(name, data[start : start + PIECE])

    def message(self, name: bytes, deadline: float, *looks: ProcessWatch | None) -> list[Any] | str:
        heard = self._heard[name]
        try:
            said, self._said = bytes(self._said), bytearray()
            self._write(said, deadline)
            while len(heard) < 4 or len(heard) < 4 + int.from_bytes(heard[:4], "big"):
                whose, size = wire.FRAME.unpack(self._read(wire.FRAME.size, deadline, *looks))
                self._heard[whose] += self._read(size, deadline)
                if not size:  # the tests work, so they reach their own limit
                    deadline = max(deadline, time.monotonic() + SIGN_S)
            length = 4 + int.from_bytes(heard[:4], "big")
            answer: list[Any] | str = wire.loads(bytes(heard[4:length]))
        except (OSError, EOFError, ValueError, KeyError) as error:
            raise WorkerLostError(str(error) or "the container ended") from error
        del heard[:length]
        return answer

    def kill(self) -> None:
        with self._lock:
            end_process(self._process, lambda: self._runtime.remove(self._name))

    def _write(self, data: bytes, deadline: float) -> None:
        """Write to the container. A paused one takes no more than fits into the pipe."""
        left = memoryview(data)
        while left:
            if not _ready(self._input.fileno(), select.POLLOUT, _until(deadline)):
                raise LateError("it does not listen")
            with contextlib.suppress(BlockingIOError):
                left = left[os.write(self._input.fileno(), left[:PIECE]) :]

    def _read(self, size: int, deadline: float, *looks: ProcessWatch | None) -> bytes:
        while len(self._unread) < size:
            patience = min(_until(deadline), LOOK_EVERY_S)
            if _ready(self._output.fileno(), select.POLLIN, patience):
                piece = os.read(self._output.fileno(), PIECE)
                if not piece:
                    raise EOFError
                self._unread += piece
            else:
                for one in looks:
                    if one:
                        one.look()
        data = bytes(self._unread[:size])
        del self._unread[:size]
        return data


class _Inside(WorkerServer):
    """One of the two servers in a container."""

    def __init__(self, stream: _Stream, name: bytes) -> None:
        self._stream, self._name = stream, name

    def send_encoded(self, message: bytes) -> None:
        self._stream.send(self._name, wire.measured(message))

    def receive_any(self, deadline: float, *looks: ProcessWatch | None) -> list[Any] | str:
        return self._stream.message(self._name, deadline, *looks)

    def dozing(self, on_idle: Callable[[], None]) -> Dozing | None:
        return Dozing(self._stream.pid, on_idle) if self._stream.pid else None

    def kill(self) -> None:
        self._stream.kill()


def _ready(descriptor: int, event: int, seconds: float) -> bool:
    """Wait for a descriptor without select(), which refuses numbers above 1,023."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(seconds * 1000))


def unused_uid() -> int:
    """Return a user id that no container of this harness and no visible process has."""
    used = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            used.add(process.stat().st_uid)
    candidates = (FIRST_UID + next(_uids) % UIDS for _ in range(UIDS))
    return next(uid for uid in candidates if uid not in used)


def _until(deadline: float) -> float:
    if (left := deadline - time.monotonic()) <= 0:
        raise LateError("no answer in time")
    return left


def _code() -> bytes:
    """Return all code that runs inside, as a zip file that Python imports from."""
    packed = io.BytesIO()
    folder = Path(__file__).parents[1]
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((folder / "inside").rglob("*.py")):
            archive.write(path, path.relative_to(folder))
    return packed.getvalue()
