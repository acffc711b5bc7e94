"""Measure how judging scales with its workers, and what it costs the coordinating process.

    python benchmarks/scaling.py [--programs 4920] [--rounds 3] [--workers 1 2 4 8 16] [--api]
                                 [--judges N] [--bare] [--confine]

Each row judges the same HumanEval samples without the verdict cache. Samples are recorded
completions of ``$ASSAY_DATA_DIR/completions`` if there are any, repeated as often as needed, and
otherwise reference solutions. Texts whose program runs for long are left out: they measure limits,
not overhead. Rows of a round follow each other, and efficiency is the median of the rounds' ratios
to the first row, per worker. CPU-ms per sample are those of this process alone (all its threads, no
children) while samples are judged. Rates leave out the start of the workers. ``--api`` judges
programs with ``assay.Judge`` in place of texts with ``assay score``. ``--judges`` sets how many
judge processes share the workers; 0 judges in this one. A single worker is several processes
and uses more than one core; ``--confine`` gives each row as many cores as it has
workers, and efficiency is then per core. ``--bare`` adds rows of bare fork servers,
which isolate nothing, and of processes that only compile the programs, each on a core of its own:
they start nothing and share nothing, so their efficiency is the most that a machine offers.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import assay
import sandbox as alone
from assay import benchmarks
from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.runs import RunReader
from assay.sandbox.kinds import process
from assay.types import Completion, Verdict
from assay.work.machine import usable_cores

SETS = ("humaneval_poe_ollama",)
LONG_S = 0.5
WARM_UP = 0.1  # of the samples: while they are judged, workers start


@dataclass(frozen=True, slots=True)
class Sample:
    """Hold a text to judge, of a task."""

    task_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """Hold what one count of workers reached."""

    rate: float  # samples per second
    cpu_ms: float  # of this process, per sample
    whole_s: float  # with the start


class Stopwatch(Silent):
    """Note the clocks when judging begins, after the warm-up, and at the last verdict."""

    def __init__(self, total: int) -> None:
        self._warm = int(total * WARM_UP)
        self._judged = 0
        self.started = self.warm = self.last = (0.0, 0.0)
        self.total = total

    def begin(self, total: int, verdicts: list[Verdict], missing: int) -> None:  # noqa: ARG002
        self.started = clocks()

    def completed(self, completion: Completion) -> None: ...

    def judged(self, verdict: Verdict, cached: bool) -> None:  # noqa: ARG002
        self._judged += 1
        if self._judged == self._warm:
            self.warm = clocks()
        elif self._judged == self.total:
            self.last = clocks()

    def row(self) -> Row:
        wall_s, cpu_s = (after - before for after, before in zip(self.last, self.warm, strict=True))
        count = self.total - self._warm
        return Row(count / wall_s, cpu_s / count * 1000, self.last[0] - self.started[0])


def clocks() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


def recorded() -> Iterator[Sample]:
    """Yield the texts of recorded completions; none where there are no such files."""
    folder = Path(os.environ.get("ASSAY_DATA_DIR", "."), "completions")
    for name in SETS:
        path = folder / f"{name}.jsonl.gz"
        if path.exists():
            with gzip.open(path, "rt") as lines:
                for record in map(json.loads, lines):
                    if record.get("raw"):
                        yield Sample(record["task_id"], record["raw"])


def references() -> list[Sample]:
    problems = assay.load_benchmark("humaneval").problems
    return [Sample(p.task_id, f"```python\n{p.reference}\n```\n") for p in problems]


def short_ones(samples: list[Sample], workers: int) -> list[Sample]:
    """Return the samples whose program ends soon, whatever its verdict."""
    with tempfile.TemporaryDirectory() as made:
        result = score(config(Path(made), samples, workers), Silent())
        verdicts = RunReader(result.folder).verdicts
    numbered = zip(numbers(samples), samples, strict=True)
    return [one for key, one in numbered if verdicts[key].wall_s < LONG_S]


def numbers(samples: list[Sample]) -> list[tuple[str, int]]:
    """Return the sample keys that ``score`` gives them."""
    counts: dict[str, int] = {}
    keys = []
    for one in samples:
        number = counts[one.task_id] = counts.get(one.task_id, -1) + 1
        keys.append((one.task_id, number))
    return keys


def config(folder: Path, samples: list[Sample], workers: int) -> ScoreConfig:
    path = folder / "samples.jsonl"
    lines = (json.dumps({"task_id": one.task_id, "solution": one.text}) for one in samples)
    path.write_text("".join(f"{line}\n" for line in lines))
    return ScoreConfig(
        "humaneval", folder / "results", samples_file=str(path), workers=workers, no_cache=True,
        partial=True,
    )  # fmt: skip


def judge_texts(samples: list[Sample], workers: int) -> Row:
    watch = Stopwatch(len(samples))
    with tempfile.TemporaryDirectory() as made:
        score(config(Path(made), samples, workers), watch)
    return watch.row()


def judge_programs(samples: list[Sample], workers: int) -> Row:
    pairs = [(one.task_id, one.text) for one in samples]
    watch = Stopwatch(len(samples))
    with assay.Judge("humaneval", workers=workers) as judge:
        watch.begin(len(samples), [], 0)
        for verdict in judge.stream(pairs):
            watch.judged(verdict, False)
    return watch.row()


def programs_of(samples: list[Sample]) -> list[Sample]:
    """Return references in place of texts: ``Judge`` takes whole programs."""
    found = {p.task_id: p.reference for p in assay.load_benchmark("humaneval").problems}
    return [Sample(one.task_id, found[one.task_id]) for one in samples]


def fork_bare(samples: list[Sample], workers: int) -> Row:
    """Judge in bare fork servers, one per worker. Each gets as many, so that its start is small."""
    work = alone.jobs(benchmarks.load("humaneval"), "shared")
    count = len(samples) // 2 * workers
    run = alone.bare_fork(list(itertools.islice(itertools.cycle(work), count)), workers)
    wall_s, cpu_s = clocks()
    run()
    wall_s, cpu_s = (now - then for now, then in zip(clocks(), (wall_s, cpu_s), strict=True))
    return Row(count / wall_s, cpu_s / count * 1000, wall_s)


def compile_alone(samples: list[Sample], workers: int) -> Row:
    """Compile programs in as many processes, each on its core. They have nothing to wait for."""
    texts = [p.reference for p in assay.load_benchmark("humaneval").problems]
    work = list(itertools.islice(itertools.cycle(texts), 2 * len(samples)))
    started, processes = clocks(), []
    for core in sorted(os.sched_getaffinity(0))[:workers]:
        processes.append(os.fork())
        if not processes[-1]:
            os.sched_setaffinity(0, {core})
            for text in work:
                compile(text, "program", "exec")
            os._exit(0)
    for process_id in processes:
        os.waitpid(process_id, 0)
    wall_s, cpu_s = (now - then for now, then in zip(clocks(), started, strict=True))
    count = len(work) * workers
    return Row(count / wall_s, cpu_s / count * 1000, wall_s)


@contextlib.contextmanager
def use_cores(count: int) -> Iterator[None]:
    """Run on this many of the cores, and start processes there."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def main() -> None:
    cores = usable_cores()
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=4920)
    parser.add_argument("--rounds", type=int, default=3)
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= cores]
    parser.add_argument("--workers", type=int, nargs="+", default=counts)
    parser.add_argument("--api", action="store_true")
    parser.add_argument("--judges", type=int, help="processes that share the workers")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--confine", action="store_true")
    asked = parser.parse_args()
    if asked.judges is not None:
        process.count_judges = lambda *_: asked.judges
    found = list(recorded())
    kind = "recorded completions" if found else "reference solutions"
    distinct = short_ones(found, cores) if found else references()
    samples = list(itertools.islice(itertools.cycle(distinct), asked.programs))
    if asked.api:
        samples, kind = programs_of(samples), "reference solutions"
    print(
        f"{len(samples)} samples, {kind} ({len(distinct)} different texts, "
        f"{len(found) - len(distinct) if found else 0} long ones left out), {cores} cores"
    )
    kinds = {"assay": judge_programs if asked.api else judge_texts}
    if asked.bare:
        kinds |= {"bare fork servers": fork_bare, "compiling only": compile_alone}
    measured: dict[str, dict[int, list[Row]]] = {kind: {} for kind in kinds}
    for _ in range(asked.rounds):
        for workers in asked.workers:
            for kind, measure in kinds.items():
                with use_cores(workers if asked.confine else cores):
                    measured[kind].setdefault(workers, []).append(measure(samples, workers))
    for kind, rows in measured.items():
        print(kind)
        show(rows)


def show(rows: dict[int, list[Row]]) -> None:
    first = asked_first = next(iter(rows))
    print(f"{'workers':>7}{'samples/s':>11}{'efficiency':>12}{'CPU-ms here':>13}{'whole run':>11}")
    for workers, measured in rows.items():
        ratios = [
            row.rate * asked_first / (base.rate * workers)
            for row, base in zip(measured, rows[first], strict=True)
        ]
        print(
            f"{workers:>7}{statistics.median(row.rate for row in measured):>11.0f}"
            f"{statistics.median(ratios):>11.0%} "
            f"{statistics.median(row.cpu_ms for row in measured):>12.3f}"
            f"{statistics.median(row.whole_s for row in measured):>10.1f} s"
        )


if __name__ == "__main__":
    main()
