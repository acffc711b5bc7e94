"""Read a suite's YAML file. All problems of the file are reported together, with their lines."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay import benchmarks, selection
from assay.data import codec
from assay.data.checked_files import NAME, FileChecker, LocatedMapping, Mistakes, as_day, shown
from assay.data.reading import FileReader
from assay.data.yaml_files import LocatedData, Place, parse_located
from assay.errors import UsageError
from assay.models import DEFAULT, EngineOptions, backends, check_reference
from assay.pipeline.config import ALL, PRESETS, Sampling
from assay.pipeline.problems import ProblemSelection
from assay.pipeline.prompting import check_texts
from assay.pipeline.suite.suite import (
    DEFAULT_DECODING,
    NamedDecoding,
    RunSettings,
    Suite,
    SuiteBenchmark,
    SuiteChoice,
    SuiteError,
    SuiteModel,
    expand_suites,
    preset_decoding,
)
from assay.prompts import DEFAULT_STRATEGY, STANDARD, check_strategy_name, strategies
from assay.runs.stores.suites import SuiteBaseline

GUIDE = "docs/guides/many-checkpoints.md"
FILES = FileReader(UsageError, f"Give a YAML file; see {GUIDE}", 1 << 20, unpack=False)
RENAME = "Give it a name"
FIGURE = re.compile(r"pass@[1-9][0-9]{0,3}")

TOP = ("suite", "defaults", "models", "benchmarks", "strategies", "decodings")
OPTIONS = {"first_day": "from", "last_day": "to", "labels": "label"}  # as `assay eval` calls them
SETTINGS = tuple(OPTIONS.get(f.name, f.name) for f in dataclasses.fields(RunSettings))
FIELDS = {option: name for name, option in OPTIONS.items()}
ENGINE = tuple(f.name for f in dataclasses.fields(EngineOptions) if f.name != "longest")
DECODING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
CHOICE = ("strategies", "decodings")
BASELINE = ("model", "score", "figure", "source")


def load_suite(path: Path) -> Suite:
    """Return the suite that a file defines. Raise SuiteError with all problems of the file."""
    suite, problems = read_suite_file(path)
    problems.report()
    return suite


def read_suite_file(path: Path) -> tuple[Suite, Mistakes]:
    """Return the valid entries of a suite's file, and what is wrong with the others."""
    text = FILES.read_text(path)
    try:
        data = parse_located(text)
    except ValueError as error:
        raise SuiteError(str(path), (f"It is not valid YAML ({error}).",)) from error
    return _SuiteFile(path, data).read()


class _SuiteFile(FileChecker):
    """The parts of a suite's file, and what is wrong with them."""

    def __init__(self, path: Path, data: LocatedData) -> None:
        super().__init__(data, Mistakes(str(path), SuiteError))
        self._path = path

    def read(self) -> tuple[Suite, Mistakes]:
        top = self.entry((), self.found.value, TOP)
        defaults = self.entry(("defaults",), top.values.get("defaults", {}), SETTINGS + ENGINE)
        decodings = self._decodings(top)
        names = self._strategies(top.place, top.values.get("strategies", [DEFAULT_STRATEGY]))
        known_decodings = tuple(decoding.name for decoding in decodings)
        tested = tuple(
            self._benchmark(one, known_decodings)
            for entry in self._entries("benchmarks", top, "benchmark")
            for one in _expand(entry)
        )
        models = tuple(
            self._model(entry, defaults, known_decodings, tuple(b.name for b in tested))
            for entry in self._entries("models", top, "model")
        )
        self.check_names("model", [(m.name, m.line) for m in models if m.reference], RENAME)
        name = top.values.get("suite", self._path.stem)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self.add(("suite",), f"{name!r} is not a name. Use letters, digits, '.', '_', '-'.")
            name = ""
        known = benchmarks.benchmarks.names()
        return Suite(
            tuple(model for model in models if model.reference),
            tuple(benchmark for benchmark in tested if benchmark.file or benchmark.name in known),
            names, decodings, self._settings(defaults), name, str(self._path),
        ), self.mistakes  # fmt: skip

    def _model(
        self,
        entry: LocatedMapping,
        defaults: LocatedMapping,
        decodings: Iterable[str],
        tested: Iterable[str],
    ) -> SuiteModel:
        self.check_keys(entry, ("model", *ENGINE, *SETTINGS, *CHOICE, "benchmarks"))
        reference = entry.values.get("model", "")
        if not isinstance(reference, str) or not reference:
            self.add(entry.place, "a model needs 'model': a file, a folder or engine:reference.")
            reference = ""
        reference = self._resolve(reference)
        if reference:
            self.attempt(entry.place, check_reference, reference)
        choice = self._choice(entry, decodings)
        chosen = self._names(entry, "benchmarks", tested, "a benchmark of this suite")
        return SuiteModel(
            reference,
            self._engine(entry, defaults),
            self._settings(entry),
            dataclasses.replace(choice, benchmarks=chosen),
            self.found.line(entry.place),
        )

    def _resolve(self, reference: str) -> str:
        """Return the reference with a path relative to the suite's folder made whole."""
        engine, colon, path = reference.partition(":")
        named = colon and engine in backends.names()
        beside = self._path.parent / (path if named else reference)
        if reference in ("", DEFAULT) or not beside.exists() or (named and not path):
            return reference
        return f"{engine}:{beside}" if named else str(beside)

    def _engine(self, entry: LocatedMapping, defaults: LocatedMapping) -> EngineOptions:
        merged: dict[str, Any] = {}
        for part in (defaults, entry):
            for name in ENGINE:
                if name in part.values:
                    place, raw = (*part.place, name), part.values[name]
                    value = self.attempt(place, _read_engine_value, name, raw)
                    if value is not None:
                        merged[name] = value
        options = self.attempt(entry.place, codec.from_json, EngineOptions, merged)
        return options or EngineOptions(name=str(merged.get("name", "")))

    def _benchmark(self, entry: LocatedMapping, decodings: Iterable[str]) -> SuiteBenchmark:
        self.check_keys(entry, ("benchmark", *SETTINGS, *CHOICE, "targets", "baselines"))
        name, file = entry.values.get("benchmark", ""), ""
        place = (*entry.place, "benchmark")
        settings = self._settings(entry)
        if not isinstance(name, str) or not name:
            self.add(entry.place, "a benchmark needs 'benchmark': its name.")
            name = ""
        elif benchmarks.is_file(name) and not settings.split:
            beside = self._path.parent / name  # a path may be relative to the suite's folder
            file = str(beside) if beside.exists() else name
        else:
            whole = self.attempt(place, benchmarks.of_split, name, settings.split or "")
            if whole:
                self.attempt(place, benchmarks.benchmarks.get, whole)
        return SuiteBenchmark(
            name,
            settings,
            self._choice(entry, decodings),
            self._targets(entry),
            self._baselines(entry, name),
            self.found.line(entry.place),
            file,
        )

    def _targets(self, entry: LocatedMapping) -> dict[str, float]:
        place = (*entry.place, "targets")
        targets = {}
        for figure, score in self.mapping(place, entry.values.get("targets", {})).items():
            here = (*place, figure)
            if self._is_figure(here, figure) and self._is_share(here, score):
                targets[figure] = float(score)
        return targets

    def _baselines(self, entry: LocatedMapping, benchmark: str) -> tuple[SuiteBaseline, ...]:
        place = (*entry.place, "baselines")
        baselines = []
        for number, one in enumerate(self.items(place, entry.values.get("baselines", []))):
            here = self.entry((*place, number), one, BASELINE)
            values = {name: value for name, value in here.values.items() if name in BASELINE}
            values["benchmark"] = benchmark
            baseline = self.attempt(here.place, codec.from_json, SuiteBaseline, values)
            if (
                baseline
                and self._is_figure((*here.place, "figure"), baseline.figure)
                and self._is_share((*here.place, "score"), baseline.score)
            ):
                baselines.append(baseline)
        return tuple(baselines)

    def _decodings(self, top: LocatedMapping) -> tuple[NamedDecoding, ...]:
        if "decodings" not in top.values:
            return (DEFAULT_DECODING,)
        decodings = []
        place: Place = ("decodings",)
        for number, one in enumerate(self._some(place, top.values["decodings"])):
            here = (*place, number)
            line = self.found.line(here)
            if isinstance(one, str):
                if one in PRESETS:
                    decodings.append(preset_decoding(one, line))
                else:
                    self.add(here, f"unknown preset '{one}'. Choose {', '.join(PRESETS)}.")
                continue
            entry = self.entry(here, one, ("name", *DECODING, *SETTINGS))
            named = {k: v for k, v in entry.values.items() if k == "name"}
            decoding = self.attempt(here, codec.from_json, NamedDecoding, named)
            values = {k: v for k, v in entry.values.items() if k in DECODING}
            sampling = self.attempt(here, codec.from_json, Sampling, values)
            settings = self._settings(entry)
            if decoding and not decoding.name:
                self.add((*here, "name"), "the name is empty. Give it one.")
            elif decoding and sampling:
                decodings.append(NamedDecoding(decoding.name, sampling, settings, line))
        self.check_names("decoding", [(d.name, d.line) for d in decodings], RENAME)
        return tuple(decodings)

    def _strategies(self, place: Place, names: Any) -> tuple[str, ...]:
        chosen = []
        for number, name in enumerate(self._some((*place, "strategies"), names)):
            here = (*place, "strategies", number)
            if name == ALL:
                every = sorted(strategies.names(), key=lambda one: one != STANDARD)
                chosen += [one for one in every if one not in chosen]
            elif self.attempt(here, check_strategy_name, str(name)):
                chosen.append(name)
        line = self.found.line((*place, "strategies"))
        self.check_names("strategy", [(name, line) for name in chosen], RENAME)
        return tuple(chosen)

    def _choice(self, entry: LocatedMapping, decodings: Iterable[str]) -> SuiteChoice:
        named = entry.values.get("strategies")
        return SuiteChoice(
            None if named is None else self._strategies(entry.place, named),
            self._names(entry, "decodings", decodings, "a decoding of this suite"),
        )

    def _names(
        self, entry: LocatedMapping, key: str, known: Iterable[str], what: str
    ) -> tuple[str, ...] | None:
        if key not in entry.values:
            return None
        place, names = (*entry.place, key), list(known)
        chosen = []
        for number, name in enumerate(self._some(place, entry.values[key])):
            if name in names:
                chosen.append(name)
            else:
                choose = f"Choose {', '.join(dict.fromkeys(names))}." if names else ""
                self.add((*place, number), f"{name!r} is not {what}. {choose}".strip())
        return tuple(chosen)

    def _settings(self, entry: LocatedMapping) -> RunSettings:
        settings: dict[str, Any] = {}
        for key in SETTINGS:
            if key in entry.values:
                name, value = FIELDS.get(key, key), _setting(key, entry.values[key])
                if self.attempt((*entry.place, key), _check_setting, key, name, value):
                    settings[name] = value
        return codec.from_json(RunSettings, settings)

    def _entries(self, key: str, top: LocatedMapping, short: str) -> list[LocatedMapping]:
        """Return the entries of a list. A text stands for an entry with only that name."""
        place: Place = (key,)
        items = self._some(place, top.values.get(key, []))
        return [
            LocatedMapping((*place, number), {short: item})
            if isinstance(item, str)
            else LocatedMapping((*place, number), self.mapping((*place, number), item))
            for number, item in enumerate(items)
        ]

    def _some(self, place: Place, value: Any) -> list[Any]:
        """Return the items of a list, which has at least one."""
        if value == []:
            self.add(place, f"there are no {place[-1]}. Give at least one.")
        return self.items(place, value)

    def _is_figure(self, place: Place, name: str) -> bool:
        if FIGURE.fullmatch(name):
            return True
        self.add(place, f"{name!r} is not a figure. Use pass@1 or pass@10.")
        return False

    def _is_share(self, place: Place, value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and 0 <= value <= 1:
            return True
        self.add(place, f"{shown(value)} is not a share. Give a number from 0 to 1.")
        return False


def _expand(entry: LocatedMapping) -> list[LocatedMapping]:
    """Return an entry for each benchmark of a named suite, with the same settings."""
    name = entry.values.get("benchmark")
    names = expand_suites([name]) if isinstance(name, str) else [name]
    return [LocatedMapping(entry.place, {**entry.values, "benchmark": one}) for one in names]


def _setting(key: str, value: Any) -> Any:
    """Return a value as the option takes it: YAML reads numbers and dates."""
    if key == "problems" and isinstance(value, int):
        return str(value)
    if key == "label" and isinstance(value, str):
        return [value]
    return as_day(value) if key in ("from", "to") else value


def _check_setting(key: str, name: str, value: Any) -> bool:
    """Raise an error unless the value is valid for this field of the settings."""
    try:
        codec.from_json(RunSettings, {name: value})
    except ValueError as error:
        raise ValueError(str(error).replace(f"'{name}'", f"'{key}'")) from error
    if name in ("n_samples", "max_tokens"):
        codec.from_json(Sampling, {name: value}).resolve()
    elif name in ("problems", *OPTIONS):
        part = "range" if name == "problems" else name
        codec.from_json(ProblemSelection, {part: value})
    elif name == "select" and value:
        selection.methods.get(value)
    elif name in ("system", "stop"):
        check_texts(**{"system": "", "stop": (), name: value})
    return True


def _read_engine_value(name: str, value: Any) -> Any:
    """Return a value as the option takes it: YAML reads on, off and numbers.

    Raise an error unless it is valid.
    """
    if name == "thinking":
        value = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
    elif name == "devices" and isinstance(value, int):
        value = str(value)
    elif name == "engine_options" and isinstance(value, dict):
        value = [f"{key}={_as_json(one)}" for key, one in value.items()]
    codec.from_json(EngineOptions, {name: value})
    return value


def _as_json(value: Any) -> str:
    try:
        return codec.dumps(value)
    except TypeError as error:  # a date
        raise ValueError(f"{shown(value)} is not plain data. Write it in quotes.") from error
