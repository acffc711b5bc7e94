"""Build prompts by strategy: from a problem to what a model is sent. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import UsageError
from assay.registry import Registry
from assay.types import Strategy

if TYPE_CHECKING:
    from assay.types import Benchmark, Prompt

__all__ = [
    "Strategy", "check_strategy_name", "find_strategy", "list_strategies", "name_parts",
    "strategies",
]  # fmt: skip

STANDARD = "standard"
DEFAULT_STRATEGY = "default"  # that of the benchmark
OWN = ("upstream", "upstream-cot")  # as a benchmark's authors ask; no general strategy
strategies: Registry[Strategy] = Registry("prompt strategy", "assay.prompts")


def check_strategy_name(name: str) -> str:
    """Return the name. Raise UsageError if it is not that of any strategy."""
    return name if name in (DEFAULT_STRATEGY, *OWN) else strategies.get(name).name


def find_strategy(name: str, benchmark: Benchmark) -> Strategy:
    """Return the strategy for a benchmark, which may have its own of that name."""
    check_strategy_name(name)
    if name == DEFAULT_STRATEGY:
        name = benchmark.default_strategy
    if name in benchmark.strategies:
        return benchmark.strategies[name]
    known = list_strategies(benchmark)
    if name not in known:
        raise UsageError(
            f"{benchmark.name}: has no prompt for the strategy '{name}'. Choose {', '.join(known)}."
        )
    return strategies.get(name)


def list_strategies(benchmark: Benchmark) -> list[str]:
    """Return the strategies that fit a benchmark, its default first."""
    general = [] if benchmark.only_own_strategies else strategies.names()
    first = benchmark.default_strategy
    return sorted({*benchmark.strategies, *general}, key=lambda name: (name != first, name))


def name_parts(prompt: Prompt) -> list[tuple[str, str]]:
    """Return the texts that a model is sent, each with its role or its place."""
    if prompt.suffix is not None:
        return [("prefix", prompt.text), ("suffix", prompt.suffix)]
    if not prompt.messages:
        return [("text", prompt.text)]
    prefill = [("assistant, prefilled", prompt.prefill)] if prompt.prefill else []
    return [*((message.role, message.content) for message in prompt.messages), *prefill]
