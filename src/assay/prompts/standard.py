"""The plain question: complete this function, or whatever the problem asks in words."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING

from assay.prompts import Strategy, strategies
from assay.types import Message, Prompt

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm

# Where a base model has finished the function and starts something else.
STOP = ("\ndef ", "\nclass ", "\nif __name__", "\nprint(", "\nassert ", "\n#", "\n```")

COMPLETE = "Complete the following Python function."
WRITE = "Write the Python function that is described here."
ANSWER = "Answer with the whole function in one Python code block."


def build(problem: Problem, form: PromptForm) -> Prompt:
    if form == "text":
        return Prompt(text=problem.prompt, stop=STOP)
    question = problem.prompt.strip()
    if _is_code(problem.prompt):
        begun = f"def {problem.tests.entry_point}(" in question
        question = f"{COMPLETE if begun else WRITE} {ANSWER}\n\n```python\n{question}\n```"
    return Prompt(messages=(Message("user", question),))


def _is_code(prompt: str) -> bool:
    """Instructions in words say themselves what is wanted."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in docstrings
            ast.parse(prompt)
    except SyntaxError:
        return False
    return True


strategies.register("standard")(Strategy("standard", 1, build))
