"""Example data for every plot, with the long names, extremes and gaps that real data have."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from assay.report.plots import (
    Bar,
    Difference,
    Dot,
    Drawing,
    Forest,
    HeatMap,
    HeatRow,
    Histogram,
    HistogramGroup,
    Line,
    Point,
    Scatter,
    draw_bars,
    draw_divergence,
    draw_forest,
    draw_heat_map,
    draw_histogram,
    draw_history,
    draw_pass_curves,
    draw_scatter,
    draw_speed_curves,
)

NAMES = (
    "Qwen2.5-Coder-7B-Instruct-Q4_K_M", "Qwen2.5-Coder-7B-Instruct-Q8_0", "SmolLM2-135M-Instruct",
    "DeepSeek-Coder-V2-Lite-Instruct-distilled-checkpoint-000120000-Q4_0", "phi-4", "gpt-4o",
    "StarCoder2-15B", "CodeLlama-34B-Instruct", "Mistral-Small-24B", "Gemma-3-27B-it",
    "本地模型-7B", "Llama-3.3-70B-Instruct",
)  # fmt: skip
DECISIONS = ("equivalent", "better", "worse", "undecided")
START = 1_780_000_000.0


def forest(count: int = 6) -> Drawing:
    """Return differences of every decision."""
    source = random.Random(1)
    rows = []
    for number in range(count):
        value, half = source.uniform(-0.08, 0.06), source.uniform(0.012, 0.05)
        decision = DECISIONS[number % 4]
        rows.append(Difference(NAMES[number], value, value - half, value + half, decision))
    return draw_forest(Forest("Qwen2.5-Coder-7B-Instruct", tuple(rows), margin=0.02))


def pass_curves(count: int = 4) -> Drawing:
    """Return curves that lie close together."""
    curves = []
    for number in range(count):
        start = 0.3 + 0.06 * number
        estimates = []
        for k in (1, 2, 5, 10, 20, 100):
            value = 1 - (1 - start) * k**-0.35
            estimates.append(Point(k, value, value - 0.05, min(1.0, value + 0.05)))
        curves.append(Line(NAMES[number], tuple(estimates)))
    return draw_pass_curves(tuple(curves))


def bars() -> Drawing:
    """Return the reasons of verdicts."""
    return draw_bars(
            "Verdicts by reason",
            (
                Bar("passed", 731, "good"), Bar("wrong answer", 283, "bad"),
                Bar("exception", 96, "bad"), Bar("time limit", 21, "bad"),
                Bar("syntax error", 8, "bad"), Bar("sandbox failure", 1, "invalid"),
                Bar("no code in the completion", 0, "bad"),
            )
    )  # fmt: skip


def histogram() -> Drawing:
    """Return tokens of completions with a limit."""
    source = random.Random(2)
    good = tuple(float(min(512, int(source.lognormvariate(4.7, 0.5)))) for _ in range(700))
    bad = tuple(float(min(512, int(source.lognormvariate(5.2, 0.6)))) for _ in range(400))
    groups = (HistogramGroup("passed", good, "good"), HistogramGroup("failed", bad, "bad"))
    return draw_histogram(
        Histogram("Tokens per completion", "tokens", groups, limit=512, limit_label="max tokens")
    )


def log_histogram() -> Drawing:
    """Return CPU times on a logarithmic axis."""
    source = random.Random(3)
    times = tuple(source.lognormvariate(-3, 1.2) for _ in range(1140))
    return draw_histogram(
        Histogram("CPU time of programs", "CPU time, s", (HistogramGroup("", times),), is_log=True)
    )


def heat_map(problems: int = 1140, models: int = 12, samples: int = 1) -> Drawing:
    """Return a map of problems of graded difficulty."""
    source = random.Random(4)
    hardness = [source.gauss(0, 2) for _ in range(problems)]
    rows = []
    for number in range(models):
        skill = 1.5 - 0.35 * number
        shares: list[float | None] = []
        for hard in hardness:
            chance = 1 / (1 + math.exp(hard - skill))
            shares.append(sum(source.random() < chance for _ in range(samples)) / samples)
        shares[number] = None if number % 2 else -1.0
        rows.append(HeatRow(NAMES[number % len(NAMES)], tuple(shares)))
    return draw_heat_map(HeatMap(tuple(f"BigCodeBench/{n}" for n in range(problems)), tuple(rows)))


def small_heat_map() -> Drawing:
    """Return a map whose problems have names."""
    return heat_map(20, 4, 10)


def scatter() -> Drawing:
    """Return models by size, some of them close together."""
    sizes = (4.4, 8.1, 0.14, 9.0, 28.0, 60.0, 30.0, 67.0, 47.0, 54.0, 4.5, 140.0)
    scores = (0.81, 0.82, 0.12, 0.80, 0.83, 0.90, 0.46, 0.48, 0.79, 0.84, 0.78, 0.88)
    front = (0.14, 4.4, 8.1, 28, 54, 60)
    dots = tuple(
        Dot(name, size, score, score - 0.05, min(1, score + 0.05), best=size in front)
        for name, size, score in zip(NAMES, sizes, scores, strict=True)
    )  # fmt: skip
    return draw_scatter(Scatter("Quality by size", "size of the file, GB", "pass@1", dots))


def history() -> Drawing:
    """Return checkpoints of two trainings over weeks."""
    source = random.Random(5)
    tracks = []
    for number in range(3):
        moments, value = [], 0.35 + 0.1 * number
        for step in range(9 - number):
            value += source.uniform(-0.01, 0.04)
            stamp = START + 86_400 * 2.6 * step + 7_000 * number
            moments.append(Point(stamp, value, value - 0.06, value + 0.06, f"run {step}"))
        tracks.append(Line(NAMES[number], tuple(moments)))
    return draw_history(tuple(tracks), name="humaneval")


def speed_curves() -> Drawing:
    """Return the speed of two models."""
    batches = (1, 2, 4, 8, 16)
    slow = tuple(Point(n, 95 * n**0.6, 90 * n**0.6, 99 * n**0.6) for n in batches)
    fast = tuple(Point(n, 140 * n**0.75, 120 * n**0.75, 150 * n**0.75) for n in batches)
    return draw_speed_curves((Line("CPU, 2 cores", slow), Line("GPU", fast)))


def divergence() -> Drawing:
    """Return a curve with zeros and a peak."""
    source = random.Random(6)
    values = tuple(10 ** source.uniform(-7, -3) if n % 50 else 0.0 for n in range(1500))
    return draw_divergence("", values)


EXAMPLES: Mapping[str, Drawing] = {
    "forest": forest(),
    "pass_at_k": pass_curves(),
    "bars": bars(),
    "histogram": histogram(),
    "log_histogram": log_histogram(),
    "heat_map": heat_map(),
    "small_heat_map": small_heat_map(),
    "scatter": scatter(),
    "history": history(),
    "speed": speed_curves(),
    "divergence": divergence(),
}
