"""Ask as EvalPlus and BigCodeBench do: a chat model continues an answer with an open code block.

The texts and stop words are those of EvalPlus 0.3.1 and BigCodeBench 0.2.3 (Apache licence 2.0),
whose wrappers are the same. A base model continues the problem itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.types import Message, Prompt, Strategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.types import Problem, PromptForm

VERSION = 1
INSTRUCTION = (
    "Please provide a self-contained Python script that solves the following problem in a markdown "
    "code block:"
)
RESPONSE = (
    "Below is a Python script with a self-contained function that solves the problem and passes "
    "corresponding tests:"
)
PREFILL = f"{RESPONSE}\n```python\n"
# All models' marks of the end are texts here: some write them letter by letter.
STOP = ("<|endoftext|>", "<|endofmask|>", "</s>", "\nif __name__", "\ndef main(", "\nprint(")
CHAT_STOP = (*STOP, "\n```\n")
FUNCTION_STOP = ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert ")


def fence(problem: Problem) -> str:
    """Return the problem in a code block."""
    return f"```\n{problem.prompt.strip()}\n```"


def build_upstream(
    base: Callable[[Problem], Prompt], show: Callable[[Problem], str] = fence
) -> dict[str, Strategy]:
    """Return the strategy ``upstream``: ``show`` is the problem in a chat, ``base`` without one."""

    def build(problem: Problem, form: PromptForm) -> Prompt:
        if form == "text":
            return base(problem)
        question = Message("user", f"{INSTRUCTION}\n{show(problem)}\n")
        return Prompt((question,), stop=CHAT_STOP, prefill=PREFILL)

    return {"upstream": Strategy("upstream", VERSION, build)}


def _continue_before(*stop: str) -> Callable[[Problem], Prompt]:
    """Return how EvalPlus lets a base model continue a problem until one of these texts."""
    return lambda problem: Prompt(text=f"{problem.prompt.strip()}\n", stop=STOP + stop)


FUNCTIONS = build_upstream(_continue_before(*FUNCTION_STOP))
DOCSTRINGS = build_upstream(_continue_before('\n"""', "\nassert"))
