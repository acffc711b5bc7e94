"""The plain question: complete this function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.prompts import Strategy, strategies
from assay.types import Message, Prompt

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm

# Where a base model has finished the function and starts something else.
STOP = ("\ndef ", "\nclass ", "\nif __name__", "\nprint(", "\nassert ", "\n#", "\n```")

INSTRUCTION = (
    "Complete the following Python function. "
    "Answer with the whole function in one Python code block."
)


def build(problem: Problem, form: PromptForm) -> Prompt:
    if form == "text":
        return Prompt(text=problem.prompt, stop=STOP)
    question = f"{INSTRUCTION}\n\n```python\n{problem.prompt.strip()}\n```"
    return Prompt(messages=(Message("user", question),))


strategies.register("standard")(Strategy("standard", 1, build))
