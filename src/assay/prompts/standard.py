"""Ask plainly: complete this function, or do what the problem says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.prompts import Strategy, strategies
from assay.prompts._asking import STOP, question
from assay.types import Message, Prompt

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm


def build(problem: Problem, form: PromptForm) -> Prompt:
    if form == "text":
        return Prompt(text=problem.prompt, stop=STOP)
    return Prompt(messages=(Message("user", question(problem)),))


strategies.register("standard")(Strategy("standard", 1, build))
