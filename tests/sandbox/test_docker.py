"""Containers: the whole battery, and what happens when somebody else ends them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.errors import SandboxError
from assay.sandbox import Sandbox, _engine, open_sandbox
from assay.sandbox._container import run_arguments
from assay.sandbox._engine import OWNER_LABEL, WORKER_LABEL, Engine
from assay.sandbox.selftest import run_battery
from assay.types import Benchmark, Job, Limits, Program, Tests
from tests.conftest import Cli
from tests.sandbox.container_engine import OwnEngine

docker = pytest.mark.docker
SLEEPER = "import time\ndef f():\n    time.sleep({seconds})\n    return 1\n"
LIMITS = {"memory_mb": 512, "processes": 64, "files_mb": 64}


@pytest.fixture
def sandbox(engine: OwnEngine | None) -> Iterator[Sandbox]:  # noqa: ARG001 - must run
    opened = open_sandbox("docker", 2)
    yield opened
    opened.close()


def job(code: str, tests: str = "assert f() == 1", sample: int = 0) -> Job:
    return Job("t", sample, Program(code, ""), Tests("f", tests, integrity="separated"))


def containers() -> list[str]:
    asked = ("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={WORKER_LABEL}")
    return Engine("docker").asked(*asked).split()


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
def test_references_pass(sandbox: Sandbox, humaneval: Benchmark) -> None:
    jobs = [Job(p.task_id, 0, Program(p.reference, ""), p.tests) for p in humaneval.problems]
    assert {v.task_id: v.reason for v in sandbox.judge(jobs) if v.status != "pass"} == {}


@docker
def test_what_is_asked_of_the_engine(sandbox: Sandbox) -> None:
    list(sandbox.judge([job("def f(): return 1")]))
    (found, *_) = json.loads(Engine("docker").asked("inspect", containers()[0]))
    host, config = found["HostConfig"], found["Config"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert host["Memory"] == host["MemorySwap"] == (512 + 256) << 20
    assert host["PidsLimit"] == 64 + 16
    assert int(config["User"].partition(":")[0]) > 0
    assert config["Image"].startswith("sha256:")


@docker
def test_a_killed_container_costs_no_verdict(sandbox: Sandbox) -> None:
    def kill() -> None:
        assert until(containers)
        time.sleep(1.0)
        for container in containers():
            Engine("docker").asked("kill", container)

    threading.Thread(target=kill, daemon=True).start()
    (verdict,) = sandbox.judge([job(SLEEPER.format(seconds=3))])
    assert verdict.status == "pass", verdict


@docker
def test_an_engine_that_is_restarted_costs_no_verdict(
    sandbox: Sandbox, engine: OwnEngine | None
) -> None:
    if engine is None:
        pytest.skip("the engine here is somebody else's: it is not restarted")

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


@docker
@pytest.mark.usefixtures("engine")
def test_leftovers_of_the_dead_are_removed_and_no_others() -> None:
    engine = Engine("docker")
    mine = _engine.owner().split("/")
    owners = {
        "dead": "/".join([*mine[:3], "1"]),  # this pid, but another process's start
        "rebooted": "/".join([mine[0], "earlier", "1", "1"]),
        "foreign": "/".join(["elsewhere", *mine[1:]]),
        "alive": _engine.owner(),
    }
    image = json.loads(engine.asked("image", "inspect", "assay-sandbox"))[0]["Id"]
    made = {
        name: engine.asked(
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
    with pytest.raises(SandboxError, match="by its digest"):
        open_sandbox("docker", 1)
    monkeypatch.setenv("ASSAY_DOCKER_IMAGE", f"sha256:{'0' * 64}")
    with pytest.raises(SandboxError, match="no image for the sandbox: pull"):
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
    Engine("docker").asked("tag", from_root, "assay-test-base")
    from_base = build("--base", "assay-test-base")
    assert from_base.startswith("sha256:")
    assert from_base != from_root
    samples = tmp_path / "s.jsonl"
    samples.write_text(json.dumps({"task_id": "mini/0", "solution": "x = 1"}))
    done = assay("score", samples, "--benchmark", "mini", "--sandbox", "docker", "--json")
    promises = json.loads(done.stdout)["environment"]["sandbox"]["guarantees"]
    assert f"image {from_base}" in promises
    build("--rootfs", "host")


@docker
@pytest.mark.usefixtures("engine")
def test_images_that_cannot_be(assay: Cli, tmp_path: Path) -> None:
    for arguments, words in (
        (("--rootfs", str(tmp_path / "nowhere")), "no root file system at"),
        (("--base", "assay-no-such-image"), "docker: "),
    ):
        done = assay("sandbox", "build-image", *arguments)
        assert done.returncode == 2
        assert f"assay: {words}" in done.stderr.splitlines()[-1]


def test_without_an_engine_one_line_says_what_to_do(
    assay: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = tmp_path / "s.jsonl"
    samples.write_text(json.dumps({"task_id": "mini/0", "solution": "x"}))
    asked = ("score", samples, "--benchmark", "mini", "--sandbox", "docker")
    monkeypatch.setenv("ASSAY_CONTAINER_ENGINE", "no-such-engine")
    done = assay(*asked)
    assert done.returncode == 2
    assert "no container engine here" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("assay: no container engine")


def test_an_engine_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "docker"
    tool.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon at x.' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("ASSAY_CONTAINER_ENGINE", str(tool))
    with pytest.raises(SandboxError, match="its engine does not answer"):
        open_sandbox("docker", 1)


def test_tiers_are_not_for_containers() -> None:
    with pytest.raises(SandboxError, match="drop --sandbox-tier"):
        open_sandbox("docker", 1, "root")


def test_limits_become_words_of_the_engine() -> None:
    words = run_arguments("sha256:1", "name", LIMITS, 200_001, podman=False)
    for word in (
        "--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
        "--memory=768m", "--pids-limit=80", "--user=200001:200001", "--pull=never", "--rm",
    ):  # fmt: skip
        assert word in words
    assert Limits().memory_mb == LIMITS["memory_mb"]


def test_podman_is_not_asked_to_count_files() -> None:
    docker, podman = (
        set(run_arguments("sha256:1", "name", LIMITS, 200_001, podman=podman))
        for podman in (False, True)
    )
    (counted,), (uncounted,) = docker - podman, podman - docker
    assert counted == f"{uncounted},nr_inodes=4096"
