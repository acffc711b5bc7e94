"""Extract a program from a model's text. Pure functions, one file per kind of rule."""

from __future__ import annotations

import itertools
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.extract.python import defines, definition
from assay.extract.rules.continuation import continued, goes_beyond
from assay.extract.rules.demo import cut_demo
from assay.extract.rules.fences import Block, fenced_blocks
from assay.extract.rules.hints import with_hints
from assay.extract.rules.joining import with_helpers
from assay.extract.rules.markers import with_line_breaks, without_marks
from assay.extract.rules.method import with_function
from assay.extract.rules.repetition import is_only_begun, without_repetition
from assay.extract.rules.repl import typed_in
from assay.extract.rules.salvage import valid_prefix
from assay.extract.rules.talk import bare_code, before_talk, has_turns
from assay.extract.rules.thinking import without_thinking
from assay.extract.rules.typeset import as_typed
from assay.types import Program

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm


# Part of the protocol: raise it whenever any text may now give another program.
VERSION = 4


NO_CODE = Program("", "none")


WHOLE = "whole"  # the name of no rule


UNCUT = "uncut"  # in place of "demo": the program with a demonstration that was cut in doubt


FENCE = re.compile("```|~~~")


RETURNS = re.compile(r"^return\b", re.M)


RULES = {
    "thinking": "reasoning before the answer",
    "marks": "markers of a chat template, and everything after them",
    "escaped": "line breaks written as text",
    "fenced": "everything outside the code block that defines the entry point",
    "unclosed": "the same, for a block that is cut off by the end of the text",
    "bare": "text around code that has no fences",
    "repl": "prompts and output of an interactive session",
    "typeset": "typographic spaces, quotes and signs",
    "body": "a function's body, appended to the prompt",
    "indented": "indentation common to all lines",
    "salvaged": "everything after the longest part that is valid Python",
    "method": "a method, turned into a function",
    "joined": "code blocks with helpers, added before the code",
    "repeated": "further definitions of the entry point",
    "demo": "code after the function that neither it nor the tests need",
    "hints": "missing imports from typing",
}


@dataclass(frozen=True, slots=True)
class Step:
    """Hold what one rule made of a text."""

    rule: str
    before: str
    after: str
    uncut: str | None = None  # what it may also be, where the rule is in doubt


def extract(
    text: str, problem: Problem, form: PromptForm, without: frozenset[str] = frozenset()
) -> Program:
    """Return the program in ``text`` that defines the problem's entry point, or ``NO_CODE``.

    ``without`` leaves rules out, to show what they contribute.
    """
    return program(text, explained(text, problem, form, without))


def program(text: str, steps: list[Step] | None) -> Program:
    """Return the program that the steps of ``explained`` lead to."""
    if steps is None:
        return NO_CODE
    return Program(steps[-1].after if steps else text, "+".join(s.rule for s in steps) or WHOLE)


def explained(
    text: str, problem: Problem, form: PromptForm, without: frozenset[str] = frozenset()
) -> list[Step] | None:
    """Return the rules that lead from the text to the program, in order, or None without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model's odd escapes are nobody's business here
        return _Extraction(problem, form, without).steps(text)


def alternative(
    text: str, steps: list[Step] | None, problem: Problem, without: frozenset[str] = frozenset()
) -> Program | None:
    """Return the program with its demonstration, if the steps have cut that off in doubt.

    It is a whole program as well. It is needed only if the first one fails.
    """
    for number, step in enumerate(steps or ()):
        if steps and step.uncut is not None:
            again = [*steps[:number], Step(UNCUT, step.before, step.uncut)]
            _Extraction(problem, "chat", without).finish(again, text)
            return program(text, again)
    return None


class _Extraction:
    def __init__(self, problem: Problem, form: PromptForm, without: frozenset[str]) -> None:
        self._problem, self._form = problem, form
        self._without = without.union(problem.without_rules)
        self._name = problem.tests.entry_point

    def steps(self, text: str) -> list[Step] | None:
        steps: list[Step] = []
        if not self._is_program(text):
            self._apply("thinking", without_thinking, steps, text)
            self._apply("marks", without_marks, steps, text)
            self._apply("escaped", with_line_breaks, steps, text)
            prepared = steps[-1].after if steps else text
            if not (steps and self._is_program(prepared)):
                found = self._find(prepared)
                if found is None:
                    return None
                steps += [step for step in found if step.before.strip() != step.after.strip()]
                if found[0].rule in ("fenced", "unclosed"):
                    blocks = [block.code for block in fenced_blocks(prepared)]
                    self._apply("joined", lambda code: self._joined(code, blocks), steps, text)
        self._apply("repeated", lambda code: without_repetition(code, self._name), steps, text)
        self._cut_demo(steps, text)
        self.finish(steps, text)
        return steps

    def finish(self, steps: list[Step], text: str) -> None:
        """Apply the rules that come after any cut."""
        preamble = self._problem.tests.preamble
        self._apply("hints", lambda code: with_hints(code, preamble), steps, text)

    def _cut_demo(self, steps: list[Step], text: str) -> None:
        if "demo" in self._without:
            return
        before = steps[-1].after if steps else text
        cut = cut_demo(before, self._problem.tests)
        if cut.code != before:
            steps.append(Step("demo", before, cut.code, cut.uncut))

    def _apply(self, rule: str, change: Callable[[str], str], steps: list[Step], text: str) -> None:
        before = steps[-1].after if steps else text
        if rule not in self._without and (after := change(before)) != before:
            steps.append(Step(rule, before, after))

    def _joined(self, code: str, blocks: list[str]) -> str:
        return with_helpers(code, blocks, self._name, self._problem.tests.preamble)

    def _find(self, text: str) -> list[Step] | None:
        """Return the first steps to Python code that defines the name.

        Otherwise return steps to code that only starts to define it, or that looks like an attempt.
        """
        begun: list[Step] = []
        hopeless: list[Step] = []
        several = len(definition(self._name).findall(text)) > 1
        for source in self._sources(text):
            steps = [step for step in source if step.rule not in self._without]
            for way in self._ways(steps):
                if self._is_answer(way[0].rule, way[-1].after):
                    if not several or not is_only_begun(way[-1].after, self._name):
                        return way
                    begun = begun or way
            tried = (step for step in steps if definition(self._name).search(step.after))
            hopeless = hopeless or list(itertools.islice(tried, 1))
        return begun or hopeless or None

    def _ways(self, steps: list[Step]) -> Iterator[list[Step]]:
        """Yield the steps as they are, then with fixes."""
        yield from ([step] for step in steps)
        yield from ([step, fixed] for step in steps for fixed in self._fix(step.after))

    def _is_answer(self, source: str, code: str) -> bool:
        if source == "body":
            return goes_beyond(code, self._problem.prompt, self._name) and not has_turns(code)
        return self._is_program(code)

    def _sources(self, text: str) -> Iterator[list[Step]]:
        """Yield the places where the code may be, the likeliest first, each in several forms."""
        if self._form == "text" and _goes_on(text):
            yield self._continue_prompt(text, self._body(text))
        # Some prompts open a code block for the model, so its first fence closes that block.
        begun = definition(self._name).search(FENCE.split(text, maxsplit=1)[0])
        blocks = fenced_blocks(text)
        if not begun:
            yield self._fenced(text, blocks)
        yield [Step("bare", text, code) for code in bare_code(text, self._name)]
        if begun:
            yield self._fenced(text, blocks)
        if ">>>" in text and (typed := typed_in(text)):
            yield [Step("repl", text, typed)]
        for block in blocks:
            if _is_body(block.code):
                yield self._continue_prompt(text, block.code)
        if self._form == "text" and not blocks:
            yield self._continue_prompt(text, self._body(text))

    def _fenced(self, text: str, blocks: list[Block]) -> list[Step]:
        return [
            Step("fenced" if block.closed else "unclosed", text, block.code)
            for block in blocks
            if self._name in block.code
        ]

    def _continue_prompt(self, text: str, body: str) -> list[Step]:
        return [Step("body", text, code) for code in continued(self._problem.prompt, body)]

    def _fix(self, code: str) -> Iterator[Step]:
        name = self._name
        changes: dict[str, Callable[[], str]] = {
            "indented": lambda: textwrap.dedent(code),
            "repl": lambda: typed_in(code),
            "typeset": lambda: as_typed(code),
            "bare": lambda: before_talk(code),
            "salvaged": lambda: valid_prefix(code, name),
            "method": lambda: with_function(code, name),
        }
        for rule, change in changes.items():
            if rule not in self._without and (changed := change()) not in ("", code):
                yield Step(rule, code, changed)

    def _body(self, text: str) -> str:
        """Return the text up to where a base model begins the same function again."""
        again = definition(self._name).search(text)
        return text[: again.start()] if again and text[: again.start()].strip() else text

    def _is_program(self, text: str) -> bool:
        return defines(text, self._name) and not has_turns(text)


def _goes_on(text: str) -> bool:
    """Return whether a text begins inside a function: indented, perhaps after empty lines."""
    return text.lstrip("\n")[:1] in (" ", "\t")


def _is_body(code: str) -> bool:
    return _goes_on(code) or RETURNS.search(code) is not None
