"""Runs over a Ray cluster: the same results as on one machine, whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cluster import RaySite, open_cluster
from assay.cluster.files import CHUNK, FileSource, describe_files, locate, read_from
from assay.pipeline import EvalConfig, ProblemSelection, Sampling, ScoreConfig, evaluate, score
from assay.pipeline.site import THIS_MACHINE, Site
from assay.runs import Result, RunReader
from assay.types import Benchmark, Verdict
from tests.cluster.ray_cluster import LocalCluster, local_cluster, require_ray
from tests.conftest import ASSAY, write_completions
from tests.e2e.test_resume import slow_programs
from tests.pipeline.test_pipeline import Watcher
from tests.sandbox.test_judge_processes import lasting

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
NODES, WORKERS = 2, 2
RUN_S = 300.0


@pytest.fixture(scope="module")
def cluster(_environment: None) -> Iterator[LocalCluster]:
    require_ray()
    from assay.datasets import cache_dir

    with local_cluster(NODES, cache_dir()) as found:
        yield found


@pytest.fixture(scope="module")
def notes() -> list[str]:
    return []


@pytest.fixture(scope="module")
def site(cluster: LocalCluster, notes: list[str]) -> Iterator[RaySite]:
    with open_cluster(cluster.address, notes.append) as found:
        yield found


class Disturber(Watcher):
    """Do something after so many verdicts."""

    def __init__(self, actions: dict[int, Any]) -> None:
        super().__init__()
        self._actions, self._count = actions, 0

    def judged(self, verdict: Verdict, cached: bool) -> None:
        super().judged(verdict, cached)
        self._count += 1
        self._actions.get(self._count, lambda: None)()


def programs(mini: Benchmark) -> list[tuple[str, str]]:
    """Right and wrong ones, one without code and one that never ends."""
    task = mini.problems[0].task_id
    texts = slow_programs(mini, 0.05)
    return [*texts, *texts, *texts[:18], (task, "I cannot."), (task, "while True: pass")]


def score_at(site: Site, folder: Path, mini: Benchmark, watcher: Watcher | None = None) -> Result:
    folder.mkdir(exist_ok=True)
    path = write_completions(folder / "samples.jsonl", programs(mini))
    config = ScoreConfig(
        "mini", folder / "results", samples_file=str(path), no_cache=True, tests_seed="fixed",
        partial=True, time_limit=1.0, site=site, workers=WORKERS, model_name="m",
    )  # fmt: skip
    return score(config, watcher or Watcher())


def verdicts_of(result: Result) -> Any:
    return result.protocol_hash, lasting(RunReader(result.folder).verdicts)


def test_scores_are_those_of_one_machine_whatever_is_killed(
    site: RaySite, cluster: LocalCluster, notes: list[str], mini: Benchmark, tmp_path: Path
) -> None:
    """An actor is killed, then every node after another one has joined."""
    cluster.restore(NODES)
    notes.clear()

    def kill_an_actor() -> None:
        (hosts, _), *_ = site._pools.values()
        os.kill(actor_pid(site, hosts.hosts()[0].actor), signal.SIGKILL)

    def exchange_the_nodes() -> None:
        before = cluster.nodes
        cluster.nodes = [cluster.add()]
        for node in before:
            cluster.kill(node)

    disturber = Disturber({5: kill_an_actor, 15: exchange_the_nodes})
    result = score_at(site, tmp_path / "cluster", mini, disturber)
    expected = score_at(THIS_MACHINE, tmp_path / "one", mini)
    assert verdicts_of(result) == verdicts_of(expected)
    assert (result.results.samples, result.results.invalid) == (60, 0)
    assert sum("cluster: lost" in note for note in notes) > 1


def actor_pid(site: RaySite, actor: Any) -> int:
    _, pid = site._ray.get(actor.describe_place.remote())
    return int(pid)


def evaluate_at(site: Site, folder: Path, watcher: Watcher | None = None) -> Any:
    config = EvalConfig(
        "mini", folder, no_cache=True, tests_seed="fixed", site=site, workers=WORKERS,
        problems=ProblemSelection("4"), sampling=Sampling(2, 0.8, max_tokens=8),
    )  # fmt: skip
    result = evaluate(config, watcher or Watcher())
    run = RunReader(result.folder)
    texts = {c.key: (c.text, c.seed, c.finish_reason) for c in run.read_completions()}
    return texts, verdicts_of(result)


@pytest.mark.model
def test_completions_are_those_of_one_machine_if_an_engine_dies(
    site: RaySite, cluster: LocalCluster, tmp_path: Path
) -> None:
    cluster.restore(NODES)
    killed = threading.Event()

    class Killer(Watcher):
        def completed(self, completion: Any) -> None:
            super().completed(completion)
            if not killed.is_set():
                killed.set()
                (model,) = site._models
                assert model._hosts is not None
                os.kill(actor_pid(site, model._hosts.hosts()[0].actor), signal.SIGKILL)

    found = evaluate_at(site, tmp_path / "cluster", Killer())
    assert killed.is_set()
    assert len(found[0]) == 8
    assert found == evaluate_at(THIS_MACHINE, tmp_path / "one")


SUITE = """
models: [{{model: "replay:{samples}", name: m}}]
benchmarks: [mini]
"""


def test_a_killed_driver_resumes(cluster: LocalCluster, mini: Benchmark, tmp_path: Path) -> None:
    """A suite is killed, interrupted, and resumed while a node is killed: the same verdicts.

    A driver that is killed or interrupted leaves no actor behind.
    """
    cluster.restore(NODES)
    ours = cluster.judges()  # of the site
    path = write_completions(tmp_path / "samples.jsonl", slow_programs(mini, 0.5))
    (tmp_path / "suite.yaml").write_text(SUITE.format(samples=path))
    command = [*ASSAY, "suite", "suite.yaml", "--no-cache", "--workers", "1"]
    command += ["--ray", cluster.address]
    first = start(tmp_path, command)
    wait_for_verdicts(tmp_path, 2, first)
    first.kill()
    first.communicate(timeout=RUN_S)
    cluster.wait_for_judges(ours)
    second = start(tmp_path, command)
    wait_for_verdicts(tmp_path, count_verdicts(tmp_path) + 2, second)
    second.send_signal(signal.SIGINT)
    _, err = second.communicate(timeout=RUN_S)
    assert second.returncode == 130
    assert err.splitlines()[-1].startswith("assay: Interrupted. Completed work is saved")
    assert "Traceback" not in err
    cluster.wait_for_judges(ours)
    before = count_verdicts(tmp_path)
    assert before < len(mini.problems)
    third = start(tmp_path, command)
    wait_for_verdicts(tmp_path, before + 2, third)
    cluster.kill(cluster.nodes[0])
    _, err = third.communicate(timeout=RUN_S)
    assert third.returncode == 0, err
    assert count_verdicts(tmp_path) == len(mini.problems)  # none was judged twice
    config = ScoreConfig("mini", tmp_path / "one", samples_file=str(path), no_cache=True)
    alone = score(config, Watcher())
    assert run_verdicts(tmp_path) == lasting(RunReader(alone.folder).verdicts)


def start(folder: Path, command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def run_verdicts(folder: Path) -> Any:
    (run,) = folder.glob("results/mini_*/run.json")
    return lasting(RunReader(run.parent).verdicts)


def count_verdicts(folder: Path) -> int:
    return sum(p.read_bytes().count(b"\n") for p in folder.glob("results/*/verdicts.jsonl"))


def wait_for_verdicts(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + RUN_S
    while count_verdicts(folder) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_file_is_copied_to_a_node_and_verified(site: RaySite, tmp_path: Path) -> None:
    source = tmp_path / "model.bin"
    source.write_bytes(os.urandom(CHUNK + 1))  # two pieces
    shipment = describe_files(source)
    ray = site._ray

    def copy_there(reader: Any, folder: str) -> tuple[str, bytes]:
        from assay.cluster import files

        os.environ["ASSAY_CACHE_DIR"] = folder
        has_same = files.has_same  # this "node" does not have the driver's path
        files.has_same = lambda root, shipment: (
            str(root) != shipment.root and has_same(root, shipment)
        )
        found = locate(shipment, read_from(reader))
        return str(found), found.read_bytes()

    reader = ray.remote(num_cpus=0)(FileSource).remote()
    ray.get(reader.allow.remote([str(source)]))
    call = ray.remote(num_cpus=0)(copy_there).remote(reader, str(tmp_path / "cache"))
    path, content = ray.get(call, timeout=RUN_S)
    assert content == source.read_bytes()
    assert path == str(tmp_path / "cache" / "cluster" / shipment.digest / "model.bin")
    with pytest.raises(ray.exceptions.RayTaskError):
        ray.get(reader.read.remote("/etc/passwd", 0, 10))
    ray.kill(reader)


def test_without_an_address_a_cluster_is_started(mini: Benchmark, tmp_path: Path) -> None:
    require_ray()
    path = write_completions(tmp_path / "samples.jsonl", slow_programs(mini, 0.0))
    command = [*ASSAY, "score", str(path), "--benchmark", "mini", "--no-cache", "--ray"]
    environment = {**os.environ, "HOME": str(tmp_path)}  # with a token of its own
    environment.pop("RAY_AUTH_MODE", None)
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=RUN_S
    )
    assert done.returncode == 0, done.stderr
    assert "1 node, " in done.stderr
    assert count_verdicts(tmp_path) == len(mini.problems)
    token = tmp_path / ".ray" / "auth_token"
    assert not token.exists() or token.stat().st_mode & 0o077 == 0
