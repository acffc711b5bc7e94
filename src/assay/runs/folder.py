"""Read and write a run's folder: protocol, model, completions, programs and verdicts."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import operator
import os
import secrets
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from assay.data import codec
from assay.data.documents import read_document
from assay.data.writing import reporting, write_whole
from assay.errors import RunError
from assay.runs._files import DOCUMENTS, JsonLines, encode_line, hold, read_records
from assay.runs.about import (
    RUN_FILE,
    RunAbout,
    add_environment,
    read_about,
    write_about,
)
from assay.types import Completion, Program, Sample, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from assay.protocol import Protocol
    from assay.runs.about import Environment
    from assay.types import ModelIdentity, SampleKey

T = TypeVar("T")
COMPLETIONS, VERDICTS = "completions.jsonl", "verdicts.jsonl"
PROGRAMS = "programs.jsonl"  # runs of earlier versions have none
PARTS = "parts.jsonl"  # runs of earlier versions have none
_FIELDS = [field.name for field in dataclasses.fields(Completion)]
_after_text = operator.attrgetter(*_FIELDS[_FIELDS.index("text") + 1 :])


@dataclass(frozen=True, slots=True)
class ProgramRecord(Sample):
    """A program that was extracted from a completion, and the extraction rule."""

    code: str
    rule: str


@dataclass(frozen=True, slots=True)
class PartTimes:
    """Wall seconds of a part of a run. Those of all parts are added.

    Requests and programs overlap. Each second in which any of them was busy counts once.
    """

    loading_s: float  # in which the run waited for the model before its first completion began
    generating_s: float
    judging_s: float  # in which at least one program was with the judge
    whole_s: float


class JudgedLines(NamedTuple):
    """A verdict, and the lines of a run's files that record it and its programs."""

    verdict: Verdict
    verdict_line: str
    program_lines: str = ""


class EncodedCompletion(NamedTuple):
    """A completion, and the line of a run's file that records it."""

    completion: Completion
    line: str


def encode_completion(completion: Completion) -> EncodedCompletion:
    """Return a completion, ready to be written."""
    return EncodedCompletion(completion, encode_line(completion))


def encode_judged(verdict: Verdict, programs: Sequence[Program] = ()) -> JudgedLines:
    """Return a verdict and the programs of its sample, ready to be written."""
    lines = [
        encode_line(ProgramRecord(verdict.task_id, verdict.sample, program.code, program.rule))
        for program in programs
    ]
    known = {name: value for name, value in codec.to_json(verdict).items() if value is not None}
    return JudgedLines(verdict, encode_line(known), "".join(lines))


class RunReader:
    """A run's folder to read, even if it is being written or is read-only.

    Nothing is locked, created or changed. Completions with an error and invalid verdicts do not
    count as done, so that a resumed run tries them again.
    """

    def __init__(self, path: Path) -> None:
        self._load(path, read_about(path))

    def _load(self, path: Path, about: RunAbout) -> None:
        self.path, self.about = path, about
        verdicts = {v.key: v for v in self._read(VERDICTS, Verdict)}
        self._verdicts: dict[SampleKey, Verdict] = verdicts
        judged = self.judged
        self._completions: dict[SampleKey, Completion] = {
            c.key: _without_text(c) if c.key in judged else c
            for c in self._read(COMPLETIONS, Completion)
        }

    @property
    def tests_seed(self) -> str:
        """The secret seed of tests with random inputs; runs of earlier versions have none."""
        return self.about.tests_seed

    def _read(self, name: str, record_type: type[T]) -> Iterable[T]:
        """Yield the records of a file, or nothing if the run does not have it."""
        if os.path.lexists(self.path / name):  # a dangling link is damage
            yield from read_records(self.path / name, record_type)

    @property
    def completions(self) -> dict[SampleKey, Completion]:
        """The completions without those that failed.

        Only completions that were not judged when the folder was opened have their texts, so that
        a run of any size fits into memory.
        """
        return {key: c for key, c in self._completions.items() if c.error is None}

    def read_completions(self, *, errors: bool = False) -> Iterator[Completion]:
        """Yield completions with their texts, one at a time from the file.

        Requests that failed are left out unless ``errors`` is true.
        """
        completions = RunReader._read(self, COMPLETIONS, Completion)
        return (c for c in completions if errors or c.error is None)

    def read_programs(self) -> Iterable[ProgramRecord]:
        """Yield the extracted programs, one at a time; none if the run has no such file.

        A sample can have two. The ``rule`` of its verdict says which one was judged.
        """
        return RunReader._read(self, PROGRAMS, ProgramRecord)

    def read_parts(self) -> Iterable[PartTimes]:
        """Yield the times of the run's parts; none if the run is of an earlier version."""
        return RunReader._read(self, PARTS, PartTimes)

    @property
    def verdicts(self) -> dict[SampleKey, Verdict]:
        """The latest verdict on each sample, including invalid ones."""
        return dict(self._verdicts)

    @property
    def judged(self) -> set[SampleKey]:
        return {key for key, v in self._verdicts.items() if v.status != "invalid"}


class RunWriter(RunReader):
    """An open run, locked against other processes, to which records are appended."""

    def __init__(self, path: Path) -> None:
        about = read_about(path)
        if path.is_symlink():
            raise RunError(f"{path}: is a symbolic link. Replace it with the folder itself.")
        busy = (
            f"{path}: another process is using this run. "
            "Wait for that process, or use --fresh to start a second run."
        )
        with contextlib.ExitStack() as opened:
            self._held = hold(path / "lock", busy)
            opened.callback(os.close, self._held)
            self._lines: dict[str, JsonLines] = {}
            for name, record_type in (
                (COMPLETIONS, Completion), (PROGRAMS, ProgramRecord), (VERDICTS, Verdict),
                (PARTS, PartTimes),
            ):  # fmt: skip
                self._lines[name] = JsonLines(path / name, record_type)
                opened.callback(self._lines[name].close)
            self._append_lock = threading.Lock()
            self._lines[PROGRAMS].cut_off_half_a_line()
            self._lines[PARTS].cut_off_half_a_line()
            self._load(path, about)
            self._opened = opened.pop_all()

    def _read(self, name: str, record_type: type[T]) -> Iterable[T]:  # noqa: ARG002
        return self._lines[name].records()

    def add_environment(self, environment: Environment) -> None:
        """Record where this run is executed. It may be resumed in another environment."""
        environments = add_environment(self.about.environments, environment)
        if environments != self.about.environments:
            self.about = dataclasses.replace(self.about, environments=environments)
            write_about(self.path, self.about)

    def keep_time_limits(self, cpu_s: Mapping[str, float]) -> dict[str, float]:
        """Record CPU limits by task and return those of the run. Earlier ones are not changed.

        They depend on the machine. So all samples of a task are judged within the same limit.
        """
        limits = {**cpu_s, **self.about.time_limits}
        if limits != self.about.time_limits:
            self.about = dataclasses.replace(self.about, time_limits=limits)
            write_about(self.path, self.about)
        return limits

    def relocate_model(self, model: ModelIdentity, warn: Callable[[str], None]) -> None:
        """Record the model's current path and name. Its digests show that it is the same."""
        earlier = self.about.model.path
        if not model.path or earlier == model.path:
            return
        moved = dataclasses.replace(self.about.model, name=model.name, path=model.path)
        self.about = dataclasses.replace(self.about, model=moved)
        write_about(self.path, self.about)
        if earlier:
            warn(f"the model of this run has moved; it was at {earlier}")

    def relocate_benchmark(self, path: str) -> None:
        """Record the current path of a user's benchmark. The protocol shows that it is the same."""
        if path and path != self.about.benchmark_file:
            self.about = dataclasses.replace(self.about, benchmark_file=path)
            write_about(self.path, self.about)

    def add_completion(self, completion: Completion) -> None:
        self.add_completions([encode_completion(completion)])

    def add_completions(self, encoded: Sequence[EncodedCompletion]) -> None:
        """Add completions that were encoded, perhaps elsewhere."""
        with self._append_lock:
            self._lines[COMPLETIONS].append("".join(one.line for one in encoded))
            for one in encoded:
                self._completions[one.completion.key] = _without_text(one.completion)

    def add_judged(self, judged: Sequence[JudgedLines]) -> None:
        """Add verdicts, each with the programs that were extracted for its sample."""
        with self._append_lock:
            self._lines[PROGRAMS].append("".join(one.program_lines for one in judged))
            self._lines[VERDICTS].append("".join(one.verdict_line for one in judged))
            self._verdicts.update((one.verdict.key, one.verdict) for one in judged)

    def add_program(self, sample: Sample, program: Program) -> None:
        record = ProgramRecord(sample.task_id, sample.sample, program.code, program.rule)
        with self._append_lock:
            self._lines[PROGRAMS].append(encode_line(record))

    def add_part(self, times: PartTimes) -> None:
        """Record the times since the last part."""
        with self._append_lock:
            self._lines[PARTS].append(encode_line(times))

    def add_verdict(self, verdict: Verdict) -> None:
        self.add_judged([encode_judged(verdict)])

    def close(self) -> None:
        self._opened.close()


def _without_text(completion: Completion) -> Completion:
    # Twice as fast as dataclasses.replace: the driver of a cluster does it for every completion.
    return Completion(completion.task_id, completion.sample, "", *_after_text(completion))


def open_run(
    results_dir: Path,
    protocol: Protocol,
    model: ModelIdentity,
    *,
    fresh: bool = False,
    tests_seed: str = "",
    selection: str = "",
    name: str = "",
    warn: Callable[[str], None] = lambda _: None,
) -> RunWriter:
    """Open the newest run of this protocol and model in ``results_dir``, or create a new one.

    With a ``tests_seed`` only a run with the same seed is resumed. A new run without one gets a
    random seed. ``selection`` is the label of the problems, if they are not the whole benchmark.
    ``name`` is a name that the user gave the model; runs with different names are separate.
    ``warn`` gets one line for every run that cannot be read, and one if the model has moved.
    """
    key = make_key(protocol, model, name)
    with reporting(results_dir):
        results_dir.mkdir(parents=True, exist_ok=True)
    earlier = [
        path
        for path, about in run_folders(results_dir, warn)
        if about.key == key and tests_seed in ("", about.tests_seed)
    ]
    if earlier and not fresh:
        run = RunWriter(earlier[0])
        run.relocate_model(model, warn)
        return run
    seed = tests_seed or secrets.token_hex(16)
    created = datetime.now(UTC).isoformat()
    about = RunAbout(key, created, model, selection=selection, tests_seed=seed)
    return RunWriter(_create(results_dir, protocol, about))


def make_key(protocol: Protocol, model: ModelIdentity, name: str = "") -> str:
    """Return the key of a run: a run of the same protocol, model and given name is resumed."""
    identity = {**codec.to_json(model), "name": name, "path": ""}  # files may move
    return codec.digest({"protocol": protocol.hash, "model": identity})


def run_folders(
    results_dir: Path,
    warn: Callable[[str], None] = lambda _: None,
    wanted: Callable[[Path], bool] = lambda _: True,
) -> list[tuple[Path, RunAbout]]:
    """Return all run folders with the content of their run.json, newest first.

    Other folders are left out, and those that are not ``wanted`` are not read. ``warn`` gets one
    line for every damaged run.json.
    """
    folders = []
    for path in results_dir.glob(f"*/{RUN_FILE}"):
        if not wanted(path.parent):
            continue
        try:
            content = DOCUMENTS.read_json(path)
        except RunError as error:
            warn(str(error))
            continue
        with contextlib.suppress(ValueError):
            folders.append((path.parent, read_document(RunAbout, content)))
    return sorted(folders, key=lambda run: run[1].created, reverse=True)


def _create(results_dir: Path, protocol: Protocol, about: RunAbout) -> Path:
    created = datetime.fromisoformat(about.created)
    name = f"{protocol.benchmark}_{created:%Y%m%d_%H%M%S}"
    path = results_dir / name
    with reporting(path):
        for attempt in itertools.count(2):
            try:
                path.mkdir()
                break
            except FileExistsError:  # another run began in the same second
                path = results_dir / f"{name}-{attempt}"
    write_whole(path / "protocol.json", codec.pretty(protocol.to_json()))
    write_about(path, about)  # last: a folder counts as a run once it has this file
    return path
