"""Ask for two functions; the second calls the first.

The texts ``upstream`` and ``upstream-cot`` are those of CodeEval-Pro (MIT licence).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from assay.types import Message, Prompt, Strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from assay.types import Problem, PromptForm

STOP = ("\n```", "\nif __name__")
SYSTEM = (
    "You are an exceptionally intelligent coding assistant that consistently delivers accurate and "
    "reliable responses to user instructions."
)
BOTH = (
    "Write a solution of python file to the following problems, the solution of the second problem "
    "requires single or multiple calls to the first solution."
)
STEPWISE = "Let's think step by step.\n"
PLAIN = (
    "Write both of these Python functions. The second one calls the first. Answer with the whole "
    "file in one Python code block."
)
PLAN = (
    "Write both of these Python functions. The second one calls the first. Before you write code, "
    "plan in short steps how the first function works, and how the second uses it. Then give the "
    "whole file in one Python code block."
)


class Pair(NamedTuple):
    """Hold the beginnings of the two functions of a problem."""

    first: str
    second: str


def build_strategies(pairs: Mapping[str, Pair]) -> dict[str, Strategy]:
    """Return the strategies. A base model gets upstream's texts, which show both functions."""
    upstream, thought = _upstream(pairs, ""), _upstream(pairs, STEPWISE)
    builders = {
        "standard": _ours(pairs, PLAIN, upstream),
        "scot": _ours(pairs, PLAN, thought),
        "upstream": upstream,
        "upstream-cot": thought,
    }
    return {name: Strategy(name, 1, build) for name, build in builders.items()}


def _upstream(pairs: Mapping[str, Pair], before: str) -> Callable[[Problem, PromptForm], Prompt]:
    def build(problem: Problem, form: PromptForm) -> Prompt:
        first, second = pairs[problem.task_id]
        question = f"@@ Instruction\n{BOTH}\n```python\n{first}\n{second}\n```\n"
        if form == "text":
            answer = f"{before}```python\n{first}\n"
            return Prompt(text=f"{SYSTEM}\n{question}\n@@ Response\n{answer}", stop=STOP)
        question = f"\n{question}@@ Response\n{before}"
        return Prompt(messages=(Message("system", SYSTEM), Message("user", question)))

    return build


def _ours(
    pairs: Mapping[str, Pair], words: str, base: Callable[[Problem, PromptForm], Prompt]
) -> Callable[[Problem, PromptForm], Prompt]:
    def build(problem: Problem, form: PromptForm) -> Prompt:
        if form == "text":
            return base(problem, form)
        first, second = pairs[problem.task_id]
        question = f"{words}\n\n```python\n{first}\n\n\n{second}\n```"
        return Prompt(messages=(Message("user", question),))

    return build
