"""Ask plainly: complete this function, or do what the problem says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.prompts import Strategy, strategies
from assay.prompts._asking import question, stop_words, system
from assay.types import Message, Prompt

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm


def build(problem: Problem, form: PromptForm) -> Prompt:
    if form == "text":
        return Prompt(text=problem.begun or problem.prompt, stop=stop_words(problem))
    return Prompt(messages=(*system(problem), Message("user", question(problem))))


strategies.register("standard")(Strategy("standard", 1, build))
