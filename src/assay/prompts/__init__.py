"""Build prompts by strategy: from a problem to what a model is sent. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import UsageError
from assay.registry import Registry
from assay.types import Strategy

if TYPE_CHECKING:
    from assay.types import Benchmark

__all__ = ["Strategy", "check_strategy_name", "find_strategy", "list_strategies", "strategies"]

STANDARD = "standard"
OWN = ("upstream", "upstream-cot")  # as a benchmark's authors ask; no general strategy
strategies: Registry[Strategy] = Registry("prompt strategy", "assay.prompts")


def check_strategy_name(name: str) -> str:
    """Return the name. Raise UsageError if it is not that of any strategy."""
    return name if name in OWN else strategies.get(name).name


def find_strategy(name: str, benchmark: Benchmark) -> Strategy:
    """Return the strategy for a benchmark, which may have its own of that name."""
    check_strategy_name(name)
    if name in benchmark.strategies:
        return benchmark.strategies[name]
    known = list_strategies(benchmark)
    if name not in known:
        raise UsageError(
            f"{benchmark.name}: has no prompt for the strategy '{name}'. Choose {', '.join(known)}."
        )
    return strategies.get(name)


def list_strategies(benchmark: Benchmark) -> list[str]:
    """Return the strategies that fit a benchmark, the standard one first."""
    general = [] if benchmark.only_own_strategies else strategies.names()
    return sorted({*benchmark.strategies, *general}, key=lambda name: (name != STANDARD, name))
