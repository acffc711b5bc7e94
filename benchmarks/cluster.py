"""Show where the driver of a cluster saturates, and what Ray costs on one node.

    python benchmarks/cluster.py [--nodes 4] [--samples 2000] [--length 400] [--tokens-per-s 0]
                                 [--judged-per-s 0]
    python benchmarks/cluster.py --overhead [--programs 1312] [--rounds 3]

The first form starts a Ray cluster of several "nodes" on this machine (ray.cluster_utils). Their
engines and sandboxes are simulated: an engine makes texts of ``--length`` characters (4 of them
count as a token) at ``--tokens-per-s``, a node judges ``--judged-per-s`` programs; 0 is as fast as
it can. Everything that the driver does is real: requests, batches, the run's folder, the result.
``--samples`` are per problem, of 20. CPU time is that of the driver's process alone, with all its
threads: Python's, of which one runs at a time, and Ray's own. The capacity of 2 cores is the
smaller of 1 / Python's CPU time and 2 / all CPU time per verdict. It does not depend on other load
of the machine; verdicts per second do.

The second form judges the same recorded completions (``$ASSAY_DATA_DIR/completions``) with
``assay score`` without and with ``--ray``, alternately, and prints the ratio of the rates. Rates
are of judging alone: a cluster starts once per command, in seconds. On a machine with other load,
the ratio of CPU times says more. It counts the driver, the actor and all that they start as work.
What all of them use while nothing is judged is taken from the cores instead.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_AUTH_MODE", "disabled")

from assay import models
from assay.cluster import RaySite, open_cluster
from assay.cluster.connection import LOCAL, connect
from assay.cluster.engine import EngineAbout, EngineHost, EngineSettings
from assay.cluster.host import Answer, AnyItem, JudgePool, PoolFacts, PoolSettings
from assay.cluster.site import rare_collections
from assay.judging.stage import Judged, SampleStage
from assay.models import EngineFacts, Model
from assay.pipeline import EvalConfig, Sampling, ScoreConfig, evaluate, score
from assay.pipeline.site import THIS_MACHINE, Site
from assay.progress import Silent
from assay.runs import encode_judged
from assay.sandbox import PAUSE
from assay.types import Capabilities, Completion, Program, Request, Verdict
from assay.work.machine import usable_cores

PROBLEMS = 20  # of the benchmark mini
CHARACTERS_PER_TOKEN = 4
WARM_UP = 0.2  # of the samples
BACKGROUND_S = 15.0
DAEMONS = ("raylet", "gcs_server", "dashboard", "log_monitor", "monitor.py", "agent")
SAMPLES = "completions/humaneval_poe_ollama.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Speed:
    """Set how fast the simulated parts are; 0: as fast as they can."""

    length: int
    tokens_per_s: float
    judged_per_s: float


class Brake:
    """Let so many things happen per second."""

    def __init__(self, rate: float) -> None:
        self._rate, self._start, self._count = rate, time.monotonic(), 0.0

    def wait(self, amount: float = 1.0) -> None:
        if not self._rate:
            return
        self._count += amount
        ahead = self._start + self._count / self._rate - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)


class SimulatedModel:
    """Answer every request with a text of the same length."""

    def __init__(self, here: Model, speed: Speed) -> None:
        self.identity, self.thinks = here.identity, here.thinks
        self._speed = speed
        self._text = ("def f(x):\n    return x\n" * (speed.length // 20 + 1))[: speed.length]

    def gpu(self) -> str:
        return ""

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        brake = Brake(self._speed.tokens_per_s)
        tokens = self._speed.length // CHARACTERS_PER_TOKEN
        for request in requests:
            brake.wait(tokens)
            yield Completion(
                *request.key, self._text, "stop", 100, tokens, 12.5, request.seed, used_gpu=False
            )

    def describe(self) -> EngineFacts:
        return EngineFacts()

    @contextlib.contextmanager
    def keep_loaded(self) -> Iterator[Any]:
        yield "kept"

    def close(self) -> None: ...


def simulated_engine(speed: Speed) -> type[EngineHost]:
    """Return an actor class without an engine."""

    class SimulatedEngine(EngineHost):
        def open(self, settings: EngineSettings, files: Any) -> EngineAbout:  # noqa: ARG002
            here = models.open_model("default")
            self._model = SimulatedModel(here, speed)  # type: ignore[assignment]
            return EngineAbout("simulated", {})

    return SimulatedEngine


def simulated_pool(speed: Speed) -> type[JudgePool]:
    """Return an actor class without a sandbox."""

    class SimulatedPool(JudgePool):
        def open(self, settings: PoolSettings) -> PoolFacts:  # noqa: ARG002
            return PoolFacts(Capabilities("process", "simulated", "cpython 3.11.0"), 16)

        def run(self, stage: Any, items: Iterator[AnyItem | None], answer: Answer) -> None:
            brake = Brake(speed.judged_per_s)
            for item in items:
                if item is PAUSE:
                    continue
                brake.wait()
                if isinstance(stage, SampleStage):
                    key = item.context.problem.task_id, item.payload.sample
                    verdict = Verdict(*key, "pass", "passed", cpu_s=0.004, wall_s=0.005)
                    program = Program(item.payload.text, "fenced")
                    answer(item.tag, Judged(encode_judged(verdict, [program])))
                else:  # a reference
                    key = item.payload.task_id, item.payload.sample
                    answer(item.tag, Verdict(*key, "pass", "passed", cpu_s=0.004, wall_s=0.005))

        def release(self) -> None: ...

    return SimulatedPool


@dataclass(frozen=True, slots=True)
class Clock:
    """Hold the time, and the CPU time of this process: Python's threads, and all."""

    wall: float
    python: float
    whole: float


def read_clock() -> Clock:
    """Return the clocks. Threads that Python did not start are Ray's, and stay to the end."""
    ours = {str(thread.native_id) for thread in threading.enumerate()}
    ticks = os.sysconf("SC_CLK_TCK")
    of_ray = 0.0
    for task in Path("/proc/self/task").iterdir():
        if task.name not in ours:
            with contextlib.suppress(OSError):
                fields = (task / "stat").read_text().rpartition(")")[2].split()
                of_ray += (int(fields[11]) + int(fields[12])) / ticks
    whole = time.process_time()
    return Clock(time.monotonic(), whole - of_ray, whole)


class Stopwatch(Silent):
    """Note the clocks after the warm-up, and at the last verdict."""

    def __init__(self, total: int) -> None:
        self._warm, self._total, self._judged = int(total * WARM_UP), total, 0
        self.started: Clock | None = None
        self.ended: Clock | None = None

    def judged(self, verdict: Verdict, cached: bool) -> None:  # noqa: ARG002
        self._judged += 1
        if self._judged == self._warm:
            self.started = read_clock()
        elif self._judged == self._total:
            self.ended = read_clock()

    def between(self) -> tuple[int, Clock]:
        """Return the verdicts after the warm-up, and what they took."""
        assert self.started is not None
        assert self.ended is not None
        a, b = self.started, self.ended
        taken = Clock(b.wall - a.wall, b.python - a.python, b.whole - a.whole)
        return self._total - self._warm, taken


def saturate(nodes: int, samples: int, speed: Speed) -> None:
    """Run an evaluation of simulated parts, and print what the driver took."""
    total = samples * PROBLEMS
    with simulated_cluster(nodes, speed) as site, tempfile.TemporaryDirectory() as folder:
        watch = Stopwatch(total)
        config = EvalConfig(
            "mini", Path(folder), sampling=Sampling(samples, 0.8), no_cache=True, site=site
        )
        result = evaluate(config, watch)
        assert result.results.samples == total
    count, taken = watch.between()
    python, whole = 1e6 * taken.python / count, 1e6 * taken.whole / count
    capacity = min(1e6 / python, 2e6 / whole)
    print(
        f"{nodes} nodes, {total} samples of {speed.length} characters: "
        f"{count / taken.wall:,.0f} verdicts/s; driver {python:.0f} us of Python and "
        f"{whole - python:.0f} us of Ray per verdict; 2 cores carry {capacity:,.0f} verdicts/s"
    )


@contextlib.contextmanager
def simulated_cluster(nodes: int, speed: Speed) -> Iterator[RaySite]:
    from assay.cluster.connection import import_ray

    import_ray()
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(nodes):
        cluster.add_node(num_cpus=1)
    try:
        with connect(cluster.address) as ray, rare_collections():
            site = RaySite(ray)
            site.pool, site.engine = simulated_pool(speed), simulated_engine(speed)
            yield site
            site.close()
    finally:
        cluster.shutdown()


def write_samples(path: Path, count: int) -> Path:
    """Write recorded completions, repeated as often as needed."""
    data = Path(os.environ["ASSAY_DATA_DIR"], SAMPLES)
    with gzip.open(data, "rt") as lines:
        records = [json.loads(line) for line in lines]
    by_model: dict[str, list[Any]] = {}
    for record in records:
        by_model.setdefault(record["model"], []).append(record)
    whole = [r for group in by_model.values() if len(group) == 164 for r in group]
    chosen = [whole[n % len(whole)] for n in range(count)]
    with path.open("w") as file:
        for one in chosen:
            file.write(json.dumps({"task_id": one["task_id"], "solution": one["raw"]}) + "\n")
    return path


@dataclass(frozen=True, slots=True)
class Cost:
    """Hold the CPU time of this process and all that it started: work, and Ray's own processes."""

    wall: float
    work: float
    daemons: float


def read_cost() -> Cost:
    """Return the CPU time so far. That of ended processes is in the one that waited for them."""
    ticks = os.sysconf("SC_CLK_TCK")
    work = daemons = 0.0
    # Actors and what they start are work. The other processes of Ray run all the time.
    pending = [(os.getpid(), True)]
    while pending:
        pid, is_work = pending.pop()
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_text()
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            spent = sum(map(int, fields[11:15])) / ticks
            if any(name in command for name in DAEMONS):
                is_work = False
            elif command.startswith("ray::"):
                is_work = True
            if is_work:
                work += spent
            else:
                daemons += spent
            for task in Path(f"/proc/{pid}/task").iterdir():
                children = (task / "children").read_text().split()
                pending += [(int(child), is_work) for child in children]
    return Cost(time.monotonic(), work, daemons)


def judge_once(site: Site, samples: Path, count: int) -> tuple[float, Cost]:
    """Return the programs that ``assay score`` judges per second, and what all of it took."""
    before = read_cost()
    with tempfile.TemporaryDirectory() as folder:
        watch = Stopwatch(count)
        config = ScoreConfig(
            "humaneval", Path(folder), samples_file=str(samples), no_cache=True, partial=True,
            site=site, time_limit=2.0,
        )  # fmt: skip
        score(config, watch)
    after = read_cost()
    judged, taken = watch.between()
    cost = Cost(after.wall - before.wall, after.work - before.work, after.daemons - before.daemons)
    return judged / taken.wall, cost


def measure_background() -> tuple[float, float]:
    """Return the cores that are used while nothing is judged: by our processes, and by Ray's."""
    before = read_cost()
    time.sleep(BACKGROUND_S)
    after = read_cost()
    seconds = after.wall - before.wall
    return (after.work - before.work) / seconds, (after.daemons - before.daemons) / seconds


def compare_overhead(programs: int, rounds: int) -> None:
    """Print the rate and the CPU time with Ray on one node, as shares of those without it."""
    rates, costs = [], []
    cores = usable_cores()
    with tempfile.TemporaryDirectory() as folder, open_cluster(LOCAL) as site:
        samples = write_samples(Path(folder, "samples.jsonl"), programs)
        judge_once(site, samples, programs // 4)  # starts the actor
        ours, of_ray = measure_background()
        print(f"background: {ours:.3f} cores by our processes, {of_ray:.3f} by Ray's", flush=True)
        for number in range(rounds):
            alone, without = judge_once(THIS_MACHINE, samples, programs)
            with_ray, cost = judge_once(site, samples, programs)
            spent = [one.work - ours * one.wall for one in (without, cost)]
            rates.append(with_ray / alone)
            # How far the work goes, and what the background leaves of the cores.
            costs.append(spent[0] / spent[1] * (cores - ours - of_ray) / cores)
            print(
                f"round {number + 1}: {alone:.0f}/s and {1000 * spent[0] / programs:.1f} CPU-ms "
                f"per sample alone, {with_ray:.0f}/s and {1000 * spent[1] / programs:.1f} with Ray",
                flush=True,
            )
    print(
        f"Ray on one node: {statistics.median(rates):.2f} of the rate without it; "
        f"{statistics.median(costs):.2f} by CPU time"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--length", type=int, default=400)
    parser.add_argument("--tokens-per-s", type=float, default=0.0)
    parser.add_argument("--judged-per-s", type=float, default=0.0)
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--programs", type=int, default=1312)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.overhead:
        compare_overhead(given.programs, given.rounds)
    else:
        simulated = Speed(given.length, given.tokens_per_s, given.judged_per_s)
        saturate(given.nodes, given.samples, simulated)
