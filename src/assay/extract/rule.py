"""Define extraction rules and their registry. Each module of ``extract/rules/`` registers its own.

A rule works in one or more of four stages. Within a stage, the lowest ``order`` comes first.

``prepare``
    The text before anything is looked for. Every rule of this stage is applied.
``find``
    Places where the program may be, the likeliest first. The first place with an answer counts.
``fix``
    Changes to code that was found but is not an answer yet. The first that makes it one counts.
``finish``
    The program that was found. Every rule of this stage is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

from assay.extract.python import acts, defines
from assay.registry import Registry
from assay.types import PromptForm, Tests

F = TypeVar("F")
# Characters, for one text. Real texts of base models without stop words take up to 841,416.
MOST_PARSED = 1 << 20


@dataclass(slots=True)
class Effort:
    """The characters that may still be parsed to find the program in a text.

    The number of places and fixes grows with a text, and so does the time to parse one of them.
    This keeps the time in proportion to the length.
    """

    left: int = MOST_PARSED

    def spend(self, code: str) -> bool:
        """Return whether code may be parsed, and count it. After the first refusal, none may."""
        allowed = len(code) <= self.left
        self.left = self.left - len(code) if allowed else 0
        return allowed


@dataclass(frozen=True, slots=True)
class ExtractionTask:
    """The facts about a text's problem that rules may use."""

    prompt: str
    tests: Tests
    form: PromptForm
    suffix: str | None = None  # code after the gap that a text fills, if it does
    effort: Effort = field(default_factory=Effort, compare=False)

    @property
    def name(self) -> str:
        """Return the entry point that the program must define."""
        return self.tests.entry_point

    def is_program(self, code: str) -> bool:
        """Return whether the code is a whole answer: it defines the entry point, if there is one.

        A program without an entry point reads standard input, so it must do something.
        """
        return defines(code, self.name) if self.name else acts(code)


@dataclass(frozen=True, slots=True)
class Found:
    """Code from one place in a text, and the rule that it is named after."""

    rule: str
    code: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a program: the prepared text, and the rule that found it, if any."""

    text: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """A finished program. ``uncut`` is the alternative if the cut is uncertain."""

    code: str
    uncut: str | None = None


Prepare = Callable[[str], str]
Find = Callable[[str, ExtractionTask], Iterable[list[Found]]]
Fix = Callable[[str, ExtractionTask], str]
Finish = Callable[[str, ExtractionTask, Origin], Cut]


@dataclass(frozen=True, slots=True)
class At(Generic[F]):
    """A function and its place among those of the same stage."""

    order: int
    apply: F


@dataclass(frozen=True, slots=True)
class Rule:
    """The changes that a rule makes, and its function for each stage it works in.

    Code that it found is an answer if it defines the entry point, unless ``accept`` decides.
    """

    summary: str
    prepare: At[Prepare] | None = None
    find: tuple[At[Find], ...] = ()
    fix: At[Fix] | None = None
    finish: At[Finish] | None = None
    accept: Callable[[str, ExtractionTask], bool] | None = None
    on_request: bool = False  # used only for problems that name it


@dataclass(frozen=True, slots=True)
class Stages:
    """The functions of each stage with the names of their rules, in order."""

    without: frozenset[str]
    prepare: tuple[tuple[str, Prepare], ...]
    find: tuple[tuple[str, Find], ...]
    fix: tuple[tuple[str, Fix], ...]
    finish: tuple[tuple[str, Finish], ...]

    def finish_after(self, rule: str) -> tuple[tuple[str, Finish], ...]:
        """Return the functions of the last stage after those of ``rule``, or all of them."""
        place = next((i for i, (name, _) in enumerate(self.finish, 1) if name == rule), 0)
        return self.finish[place:]


# No plug-ins: the protocol has one version for all rules, so that scores stay comparable.
extraction_rules: Registry[Rule] = Registry(
    "extraction rule", "assay.extract.rules", plug_ins=False
)


@lru_cache(64)
def stages(without: frozenset[str] = frozenset()) -> Stages:
    """Return the functions of each stage, without those of some rules."""
    every = [(name, extraction_rules.get(name)) for name in extraction_rules.names()]
    named = [(name, rule) for name, rule in every if name not in without]
    return Stages(
        without,
        _sort((name, rule.prepare) for name, rule in named),
        # What they find may be named after another rule.
        _sort((n, place) for n, rule in every if not rule.on_request for place in rule.find),
        _sort((name, rule.fix) for name, rule in named),
        _sort((name, rule.finish) for name, rule in named),
    )


def _sort(uses: Iterable[tuple[str, At[F] | None]]) -> tuple[tuple[str, F], ...]:
    places = [(at.order, name, at.apply) for name, at in uses if at is not None]
    return tuple((name, apply) for _, name, apply in sorted(places, key=lambda use: use[:2]))
