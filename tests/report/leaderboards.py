"""Results for tests of the leaderboard."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from assay.protocol import Protocol
from assay.runs import Environment, ParityGateOutcome, Result
from assay.runs.result import ConfigResult, ProblemResult, ScoreResult, Timing
from assay.runs.results import count_values
from assay.scoring import Coverage, Tally, estimates
from assay.types import ModelIdentity
from tests.test_protocol import BASE

PROBLEMS = 100


def make_result(
    model: str,
    passed: int = 50,
    benchmark: str = "humaneval",
    *,
    day: int = 1,
    judged: int = PROBLEMS,
    protocol: Protocol = BASE,
    weights: str = "",
    **changes: Any,
) -> Result:
    """Return a result of 100 problems. ``day`` orders the runs of a model."""
    run = f"{benchmark}_202601{day:02d}_000000"
    counts = [(f"T/{i}", 1 if i < judged else 0, 1 if i < passed else 0) for i in range(PROBLEMS)]
    tallies = [Tally(*count) for count in counts]
    reasons = [["passed" if c else "wrong-answer"] * n for _, n, c in counts]
    found = {estimate.k: estimate for estimate in estimates(tallies, ks=(1,))}
    whole = Coverage(PROBLEMS, PROBLEMS, judged, PROBLEMS, judged)
    result = Result(
        benchmark=benchmark,
        model=model,
        timestamp=f"2026-01-{day:02d}T00:00:00+00:00",
        publishable=judged == PROBLEMS,
        not_publishable=()
        if judged == PROBLEMS
        else (
            f"{judged} of 100 problems were judged",
            f"{PROBLEMS - judged} of 100 samples have no verdict",
        ),
        coverage=whole,
        config=ConfigResult(
            protocol.decoding, protocol.asking, "", protocol.n_samples, protocol.prompt_strategy
        ),
        results=ScoreResult(
            PROBLEMS,
            judged,
            passed,
            judged,
            passed,
            0,
            0,
            0,
            found,
            integrity={"separated": judged},
            reasons=count_values(chain(*reasons)),
        ),
        problems=tuple(
            ProblemResult(*count, count_values(why))
            for count, why in zip(counts, reasons, strict=True)
        ),
        protocol=replace(protocol, benchmark=benchmark).to_recorded(),
        model_identity=ModelIdentity(model, "gguf", weights or f"weights of {model}", "chat"),
        environment=Environment(parity_gate=ParityGateOutcome("passed")),
        timing=Timing(tokens_generated=1000, inference_s=10.0),
        run=run,
        path=Path(f"{run}.json"),
    )
    return replace(result, **changes)
