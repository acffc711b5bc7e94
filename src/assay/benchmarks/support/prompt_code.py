"""Find code in a prompt besides the function to be written, and put words into code."""

from __future__ import annotations

import ast
import warnings


def preamble_of(prompt: str, entry_point: str) -> str:
    """Return the prompt's imports and helpers, without the unfinished function itself.

    They precede every program, as they do when a base model continues the prompt: the tests of
    HumanEval/32, 38 and 50 call such helpers, and signatures need the imports.
    """
    lines = prompt.splitlines(keepends=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in a benchmark's code
        module = ast.parse(prompt)
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines).strip("\n")


def as_docstring(words: str, code: str = "") -> str:
    """Return an instruction as a docstring, with code that a base model continues after it."""
    quoted = words.strip().replace("\\", "\\\\").replace('"""', "'''")
    return f'"""\n{quoted}\n"""\n\n{code}'
