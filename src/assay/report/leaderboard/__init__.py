"""Put the results of many models on many benchmarks side by side."""

from assay.report.leaderboard.baselines import parse_baselines
from assay.report.leaderboard.board import (
    Baseline,
    Cell,
    Leaderboard,
    LeaderboardBlock,
    ModelFacts,
    Row,
)
from assay.report.leaderboard.build import leaderboard
from assay.report.leaderboard.facts import find_sizes, parse_facts
from assay.report.leaderboard.rendering import render, renderers

__all__ = [
    "Baseline", "Cell", "Leaderboard", "LeaderboardBlock", "ModelFacts", "Row", "find_sizes",
    "leaderboard", "parse_baselines", "parse_facts", "render", "renderers",
]  # fmt: skip
