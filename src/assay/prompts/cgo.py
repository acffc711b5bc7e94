"""Ask for composition: small helper functions first, then the function that combines them.

A base model is shown two functions of assay's that are written so.
"""

from __future__ import annotations

from assay.prompts import Strategy, strategies
from assay.prompts._asking import in_style

COMPOSE = """\
Break the task into small helper functions, each with one purpose and a name that says it. Write \
the helpers first, then the function that is asked for, which only puts them together. Give \
everything, imports and helpers included, in one Python code block."""

build = in_style(COMPOSE, lambda example: example.composed_solution)
strategies.register("cgo")(Strategy("cgo", 1, build))
