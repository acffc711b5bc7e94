"""The limits of a peer's whole command."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from pathlib import Path

import pytest

from assay.errors import SandboxError
from assay.peers import isolation
from assay.peers._confined.messages import Settings
from assay.peers.isolation import PeerCommand, TreeLimits
from tests.e2e.test_resume import descendants
from tests.peers.peer_commands import SMALL, as_ordinary, python
from tests.security.control_groups import has_control_groups
from tests.security.peer_attacks import REPORT

ONE_BLOCK = "open('report', 'w').write('begun')\nbytearray(1 << 30)"
# The parent waits until each child has its memory or has died; what is left then ends with it.
MANY_PROCESSES = """
import os, time
ready, write = os.pipe()
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(200 << 20)
        os.write(write, b"x")
        os.close(write)
        time.sleep(60)
os.close(write)
while os.read(ready, 1): pass
time.sleep(1)
"""
HIDING_PROCESSES = MANY_PROCESSES.replace(
    "        block", "        import ctypes; ctypes.CDLL(None).prctl(4, 0)\n        block"
)
SHARED_MEMORY = MANY_PROCESSES.replace(
    "bytearray(200 << 20)",
    "__import__('mmap').mmap(-1, 200 << 20); block.write(bytes(200 << 20))",
)
BUSY_PROCESSES = (
    "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        while True: pass\n"
    "time.sleep(60)"
)
FORK_BOMB = (
    "import os, time\ncount = 0\ntry:\n    for count in range(400):\n"
    "        if os.fork() == 0:\n            time.sleep(30)\n            os._exit(0)\n"
    "except OSError:\n    pass\nopen('report', 'w').write(str(count))"
)


@pytest.fixture(params=[True, False], ids=["group", "watched"])
def _group(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a control group where the machine has one, and as if it had none."""
    settings = isolation._settings

    def without_group(command: PeerCommand) -> Settings:
        return settings(command)._replace(use_group=request.param)

    monkeypatch.setattr(isolation, "_settings", without_group)


def test_one_process_cannot_take_all_memory() -> None:
    """The process asks for 1 GB with a limit of 512 MB."""
    with pytest.raises(SandboxError, match="failed. MemoryError"):
        python(ONE_BLOCK)


@pytest.mark.parametrize(
    "attack",
    [
        MANY_PROCESSES,
        pytest.param(HIDING_PROCESSES, marks=pytest.mark.slow),
        pytest.param(SHARED_MEMORY, marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("_group")
def test_many_processes_cannot_take_all_memory(attack: str) -> None:
    """Eight processes ask for 1.6 GB in all, each for less than the limit.

    With a group the kernel kills one after the other; without, the watch ends the command.
    """
    with PeakMemory() as peak, contextlib.suppress(SandboxError):
        python(attack)
    assert peak.most_mb < 900


def test_too_much_memory_without_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = isolation._settings
    monkeypatch.setattr(
        isolation, "_settings", lambda command: settings(command)._replace(use_group=False)
    )
    with pytest.raises(SandboxError, match="used more than 512 MB of memory and was stopped"):
        python(MANY_PROCESSES)


def test_a_fork_bomb_is_bounded() -> None:
    """Without a limit, the bomb starts 400 processes."""
    assert int(python(FORK_BOMB)[REPORT]) < SMALL.processes


def test_threads_count_as_processes() -> None:
    outputs = python(
        "import threading\ncount = 0\nhold = threading.Event()\n"
        "try:\n    for count in range(400):\n"
        "        threading.Thread(target=hold.wait, daemon=True).start()\n"
        "except RuntimeError:\n    pass\nopen('report', 'w').write(str(count))"
    )
    assert int(outputs["report"]) < SMALL.processes


@pytest.mark.usefixtures("_group")
def test_cpu_time_is_limited_in_all_processes_together() -> None:
    """Each process stays below a limit of its own, so only their sum exceeds it."""
    limits = TreeLimits(memory_mb=512, processes=64, cpu_s=1, wall_s=60)
    with pytest.raises(SandboxError, match="used more than 1 seconds of CPU time"):
        python(BUSY_PROCESSES, limits)


def test_wall_time_is_limited() -> None:
    """Without a limit, the harness waits as long as the command sleeps."""
    with pytest.raises(SandboxError, match="took more than 1 seconds and was stopped"):
        python("import time; time.sleep(30)", TreeLimits(wall_s=1))


def test_files_are_limited() -> None:
    """Without a limit, the command fills the host's disk with large files or many files."""
    code = "with open('big', 'wb') as file:\n    for _ in range(200): file.write(bytes(1 << 20))"
    with pytest.raises(SandboxError, match="OSError"):
        python(code)
    with pytest.raises(SandboxError, match="OSError"):
        python("for i in range(10**6): open(f'file-{i}', 'w').close()")


def test_output_is_bounded() -> None:
    """Without a bound, all 200 MB of output are held in the harness's memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    python(
        "import os\nfor _ in range(100):\n"
        "    os.write(1, bytes(1 << 20)); os.write(2, bytes(1 << 20))"
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KB


def test_kernel_memory_counts() -> None:
    """300 MB in the buffers of sockets, which no process shows; a control group counts them.

    Without one the floor of the machine's free memory is what ends this.
    """
    if not has_control_groups():
        pytest.skip("no control group can be made here")
    code = (
        "import socket\npairs = [socket.socketpair() for _ in range(1500)]\n"
        "for one, _ in pairs:\n    one.setblocking(False)\n    try:\n"
        "        while True: one.send(bytes(4096))\n    except BlockingIOError: pass\n"
    )
    with pytest.raises(SandboxError, match="status"):
        python(code, TreeLimits(memory_mb=160))


@pytest.mark.slow
def test_limits_hold_for_ordinary_users() -> None:
    """By the watch alone, since a user has no control group here."""
    harness = (
        "import sys\nfrom assay.errors import SandboxError\n"
        "from assay.peers.isolation import PeerCommand, TreeLimits, run_isolated\n"
        "for code in sys.argv[1:]:\n    command = (sys.executable, '-c', code)\n    try:\n"
        "        limits = TreeLimits(memory_mb=512, processes=64, cpu_s=1)\n"
        "        print(run_isolated(PeerCommand(command, limits=limits, outputs=('report',))))\n"
        "    except SandboxError as error:\n        print(error)\n"
    )
    attacks = [ONE_BLOCK, MANY_PROCESSES, HIDING_PROCESSES, BUSY_PROCESSES, FORK_BOMB]
    done = as_ordinary(["-c", harness, *attacks])
    assert done.returncode == 0, done.stderr
    block, many, hiding, busy, bomb = done.stdout.splitlines()
    assert block.endswith("MemoryError")
    assert "used more than 512 MB of memory" in many
    assert "used more than 512 MB of memory" in hiding
    assert "used more than 1 seconds of CPU time" in busy
    assert int(bomb.split("'")[-2]) < 64


class PeakMemory(threading.Thread):
    """The most memory that processes begun below this one took meanwhile.

    Servers that other tests keep warm are not counted.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most_mb = 0
        self._others = descendants(os.getpid())
        self._ended = threading.Event()

    def __enter__(self) -> PeakMemory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        while not self._ended.wait(0.02):
            begun = descendants(os.getpid()) - self._others
            self.most_mb = max(self.most_mb, sum(map(memory_mb, begun)))


def memory_mb(pid: int) -> int:
    """Return what a process takes, its share of shared memory included."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
        return int(words[words.index("Pss:") + 1]) >> 10
    return 0
