"""Extract a program from a model's text. Pure functions, one file per kind of rule."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.extract.answers import answer_kinds
from assay.extract.python import defines_surely, definition
from assay.extract.rule import Cut, ExtractionTask, Origin, extraction_rules, stages
from assay.extract.rules.repetition import is_as_prompted, is_only_begun
from assay.extract.rules.salvage import ends_inside
from assay.extract.rules.talk import has_turns
from assay.types import Program

if TYPE_CHECKING:
    from assay.types import Problem, PromptForm


# Part of the protocol: raise it whenever any text may now give another program.
VERSION = 5
NO_CODE = Program("", "none")
WHOLE = "whole"  # the name of no rule
UNCUT = "uncut"  # in place of "demo": the program with a demonstration that was cut in doubt


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one rule."""

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
    return program(text, explain_extraction(text, problem, form, without))


def program(text: str, steps: list[Step] | None) -> Program:
    """Return the program that the steps of ``explain_extraction`` lead to."""
    if steps is None:
        return NO_CODE
    return Program(steps[-1].after if steps else text, "+".join(s.rule for s in steps) or WHOLE)


def explain_extraction(
    text: str, problem: Problem, form: PromptForm, without: frozenset[str] = frozenset()
) -> list[Step] | None:
    """Return the rules that lead from the text to the program, in order, or None without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model's invalid escapes do not matter here
        if problem.tests.answer:
            return _answer_steps(
                text, problem.tests.answer.kind, ExtractionTask(problem.prompt, problem.tests, form)
            )
        if problem.only_rule:
            return _only_step(text, problem, form)
        return _Extraction(problem, form, without).steps(text)


def _answer_steps(text: str, kind: str, task: ExtractionTask) -> list[Step] | None:
    """Return the step to an answer that is not a program, or None without one."""
    answer = answer_kinds.get(kind).find(text, task)
    if answer is None:
        return None
    return [Step(answer.rule, text, answer.code)] if answer.code != text else []


def _only_step(text: str, problem: Problem, form: PromptForm) -> list[Step] | None:
    """Return the step of the only rule that a problem allows, or None if it finds nothing."""
    task = ExtractionTask(problem.begun or problem.prompt, problem.tests, form, problem.suffix)
    for place in extraction_rules.get(problem.only_rule).find:
        for first, *_ in filter(None, place.apply(text, task)):
            return [Step(first.rule, text, first.code)]
    return None


def alternative(
    text: str, steps: list[Step] | None, problem: Problem, without: frozenset[str] = frozenset()
) -> Program | None:
    """Return the program with its demonstration, if the steps have cut that off in doubt.

    It is a whole program as well. It is needed only if the first one fails.
    """
    for number, step in enumerate(steps or ()):
        if steps and step.uncut is not None:
            again = [*steps[:number], Step(UNCUT, step.before, step.uncut)]
            _Extraction(problem, "chat", without).finish(again, text, Origin(text), step.rule)
            return program(text, again)
    return None


class _Extraction:
    def __init__(self, problem: Problem, form: PromptForm, without: frozenset[str]) -> None:
        self._task = ExtractionTask(problem.begun or problem.prompt, problem.tests, form)
        self._stages = stages(without.union(problem.without_rules))

    def steps(self, text: str) -> list[Step] | None:
        steps: list[Step] = []
        origin = Origin(text)
        self._task.effort.spend(text)
        if not self._is_program(text):
            for rule, prepare in self._stages.prepare:
                before = _last(steps, text)
                _add(steps, rule, before, Cut(prepare(before)))
            prepared = _last(steps, text)
            if not (steps and self._is_program(prepared)):
                way = self._find(prepared)
                if way is None:
                    return None
                steps += [step for step in way if step.before.strip() != step.after.strip()]
                origin = Origin(prepared, way[0].rule)
        self.finish(steps, text, origin)
        return steps

    def finish(self, steps: list[Step], text: str, origin: Origin, after: str = "") -> None:
        """Apply the rules of the last stage: all of them, or those after one rule."""
        for rule, finish in self._stages.finish_after(after):
            before = _last(steps, text)
            _add(steps, rule, before, finish(before, self._task, origin))

    def _find(self, text: str) -> list[Step] | None:
        """Return the steps to the likeliest answer in the text.

        Otherwise return steps to code that only starts to define the entry point or may only use
        its name, or to code that looks like an attempt.
        """
        fallback: list[Step] = []
        hopeless: list[Step] = []
        defined = definition(self._task.name)
        count = len(defined.findall(text))
        for steps in self._places(text):
            unlike: list[Step] = []  # the first whose signature is not the prompt's
            for ways in self._ways(steps):
                for way in ways:
                    if not self._task.effort.spend(way[-1].after):
                        break
                    if not self._is_answer(way[0].rule, way[-1].after):
                        continue
                    if self._is_doubtful(way[-1].after, count):
                        fallback = fallback or way
                    elif unlike and ends_inside(way[-1].before, way[-1].after):
                        continue  # a part of a function does not go before a whole one
                    elif count < 2 or self._is_as_prompted(way):
                        return way
                    else:
                        unlike = unlike or way
            if unlike:
                return unlike
            tried = (step for step in steps if defined.search(step.after))
            hopeless = hopeless or list(itertools.islice(tried, 1))
            if self._task.effort.left <= 0:
                break
        return fallback or hopeless or None

    def _is_doubtful(self, code: str, count: int) -> bool:
        """Return whether one of ``count`` definitions in the text is likelier to be the answer."""
        if count > 1 and is_only_begun(code, self._task.name):
            return True
        return count > 0 and not defines_surely(code, self._task.name)

    def _is_as_prompted(self, way: list[Step]) -> bool:
        return is_as_prompted(way[-1].after, self._task, closed=way[0].rule == "fenced")

    def _places(self, text: str) -> Iterator[list[Step]]:
        """Yield the places where the code may be, the likeliest first, each in several forms."""
        for _, find in self._stages.find:
            for place in find(text, self._task):
                yield [
                    Step(one.rule, text, one.code)
                    for one in place
                    if one.rule not in self._stages.without
                ]

    def _ways(self, steps: list[Step]) -> Iterator[Iterator[list[Step]]]:
        """Yield all steps as they are, then all with fixes."""
        yield ([step] for step in steps)
        yield ([step, fixed] for step in steps for fixed in self._fix(step.after))

    def _fix(self, code: str) -> Iterator[Step]:
        for rule, fix in self._stages.fix:
            if (changed := fix(code, self._task)) not in ("", code):
                yield Step(rule, code, changed)

    def _is_answer(self, found_by: str, code: str) -> bool:
        accept = extraction_rules.get(found_by).accept
        if accept is not None:
            return accept(code, self._task) and not has_turns(code)
        return self._is_program(code)

    def _is_program(self, text: str) -> bool:
        return self._task.is_program(text) and not has_turns(text)


def _last(steps: list[Step], text: str) -> str:
    return steps[-1].after if steps else text


def _add(steps: list[Step], rule: str, before: str, cut: Cut) -> None:
    if cut.code != before:
        steps.append(Step(rule, before, cut.code, cut.uncut))
