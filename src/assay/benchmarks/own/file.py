"""Read a benchmark that a user wrote: a YAML file, or a JSONL file with a problem in each line."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.benchmarks.own.problems import ProblemChecker
from assay.benchmarks.own.settings import ENDINGS, KEYS, OwnBenchmarkSettings, check_settings
from assay.data import codec
from assay.data.checked_files import FileChecker, LocatedMapping, Mistakes
from assay.data.reading import FileReader, parse_json
from assay.data.yaml_files import TOO_MANY, LocatedData, Place, parse_located
from assay.errors import MOST_MISTAKES, AssayError, DataError, MistakesError, UsageError
from assay.progress import Announce
from assay.types import Benchmark

GUIDE = "docs/guides/own-benchmark.md"
YAML, JSONL = ENDINGS[:2], ENDINGS[2:]
ADVICE = f"Give a benchmark in YAML or JSONL; see {GUIDE}"
YAML_FILES = FileReader(UsageError, ADVICE, 1 << 24, unpack=False)
JSONL_FILES = FileReader(UsageError, ADVICE, 1 << 30)
LARGE = "Put the problems of a large benchmark into a JSONL file"
PROBLEMS: Place = ("problems",)


@dataclass(frozen=True, slots=True)
class OwnBenchmark:
    """A user's benchmark, and what its file says about it."""

    benchmark: Benchmark
    licence: str
    description: str
    path: Path


def is_file(name: str) -> bool:
    """Return whether the name of a benchmark is the path of a user's own file."""
    return "/" in name or name.endswith(ENDINGS)


def load_file(
    path: Path, taken: Collection[str], announce: Announce, _data_dir: Path | None
) -> Benchmark:
    """Return the benchmark of a file. Raise MistakesError with everything that is wrong."""
    found = read_own(path, taken)
    count = len(found.benchmark.problems)
    problems = f"{count} problem" if count == 1 else f"{count} problems"
    announce(f"{path}: benchmark {found.benchmark.name} with {problems}")
    return found.benchmark


def load_unchanged(path: Path, sha256: str) -> Benchmark:
    """Return the benchmark of the file that a run names, if its content is that of the run.

    The run may come from someone else and name any file. So nothing of another file is reported.
    """
    try:
        found = read_own(path).benchmark
    except AssayError as error:
        raise DataError(f"{path}: is not the benchmark of this run. Restore the file.") from error
    if found.data_sha256 != sha256:
        raise DataError(f"{path}: has changed since this run. Restore the file.")
    return found


def read_own(path: Path, taken: Collection[str] = ()) -> OwnBenchmark:
    """Read and check a file. ``taken`` are names that other benchmarks have."""
    mistakes = Mistakes(str(path))
    if path.name.endswith(YAML):
        source = _read_yaml(path, taken, mistakes)
    elif path.name.endswith(JSONL):
        source = _read_jsonl(path, taken, mistakes)
    else:
        raise UsageError(f"{path}: is not a .yaml or .jsonl file. {ADVICE}.")
    settings, digest = source.settings, source.digest
    checker = ProblemChecker(source.problems, source.mistakes, settings)
    problems = checker.read(PROBLEMS, source.problems.value["problems"])
    mistakes.report()
    benchmark = Benchmark(
        name=settings.name,
        version=settings.version or digest[:12],
        data_sha256=digest,
        problems=problems,
        limits=settings.limits,
        environment=settings.environment,
    )
    return OwnBenchmark(benchmark, settings.licence, settings.description, path)


@dataclass(frozen=True, slots=True)
class _BenchmarkSource:
    """The parts of a file, or of two. Its problems are not checked yet."""

    settings: OwnBenchmarkSettings
    digest: str  # of everything that was read
    problems: LocatedData
    mistakes: Mistakes  # of the file that has the problems


def _read_jsonl(path: Path, taken: Collection[str], mistakes: Mistakes) -> _BenchmarkSource:
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    without_settings = FileChecker(LocatedData({}, {(): 0}), mistakes)
    settings = check_settings(without_settings, LocatedMapping((), {}), stem, taken)
    found, digest = _read_lines(path, mistakes)
    return _BenchmarkSource(settings, digest, found, mistakes)


def _read_yaml(path: Path, taken: Collection[str], mistakes: Mistakes) -> _BenchmarkSource:
    data = YAML_FILES.read_bytes(path)
    try:
        found = parse_located(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        mistake = f"Line {line}: is not UTF-8 (byte {error.start}). Save the file as UTF-8."
        raise MistakesError(str(path), (mistake,)) from error
    except ValueError as error:
        advice = f" {LARGE}." if TOO_MANY in str(error) else ""
        raise MistakesError(str(path), (f"It is not valid YAML ({error}).{advice}",)) from error
    digest = hashlib.sha256(data).hexdigest()
    checker = FileChecker(found, mistakes)
    top = checker.entry((), found.value, KEYS)
    settings = check_settings(checker, top, path.stem, taken)
    listed = top.values.get("problems", [])
    if not isinstance(listed, str):
        items = checker.items(PROBLEMS, listed)
        located = LocatedData({"problems": items}, found.lines, (), found.not_text)
        return _BenchmarkSource(settings, digest, located, mistakes)
    beside = path.parent / listed
    others = Mistakes(str(beside))
    # The file may come from someone else. It must not name, or link to, other files of the user.
    if not beside.resolve().is_relative_to(path.parent.resolve()):
        outside = f"{beside}: is, or links to, a file outside the benchmark's folder"
        checker.add(PROBLEMS, f"{outside}. Copy it there, or give its own path.")
    elif not beside.name.endswith(JSONL):
        checker.add(PROBLEMS, f"{beside}: is not a .jsonl file. Name one, or list the problems.")
    elif (lines := checker.attempt(PROBLEMS, _read_lines, beside, others)) is not None:
        mistakes.others.append(others)
        return _BenchmarkSource(settings, codec.digest([digest, lines[1]]), lines[0], others)
    return _BenchmarkSource(settings, digest, LocatedData({"problems": []}, {}), others)


def _read_lines(path: Path, mistakes: Mistakes) -> tuple[LocatedData, str]:
    """Return the objects of a JSONL file with their lines, and the digest of the file."""
    digest = hashlib.sha256()
    items: list[Any] = []
    lines: dict[Place, int] = {}
    for number, line in enumerate(JSONL_FILES.lines(path), 1):
        digest.update(line)
        if line.strip():
            value = mistakes.attempt(number, _parse_line, line)
            if value is not None:
                lines[(*PROBLEMS, len(items))] = number
                items.append(value)
            elif len(mistakes.found) >= MOST_MISTAKES:
                mistakes.add(number, "is the last that was read. Correct these mistakes first.")
                break
    return LocatedData({"problems": items}, lines), digest.hexdigest()


def _parse_line(line: bytes) -> Any:
    try:
        value = parse_json(line.rstrip(), any_number=True, unambiguous=True)
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start})") from error
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object. Write one problem per line")
    return value
