"""Environments of packages: made once from a lock, seen by programs, and by no one else's."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay.datasets import cache_dir
from assay.errors import SandboxError, UsageError
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.environments import store as environments
from assay.sandbox.environments.store import Recipe
from assay.types import Job, Limits, Program, Tests, Verdict
from tests.conftest import Cli

TIERS_HERE = ["root", "landlock"] if os.geteuid() == 0 else ["user", "landlock"]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# A package that the harness does not depend on, so that it can only come from the environment.
LOCK = "# small and pure\ntexttable==1.7.0\n"


def tiny(folder: Path, lock: str = LOCK, python: str = PYTHON, first_run: str = "") -> Recipe:
    folder.mkdir(exist_ok=True)
    path = folder / "tiny.txt"
    path.write_text(lock)
    return Recipe(
        name="tiny",
        lock=path,
        python=python,
        variables=(("MARK", "{folder}/mark"),),
        first_run=first_run,
    )


def open_one(folder: Path) -> Recipe:
    """Without packages, with all that can be allowed."""
    lock = folder / "open.txt"
    lock.write_text("# nothing\n")
    return Recipe("open", lock, PYTHON, allowed=("loopback", "figures"))


@contextmanager
def empty_cache() -> Iterator[Path]:
    """Not below /tmp, where no environment may lie; with a recipe for a small one."""
    parent = cache_dir()
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix="test-") as name:
        folder = Path(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ASSAY_CACHE_DIR", name)
            patch.setitem(environments.RECIPES, "tiny", tiny(folder))
            patch.setitem(environments.RECIPES, "open", open_one(folder))
            yield folder


@pytest.fixture
def cache() -> Iterator[Path]:
    with empty_cache() as folder:
        yield folder


@pytest.fixture(scope="module")
def tiny_environment() -> Iterator[Path]:
    """Made for real, once."""
    with empty_cache():
        told: list[str] = []
        try:
            made = environments.create("tiny", told.append)
        except SandboxError as error:
            pytest.skip(f"no package registry in reach: {error}")
        assert any("downloading 1 packages" in text for text in told)
        yield made.folder


@pytest.fixture(scope="module", params=TIERS_HERE)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    opened = open_sandbox("process", 1, request.param)
    yield opened
    opened.close()


def judged(sandbox: Sandbox, code: str, environment: str = "tiny") -> Verdict:
    job = Job("t", 0, Program(code, "x"), Tests("f", ""), Limits(), (), environment)
    (verdict,) = sandbox.judge([job])
    return verdict


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_environment")
def test_programs_import_what_the_lock_pins(sandbox: Sandbox) -> None:
    code = "import texttable\nassert texttable.__version__ == '1.7.0'"
    assert judged(sandbox, code).status == "pass"
    assert "No module named 'texttable'" in judged(sandbox, code, environment="").detail


@pytest.mark.slow
def test_neither_the_harness_nor_its_packages_are_seen(
    tiny_environment: Path, sandbox: Sandbox
) -> None:
    for module in ("assay", "click", "pytest"):
        assert f"No module named '{module}'" in judged(sandbox, f"import {module}").detail
    for path in (environments.__file__, tiny_environment.parents[1] / "tiny.txt"):
        verdict = judged(sandbox, f"open({str(path)!r})")
        assert re.search("FileNotFound|Permission", verdict.detail), path


@pytest.mark.slow
def test_its_interpreter_path_and_variables_are_there(
    tiny_environment: Path, sandbox: Sandbox
) -> None:
    code = (
        "import os, subprocess, sys\n"
        f"assert os.environ['MARK'] == '{tiny_environment}/mark', os.environ\n"
        f"assert sys.prefix == '{tiny_environment}', sys.prefix\n"
        "out = subprocess.run(['python', '-c', 'import texttable; print(42)'], "
        "capture_output=True, text=True)\n"
        "assert out.stdout == '42\\n', out"
    )
    verdict = judged(sandbox, code)
    assert verdict.status == "pass", verdict


@pytest.mark.slow
def test_it_cannot_be_written_by_programs(tiny_environment: Path, sandbox: Sandbox) -> None:
    target = tiny_environment / "left"
    assert judged(sandbox, f"open({str(target)!r}, 'w')").reason == "forbidden"
    assert not target.exists()


TALK = """
import socket
server = socket.create_server(("localhost", 0))
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
client.send(b"x")
assert accepted.recv(1) == b"x"
client.close()
"""


@pytest.fixture(scope="module")
def open_sandbox_of_namespaces(tiny_environment: Path) -> Iterator[Sandbox]:  # noqa: ARG001 - its cache
    environments.create("open")
    opened = open_sandbox("process", 1, TIERS_HERE[0])
    yield opened
    opened.close()


@pytest.mark.slow
def test_a_program_can_talk_to_itself_and_leaves_no_trace_of_it(
    open_sandbox_of_namespaces: Sandbox,
) -> None:
    sandbox = open_sandbox_of_namespaces
    assert judged(sandbox, TALK, "open").status == "pass"
    # A header and no connection, not even one that waits for its last packet.
    left = "assert len(open('/proc/self/net/tcp').readlines()) == 1"
    assert judged(sandbox, left, "open").status == "pass"
    assert judged(sandbox, TALK, environment="").status == "fail"


@pytest.mark.slow
def test_the_hosts_loopback_is_another(open_sandbox_of_namespaces: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection({server.getsockname()!r}, 2)"
        assert judged(open_sandbox_of_namespaces, code, "open").status == "fail"


@pytest.mark.usefixtures("cache")
def test_a_tier_that_cannot_give_what_is_allowed_is_refused() -> None:
    sandbox = open_sandbox("process", 1, "landlock")
    with pytest.raises(SandboxError, match="needs namespaces, which tier landlock does not have"):
        judged(sandbox, "", "open")
    sandbox.close()


@pytest.mark.slow
def test_of_the_machine_only_figures_are_told(open_sandbox_of_namespaces: Sandbox) -> None:
    code = """
import os
assert "MemTotal" in open("/proc/meminfo").read()
readable = set()
for name in os.listdir("/proc"):
    path = "/proc/" + name
    if name.isdecimal() or os.path.islink(path):
        continue
    try:
        if os.listdir(path) if os.path.isdir(path) else open(path).read():
            readable.add(name)
    except OSError:
        pass
assert readable == {"cpuinfo", "loadavg", "meminfo", "stat", "uptime"}, readable
"""
    verdict = judged(open_sandbox_of_namespaces, code, "open")
    assert verdict.status == "pass", verdict


@pytest.mark.slow
def test_what_is_there_is_not_made_again(tiny_environment: Path) -> None:
    told: list[str] = []
    assert environments.create("tiny", told.append).folder == tiny_environment
    assert told == []
    (state,) = [s for s in environments.states() if s.name == "tiny"]
    assert state.state == "ready"
    assert state.size_mb > 0


@pytest.mark.slow
def test_an_import_that_starts_a_thread_is_not_warmed(
    tiny_environment: Path, sandbox: Sandbox
) -> None:
    """Its lock may be held when a program is forked."""
    threaded = tiny_environment / "lib" / f"python{PYTHON}" / "site-packages" / "threaded.py"
    threaded.write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
    )
    job = Job("t", 0, Program("", "x"), Tests("f", ""), Limits(), ("threaded",), "tiny")
    (verdict,) = sandbox.judge([job])
    assert (verdict.status, verdict.reason) == ("invalid", "sandbox-error")
    assert "an import started a thread" in verdict.detail
    threaded.unlink()


@pytest.mark.usefixtures("cache")
def test_a_missing_environment_ends_the_run_with_its_remedy() -> None:
    sandbox = open_sandbox("process", 1)
    with pytest.raises(SandboxError, match="'tiny': missing. Run 'assay env tiny'"):
        judged(sandbox, "")
    sandbox.close()


@pytest.mark.usefixtures("cache")
def test_a_folder_without_its_marker_is_no_environment() -> None:
    (state,) = [s for s in environments.states() if s.name == "tiny"]
    assert state.state == "missing"
    Path(state.folder, "bin").mkdir(parents=True)
    with pytest.raises(SandboxError, match="missing"):
        environments.find("tiny")
    (state,) = [s for s in environments.states() if s.name == "tiny"]
    assert state.state == "unfinished"


def test_every_change_of_the_recipe_is_another_environment(tmp_path: Path) -> None:
    base = tiny(tmp_path)
    identities = {environments._identity(base)}
    for name, changed in (
        ("lock", tiny(tmp_path / "other", "texttable==1.6.7\n")),
        ("python", tiny(tmp_path, python="3.10")),
        ("first_run", tiny(tmp_path, first_run="pass")),
    ):
        assert environments._identity(changed) not in identities, name
        identities.add(environments._identity(changed))


def test_comments_in_a_lock_change_nothing(tmp_path: Path) -> None:
    assert environments._identity(tiny(tmp_path)) == environments._identity(
        tiny(tmp_path / "other", "texttable==1.7.0  # the same\n\n")
    )


@pytest.mark.usefixtures("cache")
def test_a_missing_python_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(environments.RECIPES, "tiny", tiny(tmp_path, python="2.5"))
    with pytest.raises(SandboxError, match="needs Python 2.5, which is not installed. Run"):
        environments.create("tiny")


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_a_package_that_cannot_be_had_leaves_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tiny(tmp_path, "texttable==0.0.0.1\n")
    monkeypatch.setitem(environments.RECIPES, "tiny", broken)
    with pytest.raises(
        SandboxError, match="was not created .*run 'assay env tiny' again"
    ) as caught:
        environments.create("tiny")
    assert "\n" not in str(caught.value)
    with pytest.raises(SandboxError, match="missing"):
        environments.find("tiny")


@pytest.mark.slow
def test_a_killed_creation_is_made_again(cache: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from assay.sandbox import environments as e\n"
        "from tests.sandbox.test_environments import tiny\n"
        f"e.RECIPES['tiny'] = tiny(Path({str(tmp_path)!r}))\n"
        "e.create('tiny')"
    )
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "src")])
    maker = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path})
    deadline = time.monotonic() + 60
    while not list(cache.glob("environments/tiny-*/bin/python")) and time.monotonic() < deadline:
        time.sleep(0.02)
    maker.send_signal(signal.SIGKILL)
    maker.wait()
    with pytest.raises(SandboxError, match="missing"):
        environments.find("tiny")
    try:
        made = environments.create("tiny")
    except SandboxError as error:
        pytest.skip(f"no package registry in reach: {error}")
    assert Path(made.interpreter).exists()
    assert environments.remove("tiny") == [made.folder]
    assert not made.folder.exists()


@pytest.mark.usefixtures("cache")
def test_an_unknown_environment_names_the_known_ones() -> None:
    for function in (environments.find, environments.create, environments.remove):
        with pytest.raises(UsageError, match="environment 'x': unknown. Choose bigcodebench"):
            function("x")


def test_the_lock_of_bigcodebench_is_exact() -> None:
    packages = environments.RECIPES["bigcodebench"].packages()
    assert len(packages) == len({p.partition("==")[0].lower() for p in packages}) == 166
    assert all(package.count("==") == 1 for package in packages)


def test_the_command_line_lists_and_explains(assay: Cli, cache: Path) -> None:
    elsewhere = {"ASSAY_CACHE_DIR": str(cache)}
    listed = assay("env", "list", env=elsewhere)
    states = [line.split()[:2] for line in listed.stdout.splitlines()]
    assert ["bigcodebench", "missing"] in states
    assert ["leetcode", "missing"] in states
    assert assay("env", "remove", "bigcodebench", env=elsewhere).returncode == 0
    unknown = assay("env", "conda", env=elsewhere)
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("assay: environment 'conda': unknown. Choose bigcodebench")
    assert unknown.stderr.count("\n") == 1


def test_an_environment_that_programs_could_not_see_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", "/tmp/assay")
    with pytest.raises(
        SandboxError, match="programs have their own /tmp folder.*Set ASSAY_CACHE_DIR"
    ):
        environments.find("bigcodebench")
