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
from assay.cluster.files import describe_files, locate
from assay.cluster.site import FileSource, read_from
from assay.pipeline import EvalConfig, ProblemSelection, Sampling, ScoreConfig, evaluate, score
from assay.pipeline.site import THIS_MACHINE, Site
from assay.runs import Result, RunReader
from assay.types import Benchmark, Verdict
from tests.cluster.ray_cluster import LocalCluster, local_cluster, require_ray
from tests.conftest import ASSAY, write_completions
from tests.e2e.test_resume import slow_programs
from tests.test_judge_processes import lasting
from tests.test_pipeline import Watcher

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
NODES = 2
RUN_S = 300.0


@pytest.fixture(scope="module")
def cluster(_environment: None) -> Iterator[LocalCluster]:
    require_ray()
    from assay.datasets import cache_dir

    with local_cluster(NODES, cache_dir()) as found:
        yield found


@pytest.fixture
def site(cluster: LocalCluster) -> Iterator[RaySite]:
    cluster.restore(NODES)
    with open_cluster(cluster.address) as found:
        yield found


class Disturber(Watcher):
    """Do something after so many verdicts."""

    def __init__(self, after: int, action: Any) -> None:
        super().__init__()
        self._after, self._action, self._count = after, action, 0

    def judged(self, verdict: Verdict, cached: bool) -> None:
        super().judged(verdict, cached)
        self._count += 1
        if self._count == self._after:
            self._action()


def programs(mini: Benchmark) -> list[tuple[str, str]]:
    """Right and wrong ones, one without code and one that never ends."""
    task = mini.problems[0].task_id
    texts = slow_programs(mini, 0.02)
    return [*texts, *texts, *texts[:18], (task, "I cannot."), (task, "while True: pass")]


def score_at(site: Site, folder: Path, mini: Benchmark, watcher: Watcher | None = None) -> Result:
    folder.mkdir(exist_ok=True)
    path = write_completions(folder / "samples.jsonl", programs(mini))
    config = ScoreConfig(
        "mini", folder / "results", samples_file=str(path), no_cache=True, tests_seed="fixed",
        partial=True, time_limit=1.0, site=site, workers=2, model_name="m",
    )  # fmt: skip
    return score(config, watcher or Watcher())


def verdicts_of(result: Result) -> Any:
    return lasting(RunReader(result.folder).verdicts)


@pytest.fixture(scope="module")
def expected(mini: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return verdicts_of(score_at(THIS_MACHINE, tmp_path_factory.mktemp("one"), mini))


def test_scores_are_those_of_one_machine(
    site: RaySite, mini: Benchmark, tmp_path: Path, expected: Any
) -> None:
    result = score_at(site, tmp_path, mini)
    assert verdicts_of(result) == expected
    assert len(expected) == 60
    assert result.results.invalid == 0


def test_a_judge_actor_that_dies_is_replaced(
    site: RaySite, mini: Benchmark, tmp_path: Path, expected: Any
) -> None:
    killed: list[int] = []

    def kill() -> None:
        (staff, _), *_ = site._pools.values()
        pids = [actor_pid(site, member.actor) for member in staff.members()]
        os.kill(pids[0], signal.SIGKILL)
        killed.extend(pids)

    assert verdicts_of(score_at(site, tmp_path, mini, Disturber(10, kill))) == expected
    assert len(killed) == NODES


def actor_pid(site: RaySite, actor: Any) -> int:
    _, pid = site._ray.get(actor.describe_place.remote())
    return int(pid)


def test_a_node_that_is_killed_loses_nothing(
    site: RaySite, cluster: LocalCluster, mini: Benchmark, tmp_path: Path, expected: Any
) -> None:
    kill = Disturber(10, lambda: cluster.kill(cluster.nodes[0]))
    assert verdicts_of(score_at(site, tmp_path, mini, kill)) == expected


def test_a_node_that_joins_takes_part(
    cluster: LocalCluster, mini: Benchmark, tmp_path: Path, expected: Any
) -> None:
    """The only node is killed. The run goes on when another one is there."""
    cluster.restore(NODES)
    for node in cluster.nodes[1:]:
        cluster.kill(node)
    cluster.nodes = cluster.nodes[:1]

    def exchange() -> None:
        cluster.nodes.append(cluster.add())
        cluster.kill(cluster.nodes[0])

    with open_cluster(cluster.address) as site:
        assert verdicts_of(score_at(site, tmp_path, mini, Disturber(5, exchange))) == expected


def evaluate_at(site: Site, folder: Path, watcher: Watcher | None = None) -> Any:
    config = EvalConfig(
        "mini", folder, no_cache=True, tests_seed="fixed", site=site, workers=1,
        problems=ProblemSelection("4"), sampling=Sampling(2, 0.8, max_tokens=8),
    )  # fmt: skip
    result = evaluate(config, watcher or Watcher())
    run = RunReader(result.folder)
    texts = {c.key: (c.text, c.seed, c.finish_reason) for c in run.read_completions()}
    return texts, lasting(run.verdicts)


@pytest.fixture(scope="module")
def generated(_environment: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return evaluate_at(THIS_MACHINE, tmp_path_factory.mktemp("generated"))


@pytest.mark.model
def test_completions_are_those_of_one_machine(
    site: RaySite, tmp_path: Path, generated: Any
) -> None:
    texts, _ = generated
    assert len(texts) == 8
    assert evaluate_at(site, tmp_path) == generated


@pytest.mark.model
def test_an_engine_that_dies_is_replaced(site: RaySite, tmp_path: Path, generated: Any) -> None:
    killed = threading.Event()

    class Killer(Watcher):
        def completed(self, completion: Any) -> None:
            super().completed(completion)
            if not killed.is_set():
                killed.set()
                (model,) = site._models
                assert model._staff is not None
                os.kill(actor_pid(site, model._staff.members()[0].actor), signal.SIGKILL)

    assert evaluate_at(site, tmp_path, Killer()) == generated
    assert killed.is_set()


SUITE = """
models: [{{model: "replay:{samples}", name: m}}]
benchmarks: [mini]
"""


def test_a_killed_driver_resumes(cluster: LocalCluster, mini: Benchmark, tmp_path: Path) -> None:
    """A suite is killed, then resumed while a node is killed: the same verdicts."""
    cluster.restore(NODES)
    path = write_completions(tmp_path / "samples.jsonl", slow_programs(mini, 0.5))
    (tmp_path / "suite.yaml").write_text(SUITE.format(samples=path))
    command = [*ASSAY, "suite", str(tmp_path / "suite.yaml"), "--no-cache", "--workers", "1"]
    first = start(tmp_path, [*command, "--ray", cluster.address])
    wait_for_verdicts(tmp_path, 4, first)
    first.kill()
    first.communicate(timeout=RUN_S)
    before = count_verdicts(tmp_path)
    assert before < len(mini.problems)
    again = start(tmp_path, [*command, "--ray", cluster.address])
    wait_for_verdicts(tmp_path, before + 2, again)
    cluster.kill(cluster.nodes[0])
    _, err = again.communicate(timeout=RUN_S)
    assert again.returncode == 0, err
    assert count_verdicts(tmp_path) == len(mini.problems)  # none was judged twice
    one = tmp_path / "one"
    one.mkdir()
    alone = start(one, command)
    _, err = alone.communicate(timeout=RUN_S)
    assert alone.returncode == 0, err
    assert run_verdicts(tmp_path) == run_verdicts(one)


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


def test_ctrl_c_is_one_line(cluster: LocalCluster, mini: Benchmark, tmp_path: Path) -> None:
    cluster.restore(NODES)
    path = write_completions(tmp_path / "samples.jsonl", slow_programs(mini, 0.5))
    command = [
        *ASSAY, "score", str(path), "--benchmark", "mini", "--ray", cluster.address, "--no-cache",
    ]  # fmt: skip
    running = start(tmp_path, command)
    wait_for_verdicts(tmp_path, 2, running)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=RUN_S)
    assert running.returncode == 130
    assert err.splitlines()[-1].startswith("assay: Interrupted. Completed work is saved")
    assert "Traceback" not in err


def test_a_file_is_copied_to_a_node_and_verified(site: RaySite, tmp_path: Path) -> None:
    source = tmp_path / "model.bin"
    source.write_bytes(os.urandom(40_000_000))  # three pieces
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
