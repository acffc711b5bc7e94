"""Best of N: ways to choose one completion of a problem without its hidden tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from assay.registry import Registry
from assay.types import Cases, Problem, Sample, Tests, Verdict


class Conduct(IntEnum):
    """How a program answers calls, from worse to better."""

    FAILS = 0  # not all of them
    OPAQUE = 1  # with something that can be compared with nothing
    ANSWERS = 2  # with plain data


@dataclass(frozen=True, slots=True)
class Seen:
    """What a program did with its prompt's own examples."""

    right: int = 0  # examples that came out as the prompt shows them
    conduct: Conduct = Conduct.FAILS
    behaviour: str = ""  # equal for programs that behave alike


@dataclass(frozen=True, slots=True)
class Probe:
    """Tests that are made of a prompt's own examples, and how to read what they told."""

    tests: Tests
    read: Callable[[Verdict, Cases | None], Seen]


@dataclass(frozen=True, slots=True)
class Candidate(Sample):
    """One completion, as far as a choice may see it."""

    logprob: float | None = None
    seen: Seen = Seen()


@dataclass(frozen=True, slots=True)
class Method:
    """A way to choose. ``choose`` gets a problem's candidates in order, at least one."""

    choose: Callable[[Sequence[Candidate]], Candidate]
    probe: Callable[[Problem], Probe | None] | None = None  # what must be executed before
    logprobs: bool = False  # whether the engine must tell them


methods: Registry[Method] = Registry("way to select", "assay.selection")
