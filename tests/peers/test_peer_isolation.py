"""The sandbox that a whole harness runs in: it executes programs without isolating them.

A command that shares the host's files, environment and limits is open to most of these attacks.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import assay
from assay.errors import SandboxError
from assay.peers.isolation import PeerCommand, TreeLimits, find_installation, run_isolated
from tests.e2e.test_resume import descendants, survivors
from tests.peers.peer_commands import as_ordinary, python
from tests.security.control_groups import groups_of, has_control_groups
from tests.security.peer_attacks import REPORT, SECRET, attacks


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user of the machine gets to, not in /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_hostile_program_gets_nothing(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check attacks that succeed, as root, in a command that is not isolated.

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
    harness = (
        "import sys\nfrom assay.peers.isolation import PeerCommand, run_isolated\n"
        "command = PeerCommand((sys.executable, '-c', sys.argv[1]), outputs=('report',))\n"
        "print(run_isolated(command)['report'].decode())\n"
    )
    with attacks(public) as script:
        done = as_ordinary(["-c", harness, script], OPENAI_API_KEY=SECRET)
    assert done.stdout == "[]\n", done.stderr


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
    """Programs can put anything into the folder of results."""
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
    """A stopped command must not outlive a harness that is killed."""
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
    if not has_control_groups():
        pytest.skip("no control group can be made here")
    others, made = descendants(os.getpid()), set[Path]()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(python, "import time\ntime.sleep(1)")
        while not running.done():
            made |= groups_of(descendants(os.getpid()) - others)
            time.sleep(0.05)
        running.result()
    assert made
    assert [group for group in made if group.exists()] == []


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
    with pytest.raises(SandboxError, match=r"sh: failed. no \\x1b\[31mluck$"):
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
