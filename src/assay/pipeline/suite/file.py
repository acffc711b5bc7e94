"""Read a suite's YAML file. All problems of the file are reported together, with their lines."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from assay import benchmarks, codec
from assay.borders.reading import Reader
from assay.borders.yaml_files import LocatedYaml, Place, parse_located
from assay.errors import UsageError
from assay.models import DEFAULT, EngineOptions, backends, check_reference
from assay.pipeline.config import ALL, PRESETS, STANDARD
from assay.pipeline.suite.named import expand_suites
from assay.pipeline.suite.suite import (
    GREEDY,
    Choice,
    NamedDecoding,
    Problems,
    RunSettings,
    Suite,
    SuiteBenchmark,
    SuiteError,
    SuiteModel,
    preset_decoding,
)
from assay.prompts import check_strategy_name, strategies
from assay.runs.stores.suites import Baseline

T = TypeVar("T")
GUIDE = "docs/guides/many-checkpoints.md"
FILES = Reader(UsageError, f"Give a YAML file; see {GUIDE}", 1 << 20, unpack=False)
SUITE_NAME = re.compile(r"(?!\.)[\w.+-]{1,100}", re.ASCII)
FIGURE = re.compile(r"pass@[1-9][0-9]{0,3}")

TOP = ("suite", "defaults", "models", "benchmarks", "strategies", "decodings")
SETTINGS = tuple(f.name for f in dataclasses.fields(RunSettings))
ENGINE = tuple(f.name for f in dataclasses.fields(EngineOptions) if f.name != "longest")
DECODING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
CHOICE = ("strategies", "decodings")
BASELINE = ("model", "score", "figure", "source")


def load_suite(path: Path) -> Suite:
    """Return the suite that a file defines. Raise SuiteError with all problems of the file."""
    suite, problems = read_suite_file(path)
    problems.report()
    return suite


def read_suite_file(path: Path) -> tuple[Suite, Problems]:
    """Return the valid entries of a suite's file, and what is wrong with the others."""
    text = FILES.read_text(path)
    try:
        found = parse_located(text)
    except ValueError as error:
        raise SuiteError(str(path), (f"It is not valid YAML ({error}).",)) from error
    return _SuiteFile(path, found).read()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A mapping of the file and its place."""

    place: Place
    values: Mapping[str, Any]


class _SuiteFile:
    """Read the parts of a suite and collect the problems."""

    def __init__(self, path: Path, found: LocatedYaml) -> None:
        self._path, self._found = path, found
        self._problems = Problems(str(path))

    def read(self) -> tuple[Suite, Problems]:
        for place, line in self._found.repeated:
            self._problems.add(line, f"'{place[-1]}' is there twice. Drop one.")
        top = self._entry((), self._found.value, TOP)
        defaults = self._entry(("defaults",), top.values.get("defaults", {}), SETTINGS + ENGINE)
        decodings = self._decodings(top)
        names = self._strategies(top.place, top.values.get("strategies", [STANDARD]))
        known = tuple(decoding.name for decoding in decodings)
        tested = tuple(
            self._benchmark(one, known)
            for entry in self._entries("benchmarks", top, "benchmark")
            for one in _expand(entry)
        )
        models = tuple(
            self._model(entry, defaults, known, tuple(b.name for b in tested))
            for entry in self._entries("models", top, "model")
        )
        self._check_names("model", [(m.name, m.line) for m in models if m.reference])
        name = top.values.get("suite", self._path.stem)
        if not isinstance(name, str) or not SUITE_NAME.fullmatch(name):
            self._add(("suite",), f"{name!r} is not a name. Use letters, digits, '.', '_', '-'.")
            name = ""
        known_benchmarks = benchmarks.benchmarks.names()
        return Suite(
            tuple(model for model in models if model.reference),
            tuple(benchmark for benchmark in tested if benchmark.name in known_benchmarks),
            names, decodings, self._settings(defaults), name, str(self._path),
        ), self._problems  # fmt: skip

    def _model(
        self, entry: _Entry, defaults: _Entry, decodings: Iterable[str], tested: Iterable[str]
    ) -> SuiteModel:
        self._check_keys(entry, ("model", *ENGINE, *SETTINGS, *CHOICE, "benchmarks"))
        reference = entry.values.get("model", "")
        if not isinstance(reference, str) or not reference:
            self._add(entry.place, "a model needs 'model': a file, a folder or engine:reference.")
            reference = ""
        reference = self._resolve(reference)
        if reference:
            self._try(entry.place, check_reference, reference)
        choice = self._choice(entry, decodings)
        chosen = self._names(entry, "benchmarks", tested, "a benchmark of this suite")
        return SuiteModel(
            reference,
            self._engine(entry, defaults),
            self._settings(entry),
            dataclasses.replace(choice, benchmarks=chosen),
            self._found.line(entry.place),
        )

    def _resolve(self, reference: str) -> str:
        """Return the reference with a path relative to the suite's folder made whole."""
        engine, colon, path = reference.partition(":")
        named = colon and engine in backends.names()
        beside = self._path.parent / (path if named else reference)
        if reference in ("", DEFAULT) or not beside.exists() or (named and not path):
            return reference
        return f"{engine}:{beside}" if named else str(beside)

    def _engine(self, entry: _Entry, defaults: _Entry) -> EngineOptions:
        merged: dict[str, Any] = {}
        for part in (defaults, entry):
            for name in ENGINE:
                if name in part.values:
                    value = _engine_value(name, part.values[name])
                    place = (*part.place, name)
                    if self._try(place, _check_field, EngineOptions, name, value):
                        merged[name] = value
        found = self._try(entry.place, codec.from_json, EngineOptions, merged)
        return found or EngineOptions(name=str(merged.get("name", "")))

    def _benchmark(self, entry: _Entry, decodings: Iterable[str]) -> SuiteBenchmark:
        self._check_keys(entry, ("benchmark", *SETTINGS, *CHOICE, "targets", "baselines"))
        name = entry.values.get("benchmark", "")
        place = (*entry.place, "benchmark")
        settings = self._settings(entry)
        if not isinstance(name, str) or not name:
            self._add(entry.place, "a benchmark needs 'benchmark': its name.")
            name = ""
        else:
            whole = self._try(place, benchmarks.of_split, name, settings.split or "")
            if whole:
                self._try(place, benchmarks.benchmarks.get, whole)
        return SuiteBenchmark(
            name,
            settings,
            self._choice(entry, decodings),
            self._targets(entry),
            self._baselines(entry, name),
            self._found.line(entry.place),
        )

    def _targets(self, entry: _Entry) -> dict[str, float]:
        place = (*entry.place, "targets")
        found = {}
        for figure, score in self._mapping(place, entry.values.get("targets", {})).items():
            if not FIGURE.fullmatch(figure):
                self._add((*place, figure), f"{figure!r} is not a figure. Use pass@1 or pass@10.")
            elif self._is_share((*place, figure), score):
                found[figure] = float(score)
        return found

    def _baselines(self, entry: _Entry, benchmark: str) -> tuple[Baseline, ...]:
        place = (*entry.place, "baselines")
        found = []
        for number, one in enumerate(self._list(place, entry.values.get("baselines", []))):
            here = self._entry((*place, number), one, BASELINE)
            values = {name: value for name, value in here.values.items() if name in BASELINE}
            values["benchmark"] = benchmark
            baseline = self._try(here.place, codec.from_json, Baseline, values)
            if baseline and self._is_share((*here.place, "score"), baseline.score):
                found.append(baseline)
        return tuple(found)

    def _decodings(self, top: _Entry) -> tuple[NamedDecoding, ...]:
        found = []
        place: Place = ("decodings",)
        for number, one in enumerate(self._list(place, top.values.get("decodings", [GREEDY]))):
            here = (*place, number)
            line = self._found.line(here)
            if isinstance(one, str):
                if one in PRESETS:
                    found.append(preset_decoding(one, line))
                else:
                    self._add(here, f"unknown preset '{one}'. Choose {', '.join(PRESETS)}.")
                continue
            entry = self._entry(here, one, ("name", *DECODING, *SETTINGS))
            values = {k: v for k, v in entry.values.items() if k in ("name", *DECODING)}
            decoding = self._try(here, codec.from_json, NamedDecoding, values)
            if decoding:
                settings = self._settings(entry)
                found.append(dataclasses.replace(decoding, settings=settings, line=line))
        self._check_names("decoding", [(d.name, d.line) for d in found])
        return tuple(found)

    def _strategies(self, place: Place, names: Any) -> tuple[str, ...]:
        found = []
        for number, name in enumerate(self._list((*place, "strategies"), names)):
            here = (*place, "strategies", number)
            if name == ALL:
                every = sorted(strategies.names(), key=lambda one: one != STANDARD)
                found += [one for one in every if one not in found]
            elif self._try(here, check_strategy_name, str(name)):
                found.append(name)
        line = self._found.line((*place, "strategies"))
        self._check_names("strategy", [(name, line) for name in found])
        return tuple(found)

    def _choice(self, entry: _Entry, decodings: Iterable[str]) -> Choice:
        named = entry.values.get("strategies")
        return Choice(
            None if named is None else self._strategies(entry.place, named),
            self._names(entry, "decodings", decodings, "a decoding of this suite"),
        )

    def _names(
        self, entry: _Entry, key: str, known: Iterable[str], what: str
    ) -> tuple[str, ...] | None:
        if key not in entry.values:
            return None
        place, names = (*entry.place, key), list(known)
        found = []
        for number, name in enumerate(self._list(place, entry.values[key])):
            if name in names:
                found.append(name)
            else:
                choose = f"Choose {', '.join(dict.fromkeys(names))}." if names else ""
                self._add((*place, number), f"{name!r} is not {what}. {choose}".strip())
        return tuple(found)

    def _settings(self, entry: _Entry) -> RunSettings:
        found: dict[str, Any] = {}
        for name in SETTINGS:
            if name in entry.values:
                value = entry.values[name]
                if name == "problems" and isinstance(value, int):
                    value = str(value)
                place = (*entry.place, name)
                if self._try(place, _check_field, RunSettings, name, value):
                    found[name] = value
        return codec.from_json(RunSettings, found)

    def _entries(self, key: str, top: _Entry, short: str) -> list[_Entry]:
        """Return the entries of a list. A text stands for an entry with only that name."""
        place: Place = (key,)
        items = self._list(place, top.values.get(key, []))
        if not items:
            self._add(place, f"there are no {key}. Give at least one.")
        return [
            _Entry((*place, number), {short: item})
            if isinstance(item, str)
            else _Entry((*place, number), self._mapping((*place, number), item))
            for number, item in enumerate(items)
        ]

    def _entry(self, place: Place, value: Any, keys: tuple[str, ...]) -> _Entry:
        found = _Entry(place, self._mapping(place, value))
        self._check_keys(found, keys)
        return found

    def _check_keys(self, entry: _Entry, keys: tuple[str, ...]) -> None:
        for name in entry.values:
            if name not in keys:
                near = difflib.get_close_matches(name, keys, 1)
                hint = f" Did you mean '{near[0]}'?" if near else f" Known: {', '.join(keys)}."
                self._add((*entry.place, name), f"unknown key '{name}'.{hint}")

    def _check_names(self, what: str, names: list[tuple[str, int]]) -> None:
        seen: dict[str, int] = {}
        for name, line in names:
            if name in seen:
                self._problems.add(
                    line, f"the {what} '{name}' is also in line {seen[name]}. Give it a name."
                )
            seen.setdefault(name, line)

    def _mapping(self, place: Place, value: Any) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        self._add(place, f"{_shown(value)} is not a mapping. Write 'key: value' lines.")
        return {}

    def _list(self, place: Place, value: Any) -> list[Any]:
        if isinstance(value, list):
            return value
        self._add(place, f"{_shown(value)} is not a list. Write '- item' lines.")
        return []

    def _is_share(self, place: Place, value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and 0 <= value <= 1:
            return True
        self._add(place, f"{_shown(value)} is not a share. Give a number from 0 to 1.")
        return False

    def _try(self, place: Place, read: Callable[..., T], *arguments: object) -> T | None:
        """Return what a function returns for these arguments, or None after a problem."""
        return self._problems.attempt(self._found.line(place), read, *arguments)

    def _add(self, place: Place, problem: str) -> None:
        self._problems.add(self._found.line(place), problem)


def _expand(entry: _Entry) -> list[_Entry]:
    """Return an entry for each benchmark of a named suite, with the same settings."""
    name = entry.values.get("benchmark")
    names = expand_suites([name]) if isinstance(name, str) else [name]
    return [_Entry(entry.place, {**entry.values, "benchmark": one}) for one in names]


def _check_field(cls: type[Any], name: str, value: Any) -> bool:
    """Raise an error unless the value is valid for this field."""
    codec.from_json(cls, {name: value})
    return True


def _engine_value(name: str, value: Any) -> Any:
    """Return a value as the option takes it: YAML reads on and off as booleans."""
    if name == "thinking":
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
    if name == "engine_options" and isinstance(value, dict):
        return [f"{key}={codec.dumps(one)}" for key, one in value.items()]
    return value


def _shown(value: Any) -> str:
    return repr(value)[:40]
