"""Containers: the whole battery, and what happens when somebody else ends them."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from assay.data import text_cases
from assay.errors import SandboxError
from assay.sandbox import Sandbox, open_sandbox
from assay.sandbox.container import runtime
from assay.sandbox.container import worker as container_worker
from assay.sandbox.container.runtime import (
    OWNER_LABEL,
    WORKER_LABEL,
    ContainerRuntime,
    RuntimeGoneError,
)
from assay.sandbox.container.worker import (
    FIRST_UID,
    UIDS,
    ContainerServers,
    run_arguments,
    unused_uid,
)
from assay.sandbox.host import fork_servers
from assay.sandbox.host.worker import WorkerSettings
from assay.sandbox.inside.serving.messages import TESTS_TOO_SLOW, Settings, WorkerLimits
from assay.sandbox.selftest.battery import run_battery
from assay.types import Benchmark, Job, Limits, Program, Tests
from tests.conftest import Cli
from tests.sandbox.container_engine import OwnEngine
from tests.security.test_busy_tests import MANY

docker = pytest.mark.docker
SLEEPER = "import time\ndef f():\n    time.sleep({seconds})\n    return 1\n"
LIMITS = WorkerLimits(memory_mb=512, processes=64, files_mb=64)


@pytest.fixture
def sandbox(engine: OwnEngine | None) -> Iterator[Sandbox]:  # noqa: ARG001 - must run
    opened = open_sandbox("docker", 2)
    yield opened
    opened.close()


def job(code: str, tests: str = "assert f() == 1", sample: int = 0) -> Job:
    return Job("t", sample, Program(code, ""), Tests("f", tests, integrity="separated"))


def containers() -> list[str]:
    asked = ("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={WORKER_LABEL}")
    return ContainerRuntime("docker").run(*asked).split()


def until(condition: object, seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.1)
    return False


@docker
def test_every_promise_is_kept(sandbox: Sandbox) -> None:
    observations = list(run_battery(sandbox))
    assert [o for o in observations if o.promised and not o.contained] == []
    assert {o.attack for o in observations if not o.promised} == {
        "object that equals everything",
        "frame walking",
    }


@docker
def test_busy_tests_are_ended_by_their_cpu_time(
    engine: OwnEngine | None,  # noqa: ARG001 - must run
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit of wall time alone would end them as a broken worker, on a busy machine too early."""
    monkeypatch.setattr(fork_servers, "GRACE_S", 1.0)  # late after 3 s
    monkeypatch.setattr(container_worker, "TESTS_CPU_S", 5.0)
    limits = Limits(wall_s=0.5)
    busy = MANY + "f = lambda: MANY\n"
    tests = Tests("f", "assert set(f()) == {1}", integrity="separated")
    jobs = [Job("busy", 0, Program(busy, ""), tests, limits), job("def f(): return 1")]
    with closing(open_sandbox("docker", 2)) as sandbox:
        found = {v.task_id: (v.status, v.reason, v.detail) for v in sandbox.judge(jobs)}
    assert found == {"busy": ("fail", "timeout", TESTS_TOO_SLOW), "t": ("pass", "passed", "")}


@docker
def test_programs_on_standard_input_are_judged(sandbox: Sandbox) -> None:
    cases = text_cases.pack([("1 2", "3"), ("4 5", "9")])
    tests = Tests("", "", "from math import *", "separated", texts=cases)
    programs = {
        "print(sum(map(int, input().split())))": "passed",
        "import os; print(sum(map(int, os.read(0, 99).split())))": "passed",
        "print(3)": "wrong-answer",
        "while True: print('x' * 1000)": "output",
        "while True: pass": "timeout",
    }
    limits = Limits(cpu_s=2, call_cpu_s=1, wall_s=10)
    jobs = [Job(code, 0, Program(code, ""), tests, limits) for code in programs]
    verdicts = {v.task_id: v for v in sandbox.judge(jobs)}
    assert {code: verdict.reason for code, verdict in verdicts.items()} == programs
    wrong = verdicts["print(3)"]
    assert (wrong.input, wrong.expected, wrong.actual) == ("4 5", "9", "3")


@docker
def test_references_pass(sandbox: Sandbox, humaneval: Benchmark) -> None:
    jobs = [Job(p.task_id, 0, Program(p.reference, ""), p.tests) for p in humaneval.problems]
    assert {v.task_id: v.reason for v in sandbox.judge(jobs) if v.status != "pass"} == {}


@docker
def test_what_is_asked_of_the_engine(sandbox: Sandbox) -> None:
    list(sandbox.judge([job("def f(): return 1")]))
    (found, *_) = json.loads(ContainerRuntime("docker").run("inspect", containers()[0]))
    host, config = found["HostConfig"], found["Config"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert host["Memory"] == host["MemorySwap"] == (512 + 256) << 20
    assert host["PidsLimit"] == 64 + 16
    assert int(config["User"].partition(":")[0]) in range(1, 65_536)  # what engines map
    assert config["Image"].startswith("sha256:")


@docker
def test_a_killed_container_costs_no_verdict(sandbox: Sandbox) -> None:
    def kill() -> None:
        assert until(containers)
        time.sleep(1.0)
        for container in containers():
            ContainerRuntime("docker").run("kill", container)

    threading.Thread(target=kill, daemon=True).start()
    (verdict,) = sandbox.judge([job(SLEEPER.format(seconds=3))])
    assert verdict.status == "pass", verdict


@docker
def test_a_paused_container_costs_no_verdict(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes nothing in: more than fits between the two must not be waited for."""
    monkeypatch.setattr(fork_servers, "GRACE_S", 1.0)
    list(sandbox.judge([job("def f(): return 1")]))
    paused = containers()
    for container in paused:
        ContainerRuntime("docker").run("pause", container)
    tests = Tests("f", f"assert f() == 1  # {'-' * 4_000_000}", integrity="separated")
    limits = Limits(wall_s=3.0)
    verdicts = list(sandbox.judge([Job("t", 0, Program("def f(): return 1", ""), tests, limits)]))
    assert [v.status for v in verdicts] == ["pass"], verdicts
    assert not set(containers()) & set(paused)


@docker
def test_an_engine_that_is_restarted_costs_no_verdict(
    sandbox: Sandbox, engine: OwnEngine | None
) -> None:
    if engine is None:
        pytest.skip("the runtime here is somebody else's: it is not restarted")

    def restart() -> None:
        time.sleep(1.0)
        engine.stop()
        time.sleep(2.0)
        engine.start()

    restarting = threading.Thread(target=restart, daemon=True)
    restarting.start()
    verdicts = list(sandbox.judge([job(SLEEPER.format(seconds=2), sample=i) for i in range(4)]))
    restarting.join()
    assert [v.status for v in verdicts] == ["pass"] * 4, verdicts


@docker
@pytest.mark.usefixtures("engine")
def test_nothing_is_left_when_the_harness_is_killed() -> None:
    before = set(containers())
    script = (
        "from assay.sandbox import open_sandbox\nfrom assay.types import *\n"
        f"job = Job('t', 0, Program({SLEEPER.format(seconds=60)!r}, ''), "
        "Tests('f', 'assert f()', integrity='separated'))\n"
        "list(open_sandbox('docker', 1).judge([job]))\n"
    )
    harness = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    assert until(lambda: set(containers()) - before)
    time.sleep(1.0)
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    assert until(lambda: not set(containers()) - before)


def tool(folder: Path, *lines: str) -> str:
    """A command in front of the engine's."""
    path = folder / "tool"
    path.write_text("\n".join(["#!/bin/sh", *lines]))
    path.chmod(0o755)
    return str(path)


# podman's list knows no single labels.
LISTS_NO_LABELS = (
    'case "$*" in *"{{.Label "*) echo "can\'t evaluate field Label" >&2; exit 125;; esac',
    'exec docker "$@"',
)


@docker
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "lines", [('exec docker "$@"',), LISTS_NO_LABELS], ids=["docker", "podman"]
)
def test_leftovers_of_the_dead_are_removed_and_no_others(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    engine = ContainerRuntime(tool(tmp_path, *lines))
    mine = runtime.owner().split("/")
    owners = {
        "dead": "/".join([*mine[:3], "1"]),  # this pid, but another process's start
        "rebooted": "/".join([mine[0], "earlier", "1", "1"]),
        "foreign": "/".join(["elsewhere", *mine[1:]]),
        "alive": runtime.owner(),
    }
    image = json.loads(engine.run("image", "inspect", "assay-sandbox"))[0]["Id"]
    made = {
        name: engine.run(
            "run", "--detach", "--network=none", "--label", f"{WORKER_LABEL}=1",
            "--label", f"{OWNER_LABEL}={owner}", "--entrypoint=python3", image,
            "-c", "import time; time.sleep(120)",
        )
        for name, owner in owners.items()
    }  # fmt: skip
    try:
        engine.remove_leftovers()
        left = set(containers())
        assert {name for name, container in made.items() if container in left} == {
            "foreign",
            "alive",
        }
    finally:
        for container in made.values():
            engine.remove(container)


@docker
@pytest.mark.usefixtures("engine")
def test_an_image_is_named_by_its_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_DOCKER_IMAGE", "assay-sandbox:latest")
    with pytest.raises(SandboxError, match="has no digest"):
        open_sandbox("docker", 1)
    monkeypatch.setenv("ASSAY_DOCKER_IMAGE", f"sha256:{'0' * 64}")
    with pytest.raises(SandboxError, match="no image for the sandbox. Pull"):
        open_sandbox("docker", 1)


@docker
@pytest.mark.usefixtures("engine")
def test_runs_say_where_they_were_judged(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    lines = [json.dumps({"task_id": p.task_id, "solution": p.reference}) for p in mini.problems]
    samples = tmp_path / "s.jsonl"
    samples.write_text("\n".join(lines))
    done = assay("score", samples, "--benchmark", "mini", "--sandbox", "docker", "--json")
    result = json.loads(done.stdout)
    assert result["results"]["pass_at_1"] == 1.0
    assert result["environment"]["sandbox"]["kind"] == "docker"
    assert result["protocol"]["sandbox"] == "docker"


@docker
@pytest.mark.usefixtures("engine")
def test_an_image_from_a_base_image(assay: Cli, tmp_path: Path) -> None:
    def build(*arguments: str) -> str:
        done = assay("sandbox", "build-image", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    from_root = build("--rootfs", "host")
    ContainerRuntime("docker").run("tag", from_root, "assay-test-base")
    from_base = build("--base", "assay-test-base")
    assert from_base.startswith("sha256:")
    assert from_base != from_root
    samples = tmp_path / "s.jsonl"
    samples.write_text(json.dumps({"task_id": "mini/0", "solution": "x = 1"}))
    asked = ("--benchmark", "mini", "--problems", "1", "--sandbox", "docker", "--json")
    done = assay("score", samples, *asked)
    promises = json.loads(done.stdout)["environment"]["sandbox"]["guarantees"]
    assert f"image {from_base}" in promises
    build("--rootfs", "host")


@docker
@pytest.mark.usefixtures("engine")
def test_images_that_cannot_be(assay: Cli, tmp_path: Path) -> None:
    for arguments, words in (
        (("--rootfs", str(tmp_path / "nowhere")), "not a root file system"),
        (("--base", "assay-no-such-image"), "docker: "),
    ):
        done = assay("sandbox", "build-image", *arguments)
        assert done.returncode == 2
        last = done.stderr.splitlines()[-1]
        assert last.startswith("assay: ")
        assert words in last


def test_without_an_engine_one_line_says_what_to_do(
    assay: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = tmp_path / "s.jsonl"
    samples.write_text(json.dumps({"task_id": "mini/0", "solution": "x"}))
    asked = ("score", samples, "--benchmark", "mini", "--problems", "1", "--sandbox", "docker")
    monkeypatch.setenv("ASSAY_CONTAINER_ENGINE", "no-such-engine")
    done = assay(*asked)
    assert done.returncode == 2
    assert "container runtime: " in done.stderr
    assert done.stderr.splitlines()[-1].startswith("assay: container runtime: ")


def test_an_engine_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silent = tool(tmp_path, "echo 'Cannot connect to the Docker daemon at x.' >&2", "exit 1")
    monkeypatch.setenv("ASSAY_CONTAINER_ENGINE", silent)
    with pytest.raises(SandboxError, match="its runtime does not answer"):
        open_sandbox("docker", 1)


@pytest.mark.parametrize(
    "said",
    [
        "docker: Cannot connect to the Docker daemon at unix:///x. Is it running?.\n"
        "See 'docker run --help'.",
        "docker: error during connect: Post http://x/create: use of closed network connection.\n\n"
        "Run 'docker run --help' for more information",
        "docker: Error response from daemon: the daemon is shutting down.\n"
        "See 'docker run --help'.",
        "write unix @->/run/docker.sock: write: broken pipe",
        "error waiting for container: unexpected EOF\nSee 'docker run --help'.",
    ],
)
def test_an_engine_that_goes_is_waited_for(said: str) -> None:
    failure = ContainerRuntime("docker").failure(said)
    assert isinstance(failure, RuntimeGoneError)
    assert said.splitlines()[0] in str(failure)


def test_what_the_engine_says_is_told_not_where_its_help_is() -> None:
    said = "docker: Error response from daemon: no such image.\nSee 'docker run --help'.\n\n"
    failure = ContainerRuntime("docker").failure(said)
    assert str(failure) == "docker: docker: Error response from daemon: no such image."
    assert not isinstance(failure, RuntimeGoneError)
    inside = "Traceback (most recent call last):\nBrokenPipeError: [Errno 32] Broken pipe\n"
    assert not isinstance(ContainerRuntime("docker").failure(inside), RuntimeGoneError)


def test_an_engine_that_hangs_is_not_waited_for_in_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runtime, "REMOVAL_S", 0.5)
    started = time.monotonic()
    ContainerRuntime(tool(tmp_path, "exec sleep 60")).remove("some container")
    assert time.monotonic() - started < 20


def test_what_cannot_be_cleaned_up_stays(tmp_path: Path) -> None:
    """A list that fails ends nothing, and containers whose owner is unknown are not removed."""
    calls = tmp_path / "calls"
    for listing in ("exit 125", "echo one two; exit 0"):
        lists = f'echo "$1" >> {calls}; [ "$1" != ps ] || {{ {listing}; }}'
        ContainerRuntime(tool(tmp_path, lists, "exit 125")).remove_leftovers()
    assert calls.read_text().split() == ["ps", "ps", "container", "container"]


def test_a_start_that_hangs_is_given_up(tmp_path: Path) -> None:
    hanging = tool(tmp_path, 'case "$1" in run) exec sleep 60;; esac', "echo 4.3")
    inside = Settings("container", "shared", LIMITS, (), (), {}, ())
    settings = WorkerSettings(inside, ("python3",), start_s=1.0)
    started = time.monotonic()
    with pytest.raises(SandboxError, match="no answer in time|does not listen"):
        ContainerServers(ContainerRuntime(hanging), "sha256:1", settings)
    assert time.monotonic() - started < 20


def test_every_container_has_a_user_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among those that engines map which are not root's: the first 65,536."""
    users = [unused_uid() for _ in range(200)]
    assert len(set(users)) == 200
    assert all(1_000 < uid < 65_536 for uid in users)
    if os.geteuid():
        pytest.skip("needs root to be somebody else")
    following = FIRST_UID + (users[-1] - FIRST_UID + 1) % UIDS
    with subprocess.Popen(["sleep", "60"], user=following) as other:
        monkeypatch.setattr(container_worker, "_uids", itertools.count(following - FIRST_UID))
        assert unused_uid() != following
        other.kill()


def test_tiers_are_not_for_containers() -> None:
    with pytest.raises(SandboxError, match="containers have one tier"):
        open_sandbox("docker", 1, "root")


def test_limits_become_words_of_the_engine() -> None:
    words = run_arguments("sha256:1", "name", LIMITS, 200_001, podman=False)
    for word in (
        "--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
        "--memory=768m", "--pids-limit=80", "--user=200001:200001", "--pull=never", "--rm",
    ):  # fmt: skip
        assert word in words
    assert Limits().memory_mb == LIMITS.memory_mb


def test_podman_is_not_asked_to_count_files() -> None:
    docker, podman = (
        set(run_arguments("sha256:1", "name", LIMITS, 200_001, podman=podman))
        for podman in (False, True)
    )
    (counted,), (uncounted,) = docker - podman, podman - docker
    assert counted == f"{uncounted},nr_inodes=4096"
