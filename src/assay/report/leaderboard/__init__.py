"""Put the results of many models on many benchmarks side by side."""

from assay.report.leaderboard.board import (
    Baseline,
    Cell,
    Leaderboard,
    LeaderboardBlock,
    ModelFacts,
    Row,
    renderers,
)
from assay.report.leaderboard.build import leaderboard
from assay.report.leaderboard.inputs import find_sizes, parse_baselines, parse_facts

__all__ = [
    "Baseline", "Cell", "Leaderboard", "LeaderboardBlock", "ModelFacts", "Row", "find_sizes",
    "leaderboard", "parse_baselines", "parse_facts", "renderers",
]  # fmt: skip
