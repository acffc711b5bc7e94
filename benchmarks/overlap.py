"""Compare generating and judging together with the longer of the two alone.

    python benchmarks/overlap.py [--samples 20] [--rounds 1] [--workers 2]

Replays recorded HumanEval completions of several models (``$ASSAY_DATA_DIR/completions``), as many
per problem as ``--samples`` says, through the whole pipeline. The model is a recording that takes
the same time for every completion and none of the CPU: first such that generating all takes as long
as judging all, then twice as long, then half. It does not catch up after it was held back, as no
engine does. The aim is a ratio of 1.1 at most.

Some recorded programs run into their limit of ten CPU seconds. What such a program needs can only
begin when it was generated, so that a run should be much longer than that.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from assay.cli._progress import ProgressDisplay
from assay.models import Backend, EngineOptions, Model, backends
from assay.models.engines.replay.replay_model import ReplayModel
from assay.pipeline import EvalConfig, Sampling, evaluate
from assay.types import Completion, Decoding, Prompt, Request
from parity import Samples, recorded_samples

TIMES = (1.0, 2.0, 0.5)  # generating takes, of what judging takes


class PacedModel(ReplayModel):
    """A recording that takes ``pause`` seconds for each completion."""

    def __init__(self, reference: str, pause: float) -> None:
        super().__init__(reference)
        self._pause = pause

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for completion in super().generate(requests):
            time.sleep(self._pause)
            yield completion


class Clock(ProgressDisplay):
    """Times a run from its beginning, when all is prepared, to its last verdict."""

    def __init__(self) -> None:
        super().__init__("overlap", quiet=True)
        self.started = self.ended = 0.0

    def begin(self, *_: object) -> None:
        self.started = time.monotonic()

    def judged(self, *_: object) -> None:
        self.ended = time.monotonic()


def open_paced(reference: str, _: EngineOptions) -> Model:
    path, _, pause = reference.rpartition("@")
    return PacedModel(path, float(pause))


def records(samples: int) -> list[dict[str, Any]]:
    """So many completions of each problem, from as many models as that takes."""
    counts: Counter[str] = Counter()
    found = []
    for one in recorded_samples(Path(os.environ["ASSAY_DATA_DIR"], "completions")):
        for record in one.records if one.benchmark == "humaneval" else ():
            if counts[record["task_id"]] < samples:
                counts[record["task_id"]] += 1
                found.append(record)
    if set(counts.values()) != {samples}:
        raise SystemExit("there are fewer completions of some problems: lower --samples")
    return found


def together(path: Path, pause: float, samples: int, workers: int) -> float:
    """Seconds that the run takes whose completions take ``pause`` each."""
    with tempfile.TemporaryDirectory() as folder, Clock() as clock:
        config = EvalConfig(
            "humaneval",
            Path(folder),
            model=f"paced:{path}@{pause}",
            sampling=Sampling(samples, temperature=0.8),
            workers=workers,
            no_cache=True,
        )
        evaluate(config, clock)
        return clock.ended - clock.started


def generating(path: Path, pause: float) -> float:
    """Seconds for the completions alone."""
    model = PacedModel(str(path), pause)
    requests = [Request(*key, Prompt(), Decoding(), 0) for key in model.list_recorded()]
    started = time.monotonic()
    for _ in model.generate(requests):
        pass
    return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    backends.register("paced")(Backend(open_paced, lambda _: False))
    found = records(asked.samples)
    with tempfile.TemporaryDirectory() as folder:
        path = Samples("", "humaneval", found, []).write(Path(folder))
        for _ in range(asked.rounds):
            judge = together(path, 0.0, asked.samples, asked.workers)
            for times in TIMES:
                pause = times * judge / len(found)
                generate = generating(path, pause)
                both = together(path, pause, asked.samples, asked.workers)
                print(
                    f"{len(found)} completions: judging alone {judge:.1f} s, generating alone "
                    f"{generate:.1f} s, together {both:.1f} s: "
                    f"{both / max(judge, generate):.2f} times the longer",
                    flush=True,
                )


if __name__ == "__main__":
    main()
