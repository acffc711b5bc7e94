"""Choose the best of N: one completion per problem, without the hidden tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from assay.registry import Registry
from assay.types import Cases, Problem, Sample, Tests, Verdict


class Conduct(IntEnum):
    """The ways in which a program answers calls, from worse to better."""

    FAILS = 0  # not all of them
    OPAQUE = 1  # with values that cannot be compared
    ANSWERS = 2  # with plain data


@dataclass(frozen=True, slots=True)
class ProbeResults:
    """The results of a program on its prompt's own examples."""

    right: int = 0  # examples with the result that the prompt shows
    conduct: Conduct = Conduct.FAILS
    behaviour: str = ""  # equal for programs that behave alike


@dataclass(frozen=True, slots=True)
class Probe:
    """Tests made of a prompt's own examples, and a function that reads their verdict."""

    tests: Tests
    read: Callable[[Verdict, Cases | None], ProbeResults]


@dataclass(frozen=True, slots=True)
class Candidate(Sample):
    """One completion, with the facts that a choice may use."""

    logprob: float | None = None
    seen: ProbeResults = ProbeResults()


@dataclass(frozen=True, slots=True)
class Method:
    """A way to choose. ``choose`` gets a problem's candidates in order, at least one."""

    choose: Callable[[Sequence[Candidate]], Candidate]
    probe: Callable[[Problem], Probe | None] | None = None  # the tests to execute first
    logprobs: bool = False  # whether the engine must report them


methods: Registry[Method] = Registry("selection method", "assay.selection")
