"""All that must be equal for two scores to be comparable: frozen, hashed, compared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from assay import codec
from assay.types import Decoding, Limits, PromptForm, PromptImports, Tests

TEMPLATE_VARIABLES = "chat_template_kwargs"  # an option of all engines that render templates
VERSION = 2  # of what a protocol says; results of version 1 have no such field


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked, apart from the prompt strategy and the choice of tokens."""

    prompt_form: PromptForm
    chat_template: Literal["own", "none"]  # whether the model's own is used
    system: str = ""  # a system message before every prompt
    thinking: str = "default"  # on, off, or the most tokens of a thought
    stop: tuple[str, ...] = ()  # texts that end a completion, besides the strategy's
    engine_options: tuple[str, ...] = ()  # key=value, sorted


@dataclass(frozen=True, slots=True)
class Protocol:
    """Two runs may be compared when every field here is equal."""

    version: int
    benchmark: str
    benchmark_version: str
    data_sha256: str
    problems: int
    problems_sha256: str  # of the task ids, so that two different subsets never compare
    n_samples: int
    prompt_strategy: str
    prompt_strategy_version: int
    asking: Asking
    decoding: Decoding
    extraction_version: int
    tests: str
    limits: Limits
    sandbox: str
    python: str
    environment: str = ""  # of packages, named with its digest; none: the standard library alone
    origin: str = ""  # digest of completions that were recorded elsewhere
    prompt_imports: PromptImports = "prepended"  # whether code of the prompt precedes programs
    judge: str = ""  # another harness that judged the programs; none: assay

    @property
    def hash(self) -> str:
        return codec.digest(self._content())

    def to_json(self) -> dict[str, Any]:
        return {"hash": self.hash, **json.loads(codec.dumps(self._content()))}  # as a file has it

    def _content(self) -> dict[str, Any]:
        """Return all fields, but for ``judge`` if it is assay: earlier protocols have no such."""
        content: dict[str, Any] = codec.to_json(self)
        if not self.judge:
            del content["judge"]
        return content


def compute_options(engine_options: Iterable[str]) -> list[str]:
    """Return the names of the options that can make an engine compute in another way."""
    names = [option.partition("=")[0] for option in engine_options]
    return [name for name in names if name != TEMPLATE_VARIABLES]


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the fields in which two protocols (as JSON) differ, nested ones with a dotted name.

    Protocols of different versions say different things: only the versions are compared then.
    """
    versions = a.get("version", 1), b.get("version", 1)
    if versions[0] != versions[1]:
        return [("version", *versions)]
    return _differences(a, b)


def _differences(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    found: list[tuple[str, Any, Any]] = []
    for name in sorted((a.keys() | b.keys()) - {"hash"}):
        left, right = a.get(name), b.get(name)
        if isinstance(left, dict) and isinstance(right, dict):
            found += [(f"{name}.{inner}", x, y) for inner, x, y in _differences(left, right)]
        elif left != right:
            found.append((name, left, right))
    return found


def tests_digest(tests: Tests) -> str:
    """What stands for a problem's tests, however large their cases are."""
    cases = tests.cases.digest if tests.cases else ""
    return codec.digest([tests.entry_point, tests.code, tests.preamble, tests.integrity, cases])
