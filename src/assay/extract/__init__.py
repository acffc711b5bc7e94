"""From a model's text to a program. Pure functions, one file per kind of rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.extract.chat import code_region
from assay.extract.code import defines, is_program
from assay.extract.fences import fenced_blocks
from assay.types import Program

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm

__all__ = ["VERSION", "extract"]

# Part of the protocol: raise it whenever any text may now give another program.
VERSION = 1

NO_CODE = Program("", "none")


def extract(text: str, problem: Problem, form: PromptForm) -> Program:
    """The program in ``text`` that defines the problem's entry point, or ``NO_CODE``."""
    name = problem.tests.entry_point
    if is_program(text, name):
        return Program(text, "whole")
    blocks = fenced_blocks(text)
    for block in blocks:
        if defines(block.code, name):
            return Program(block.code, "fenced" if block.closed else "fenced-unclosed")
    region = code_region(text, name)
    if not blocks and defines(region, name):
        return Program(region, "bare")
    # A base model goes on from the prompt, perhaps until it closes a fence it never opened.
    body = text.split("\n```")[0]
    if form == "text" and body.strip():
        return Program(f"{problem.prompt}{body}\n", "body")
    return NO_CODE
