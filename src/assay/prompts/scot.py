"""Ask for a structured chain of thought: a plan of steps, branches and loops, then the code.

A base model is shown two functions of assay's that start with such a plan.
"""

from __future__ import annotations

from assay.prompts import Strategy, strategies
from assay.prompts._asking import in_style

PLAN = """\
Think before you write code. First give a short plan:
- Input and Output: what comes in, what goes out, in what form.
- numbered steps in plain words, using only sequence ("do this, then that"), branches ("if ...: \
... else: ...") and loops ("for every ...: ...").
Then write the code that follows this plan. Give the whole function in one Python code block."""

build = in_style(PLAN, lambda example: example.planned_solution)
strategies.register("scot")(Strategy("scot", 1, build))
