"""The settings that must be equal for two scores to be comparable."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from assay.data import codec
from assay.types import Decoding, Limits, PromptForm, PromptImports, Tests, TimeRule

TEMPLATE_VARIABLES = "chat_template_kwargs"  # an option of all engines that render templates
VERSION = 3  # of the protocol's meaning; results of version 1 do not have the field


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """The way a model is prompted, except for the prompt strategy and the decoding."""

    prompt_form: PromptForm
    chat_template: Literal["own", "none"]  # own: the model's chat template is used
    system: str = ""  # a system message before every prompt
    thinking: str = "default"  # on, off, or the maximum tokens of thought
    stop: tuple[str, ...] = ()  # texts that end a completion, in addition to the strategy's
    engine_options: tuple[str, ...] = ()  # key=value, sorted


@dataclass(frozen=True, slots=True)
class Protocol:
    """The settings of a run. Two runs are comparable if all fields are equal."""

    version: int
    benchmark: str
    benchmark_version: str
    data_sha256: str
    problems: int
    problems_sha256: str  # of the task ids, so that two different subsets never compare
    n_samples: int
    prompt_strategy: str
    prompt_strategy_version: int
    asking: PromptSettings
    decoding: Decoding
    extraction_version: int
    tests: str
    limits: Limits
    sandbox: str
    python: str
    environment: str = ""  # package set with its digest; none: only the standard library
    origin: str = ""  # digest of completions that were recorded elsewhere
    prompt_imports: PromptImports = "prepended"  # whether code of the prompt precedes programs
    judge: str = ""  # another harness that judged the programs; none: assay
    time_rule: TimeRule | None = None  # CPU limits per problem; none: ``limits`` for all

    @property
    def hash(self) -> str:
        return codec.digest(self._content())

    def to_recorded(self) -> RecordedProtocol:
        """Return the protocol in the form that files store."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return RecordedProtocol(hash=self.hash, **{**values, "judge": self.judge or None})

    def to_json(self) -> Any:
        return self.to_recorded().to_json()

    def _content(self) -> Any:
        """Return all fields, without those that earlier versions lack if they have no effect."""
        content = codec.to_json(self)
        for name in ("judge", "time_rule"):
            if not content[name]:
                del content[name]
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedProtocol:
    """A protocol of any version, read from a file. Fields that the version lacks are None."""

    hash: str
    version: int | None = None
    benchmark: str
    benchmark_version: str | None = None
    data_sha256: str | None = None
    problems: int | None = None
    problems_sha256: str | None = None
    n_samples: int
    prompt_strategy: str
    prompt_strategy_version: int | None = None
    asking: PromptSettings | None = None
    decoding: Decoding | None = None
    extraction_version: int | None = None
    tests: str | None = None
    limits: Limits | None = None
    sandbox: str | None = None
    python: str | None = None
    environment: str | None = None
    origin: str | None = None
    prompt_imports: PromptImports | None = None
    judge: str | None = None
    time_rule: TimeRule | None = None

    def to_json(self) -> Any:
        """Return the fields that are not None, in the form that files store."""
        content = {name: value for name, value in codec.to_json(self).items() if value is not None}
        return json.loads(codec.dumps(content))


def compute_options(engine_options: Iterable[str]) -> list[str]:
    """Return the names of the options that can change an engine's computation."""
    names = [option.partition("=")[0] for option in engine_options]
    return [name for name in names if name != TEMPLATE_VARIABLES]


Difference = tuple[str, object, object]  # a field's dotted name, and both values


def differences(a: Mapping[str, object], b: Mapping[str, object]) -> list[Difference]:
    """Return the fields in which two protocols (as JSON) differ, with dotted names.

    If the versions differ, only these are returned, because the other fields mean different things.
    """
    versions = a.get("version", 1), b.get("version", 1)
    if versions[0] != versions[1]:
        return [("version", versions[0], versions[1])]
    return _differences(a, b)


def _differences(a: Mapping[str, object], b: Mapping[str, object]) -> list[Difference]:
    differing: list[Difference] = []
    for name in sorted((a.keys() | b.keys()) - {"hash"}):
        left, right = a.get(name), b.get(name)
        if isinstance(left, dict) and isinstance(right, dict):
            differing += [(f"{name}.{inner}", x, y) for inner, x, y in _differences(left, right)]
        elif left != right:
            differing.append((name, left, right))
    return differing


def tests_digest(tests: Tests) -> str:
    """Return a digest of a problem's tests."""
    cases = tests.cases.digest if tests.cases else ""
    parts = [tests.entry_point, tests.code, tests.preamble, tests.integrity, cases]
    if tests.texts:
        texts = tests.texts
        parts += [texts.digest, texts.style, texts.comparison, str(texts.run_all)]
    if tests.adapter:
        parts.append(tests.adapter)
    return codec.digest([*parts, codec.to_json(tests.answer)] if tests.answer else parts)
