"""Show two solved problems of assay's before the question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.prompts import Strategy, strategies
from assay.prompts._asking import ANSWER, COMPLETE, EXAMPLES, after_examples, question, system
from assay.types import Message, Prompt

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm


def build(problem: Problem, form: PromptForm) -> Prompt:
    if form == "text":
        return after_examples(problem, lambda example: example.plain_solution)
    turns = []
    for example in EXAMPLES:
        task = f"{COMPLETE} {ANSWER}\n\n```python\n{example.prompt.strip()}\n```"
        answer = f"```python\n{example.plain_solution}```"
        turns += [Message("user", task), Message("assistant", answer)]
    return Prompt(messages=(*system(problem), *turns, Message("user", question(problem))))


strategies.register("few-shot")(Strategy("few-shot", 1, build))
