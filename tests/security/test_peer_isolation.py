"""The sandbox that a whole harness runs in: it executes programs without isolating them.

Most of these attacks succeeded when the command shared the host's files, environment and limits;
each test says which.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import SandboxError
from assay.peers import isolation
from assay.peers._installed import find_installation
from assay.peers.isolation import PeerCommand, TreeLimits, run_isolated
from tests.e2e.test_resume import descendants, survivors
from tests.security.peer_attacks import REPORT, SECRET, attacks

ORDINARY = 12_345
SMALL = TreeLimits(memory_mb=512, processes=64, cpu_s=10, wall_s=20, files_mb=64, output_mb=1)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user of the machine gets to, not in /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(params=[True, False], ids=["group", "watched"])
def _group(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a control group where the machine has one, and as if it had none."""
    settings = isolation._settings

    def without_group(command: PeerCommand) -> dict[str, Any]:
        return {**settings(command), "use_group": request.param}

    monkeypatch.setattr(isolation, "_settings", without_group)


def python(code: str, limits: TreeLimits = SMALL, **others: Any) -> dict[str, bytes]:
    """Run code as the command; it leaves its report in the file ``report``."""
    command = (sys.executable, "-c", code)
    return run_isolated(PeerCommand(command, outputs=(REPORT,), limits=limits, **others))


def test_a_hostile_program_gets_nothing(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These succeeded on the old code, as root:

    become_root, dangerous_calls, dump_core, environment_of_others, file_in_home,
    file_through_descriptor_of_others, folders_of_the_host, host_through_parent_folders,
    limits_of_others, mounts_of_the_host, names_in_home, no_filter, own_environment, password_file,
    raw_sockets, socket_in_a_folder (if bound after the start), trace_others, user_list, vsock.
    """
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with attacks(public) as script:
        outputs = python(script, TreeLimits())
    assert json.loads(outputs[REPORT]) == []


def test_an_ordinary_user_isolates_as_well(public: Path) -> None:
    """The same attacks; what is hidden from root must be hidden from a user."""
    if os.geteuid():
        pytest.skip("the other tests show it")
    harness = (
        "import sys\nfrom assay.peers.isolation import PeerCommand, run_isolated\n"
        "command = PeerCommand((sys.executable, '-c', sys.argv[1]), outputs=('report',))\n"
        "print(run_isolated(command)['report'].decode())\n"
    )
    with attacks(public) as script:
        done = as_ordinary(public, ["-c", harness, script], OPENAI_API_KEY=SECRET)
    assert done.stdout == "[]\n", done.stderr


def as_ordinary(
    folder: Path, arguments: list[str], **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run our code as another user, with the system's Python: ours may be out of its reach."""
    shutil.copytree(Path(assay.__file__).parent, folder / "source" / "assay", dirs_exist_ok=True)
    enough = f"import sys; sys.exit(sys.version_info < {(3, 11)})"
    if subprocess.run(["/usr/bin/python3", "-c", enough], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("the system's Python is older than 3.11")
    return subprocess.run(
        ["/usr/bin/python3", *arguments], cwd=folder, timeout=120,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{folder}/source", **variables},
        user=ORDINARY, group=ORDINARY, extra_groups=[], capture_output=True, text=True,
    )  # fmt: skip


# -- limits

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


def test_one_process_cannot_take_all_memory() -> None:
    """1 GB with a limit of 512 MB; it got it on the old code, which had no limit."""
    with pytest.raises(SandboxError, match="failed. MemoryError"):
        python(ONE_BLOCK)


@pytest.mark.parametrize("attack", [MANY_PROCESSES, HIDING_PROCESSES, SHARED_MEMORY])
@pytest.mark.usefixtures("_group")
def test_many_processes_cannot_take_all_memory(attack: str) -> None:
    """1.6 GB in eight processes, all of which the old code let have it.

    With a group the kernel kills one after the other; without, the watch ends the command.
    """
    with PeakMemory() as peak, contextlib.suppress(SandboxError):
        python(attack)
    assert peak.most_mb < 900


def test_too_much_memory_without_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = isolation._settings
    monkeypatch.setattr(
        isolation, "_settings", lambda command: {**settings(command), "use_group": False}
    )
    with pytest.raises(SandboxError, match="used more than 512 MB of memory and was stopped"):
        python(MANY_PROCESSES)


def test_a_fork_bomb_is_bounded() -> None:
    """400 processes; the old code counted none."""
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
    """Each stays below its own limit; the old code had none."""
    limits = TreeLimits(memory_mb=512, processes=64, cpu_s=1, wall_s=60)
    with pytest.raises(SandboxError, match="used more than 1 seconds of CPU time"):
        python(BUSY_PROCESSES, limits)


def test_wall_time_is_limited() -> None:
    """It waited for ever on the old code."""
    with pytest.raises(SandboxError, match="took more than 1 seconds and was stopped"):
        python("import time; time.sleep(30)", TreeLimits(wall_s=1))


def test_files_are_limited() -> None:
    """200 MB on the host's disk on the old code."""
    code = "with open('big', 'wb') as file:\n    for _ in range(200): file.write(bytes(1 << 20))"
    with pytest.raises(SandboxError, match="OSError"):
        python(code)
    with pytest.raises(SandboxError, match="OSError"):
        python("for i in range(10**6): open(f'file-{i}', 'w').close()")


def test_output_is_bounded() -> None:
    """100 MB were held in the harness's memory on the old code."""
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


def test_limits_hold_for_ordinary_users(public: Path) -> None:
    """By the watch alone, since a user has no control group here."""
    if os.geteuid():
        pytest.skip("the other tests show it")
    harness = (
        "import sys\nfrom assay.errors import SandboxError\n"
        "from assay.peers.isolation import PeerCommand, TreeLimits, run_isolated\n"
        "for code in sys.argv[1:]:\n    command = (sys.executable, '-c', code)\n    try:\n"
        "        limits = TreeLimits(memory_mb=512, processes=64, cpu_s=1)\n"
        "        print(run_isolated(PeerCommand(command, limits=limits, outputs=('report',))))\n"
        "    except SandboxError as error:\n        print(error)\n"
    )
    attacks = [ONE_BLOCK, MANY_PROCESSES, HIDING_PROCESSES, BUSY_PROCESSES, FORK_BOMB]
    done = as_ordinary(public, ["-c", harness, *attacks])
    assert done.returncode == 0, done.stderr
    block, many, hiding, busy, bomb = done.stdout.splitlines()
    assert block.endswith("MemoryError")
    assert "used more than 512 MB of memory" in many
    assert "used more than 512 MB of memory" in hiding
    assert "used more than 1 seconds of CPU time" in busy
    assert int(bomb.split("'")[-2]) < 64


# -- results that are none


@pytest.mark.parametrize(
    "make",
    [
        "os.symlink('/proc/self/environ', 'report')",
        "os.symlink('/usr/lib/os-release', 'report')",
        "os.mkfifo('report')",
        "socket.socket(socket.AF_UNIX).bind('report')",
        "os.makedirs('report/inner')",
        "pass",
    ],
)
def test_only_regular_files_are_results(make: str) -> None:
    """The old code followed no link either, but waited for a pipe's writer for ever."""
    assert python(f"import os, socket\n{make}") == {}


def test_results_that_are_too_large() -> None:
    with pytest.raises(SandboxError, match="wrote more than 1 MB of results"):
        python("with open('report', 'wb') as file: file.truncate(1 << 25)")


def test_results_in_a_folder() -> None:
    code = "import os\nos.mkdir('report')\nfor n in 'ab': open(f'report/{n}', 'w').write(n)"
    assert python(code) == {"report/a": b"a", "report/b": b"b"}


# -- the end

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
"""


def test_no_daemon_outlives_the_command() -> None:
    marker = f"assay-daemon-{os.getpid()}"
    run_isolated(PeerCommand((sys.executable, "-c", DAEMON, marker)))
    assert running(marker) == []


def running(marker: str) -> list[str]:
    """Return the command lines of the machine's processes that contain this."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_text(errors="replace"))
    return [line for line in lines if marker in line]


@pytest.mark.parametrize("victim", ["harness", "supervisor"])
def test_everything_dies_with_the_harness(victim: str) -> None:
    """On the old code a stopped command stayed for ever when the harness was killed."""
    script = (
        "import sys\nfrom assay.peers.isolation import PeerCommand, run_isolated\n"
        f"run_isolated(PeerCommand((sys.executable, '-c', {DAEMON + 'time.sleep(60)'!r})))\n"
    )
    harness = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while len(tree := descendants(harness.pid)) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)  # supervisor, first process, command, daemon
        assert len(tree) >= 4
        killed = harness.pid if victim == "harness" else min(tree)
        os.kill(killed, signal.SIGKILL)
        assert survivors(tree, seconds=5) == []
    finally:
        harness.kill()
        harness.wait()


def test_no_control_group_is_left() -> None:
    before = control_groups()
    python("pass")
    assert control_groups() <= before


def has_control_groups() -> bool:
    return os.access("/sys/fs/cgroup/memory", os.W_OK) or os.access("/sys/fs/cgroup", os.W_OK)


def control_groups() -> set[Path]:
    return set(Path("/sys/fs/cgroup").glob("**/assay-peer-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL])
def test_signals_to_the_first_process_are_lost(number: int) -> None:
    code = f"import os, time\nos.kill(1, {number:d})\ntime.sleep(.2)\nopen('report', 'w').close()"
    assert python(code) == {"report": b""}


def test_killing_everything_fails_the_command_alone() -> None:
    with pytest.raises(SandboxError, match="ended with status 137"):
        python(DAEMON + "os.kill(-1, 9); os.kill(os.getpid(), 9)")


# -- what it can do


def test_it_sees_what_it_needs(tmp_path: Path) -> None:
    """All of this is in /tmp, of which the command sees no more than it was promised."""
    needed, other = tmp_path / "needed", tmp_path / "other"
    for path in (needed, other):
        path.mkdir()
        (path / "file").write_text("x")
        (path / "file").chmod(0o666)
    code = (
        "import glob, os, sys\n"
        "open('report', 'w').write(' '.join(glob.glob(sys.argv[1] + '/*/*')))\n"
        "open(sys.argv[1] + '/needed/file', 'a')"
    )
    command = (sys.executable, "-c", code.replace("open(sys", "#"), str(tmp_path))
    seen = run_isolated(PeerCommand(command, readable=(needed,), outputs=("report",)))
    assert seen["report"].decode() == str(needed / "file")
    with pytest.raises(SandboxError, match="Read-only file system"):
        run_isolated(PeerCommand((sys.executable, "-c", code, str(tmp_path)), readable=(needed,)))


def test_pools_of_processes_work() -> None:
    """Queues, semaphores and shared values are what harnesses are made of."""
    code = (
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import Array, Manager, Value\n"
        "Value('i', 1), Array('b', [1] * 1000)\n"
        "with ProcessPoolExecutor(2) as pool, Manager() as manager:\n"
        "    shared = manager.list(list(pool.map(abs, range(-9, 0))))\n"
        "    open('report', 'w').write(str(sum(shared)))"
    )
    assert python(code) == {"report": b"45"}


def test_the_environment_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    code = "import os; open('report', 'w').write(' '.join(sorted(os.environ)))"
    assert python(code, variables={"XDG_CACHE_HOME": "/x"})["report"].decode().split() == [
        "HOME", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH",
        "PYTHONDONTWRITEBYTECODE", "TMPDIR", "XDG_CACHE_HOME",
    ]  # fmt: skip


def test_a_harness_with_an_odd_start() -> None:
    """A mask of 077, no standard input and ignored children change nothing."""
    script = (
        "import os, signal, sys\nfrom assay.peers.isolation import PeerCommand, run_isolated\n"
        "os.umask(0o077)\nos.close(0)\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        'code = \'open("report", "w").write("done")\'\n'
        "command = PeerCommand((sys.executable, '-c', code), outputs=('report',))\n"
        "print(run_isolated(command))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "{'report': b'done'}\n", done.stderr


# -- errors


def test_the_last_line_is_reported() -> None:
    with pytest.raises(SandboxError, match=r"sh: failed. no \ufffd\[31mluck$"):
        shell("printf 'first\\nno \\033[31mluck\\n' >&2; exit 3")
    with pytest.raises(SandboxError, match="sh: failed. It ended with status 3"):
        shell("exit 3")
    with pytest.raises(SandboxError, match="cannot be isolated .*/nowhere/x: No such file"):
        run_isolated(PeerCommand(("/nowhere/x",)))


def test_an_installation_that_others_cannot_read(public: Path) -> None:
    if os.geteuid():
        pytest.skip("only root runs the command as another user")
    command = public / "command"
    shutil.copy("/bin/true", command)
    command.chmod(0o700)
    with pytest.raises(SandboxError, match="command: Permission denied.*that other users can read"):
        run_isolated(PeerCommand((str(command),)))


def shell(script: str) -> None:
    run_isolated(PeerCommand(("/bin/sh", "-c", script)))


def test_where_namespaces_are_refused_nothing_runs(public: Path) -> None:
    """Never weaker without a word: one line says what is missing."""
    if os.geteuid():
        pytest.skip("only root can forbid them")
    script = (
        "from assay.peers.isolation import PeerCommand, run_isolated\n"
        "from assay.errors import SandboxError\n"
        "try:\n    run_isolated(PeerCommand(('/usr/bin/touch', '/tmp/x')))\n"
        "except SandboxError as error:\n    print(error)"
    )
    shutil.copytree(Path(assay.__file__).parent, public / "source" / "assay")
    forbid = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all "
    forbid += '--inh-caps=-all --no-new-privs "$@"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh",
         sys.executable, "-c", script],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{public}/source"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.startswith("/usr/bin/touch: cannot be isolated on this machine (unshare: ")
    assert done.stdout.count("\n") == 1


# -- installations


def test_a_virtual_environment_is_shown_with_its_python(tmp_path: Path) -> None:
    base, environment = tmp_path / "python", tmp_path / "environment"
    packages = base / "lib" / "python3.11" / "site-packages"
    for folder in (base / "bin", packages, environment / "bin"):
        folder.mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(f"home = {base}/bin\nversion = 3.11\n")
    (environment / "bin" / "command").touch()
    link = tmp_path / "link"
    link.symlink_to(environment / "bin" / "command")
    for command in (environment / "bin" / "command", link):
        found = find_installation(command)
        assert set(found.shown) == {str(base), str(environment)}
        assert found.hidden == (str(packages),)


def test_nothing_with_a_home_in_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``pip install --user`` puts commands beside everything else that is private."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for prefix in (tmp_path, tmp_path / ".local"):
        (prefix / "bin").mkdir(parents=True)
        for name in ("command", "python3"):
            (prefix / "bin" / name).touch()
        with pytest.raises(SandboxError, match="Install the command in a virtual environment"):
            find_installation(prefix / "bin" / "command")


def test_links_lead_somewhere(tmp_path: Path) -> None:
    real = tmp_path / "python-3.11"
    (real / "bin").mkdir(parents=True)
    (real / "bin" / "python3").touch()
    (tmp_path / "python").symlink_to(real)
    environment = tmp_path / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(f"home = {tmp_path}/python/bin\n")
    shown = find_installation(environment / "bin" / "command").shown
    assert shown[str(tmp_path / "python")] == str(real) == shown[str(real)]


class PeakMemory(threading.Thread):
    """The most memory that processes below this one took meanwhile."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most_mb = 0
        self._ended = threading.Event()

    def __enter__(self) -> PeakMemory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        while not self._ended.wait(0.02):
            self.most_mb = max(self.most_mb, sum(map(memory_mb, descendants(os.getpid()))))


def memory_mb(pid: int) -> int:
    """Return what a process takes, its share of shared memory included."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
        return int(words[words.index("Pss:") + 1]) >> 10
    return 0
