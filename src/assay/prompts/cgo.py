"""Composition: small helper functions first, then the function that puts them together.

A base model is shown two functions of ours that are made so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.prompts import Strategy, strategies
from assay.prompts._asking import EXAMPLES, STOP, question
from assay.types import Message, Prompt

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm

COMPOSE = """\
Break the task into small helper functions, each with one purpose and a name that says it. Write \
the helpers first, then the function that is asked for, which only puts them together. Give \
everything, imports and helpers included, in one Python code block."""


def build(problem: Problem, form: PromptForm) -> Prompt:
    if form == "text":
        shown = [example.prompt + example.composed for example in EXAMPLES]
        return Prompt(text="\n\n".join([*shown, problem.prompt]), stop=STOP)
    return Prompt(messages=(Message("user", question(problem, COMPOSE)),))


strategies.register("cgo")(Strategy("cgo", 1, build))
