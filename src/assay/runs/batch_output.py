"""Write the output file of a batch, which can be resumed like a run."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from assay.data import codec
from assay.data.documents import Rest, describe, read_document, write_document
from assay.data.writing import create_beside, replace, reporting, write_whole
from assay.errors import RunError
from assay.protocol import differences
from assay.runs._files import DOCUMENTS, JsonLines, encode_line, hold
from assay.runs.about import Environment, add_environment
from assay.types import Decoding, ModelIdentity

INSTEAD = "Give another --output, or --fresh to start over."

NO_SETTINGS = ("model.name", "model.path")  # files may move; digests identify the model


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """Settings that must be equal for a batch to be resumed."""

    model: ModelIdentity
    decoding: Decoding
    n_samples: int
    chat: bool  # whether prompts are sent as a user message
    thinking: str = "default"
    engine_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchLine:
    """The completion of one prompt, or its error."""

    task_id: str
    text: str
    tokens_generated: int
    tok_per_sec: float
    inference_ms: float
    used_gpu: bool
    finish_reason: Literal["stop", "length", "prompt-too-long", "error"]
    seed: int
    prompt_tokens: int
    request_digest: str  # of prompt, decoding and seed
    logprob: float | None = None
    error: str | None = None

    def to_json(self) -> Any:
        """Return the fields that are not None."""
        return {k: v for k, v in codec.to_json(self).items() if v is not None}


@describe(flat=("settings",), skip=("rest",), required=("environments",))
@dataclass(frozen=True, slots=True)
class BatchAbout:
    """The content of the file ``<output>.run.json``."""

    settings: BatchSettings  # in the file, its fields are on the same level as the others
    created: str = ""
    environments: tuple[Environment, ...] = ()
    rest: Rest = dataclasses.field(default_factory=Rest, repr=False)


class BatchOutput:
    """An open batch file, locked against other processes.

    ``done`` has the request digest of every finished line. Earlier lines with an error are removed
    before the first line is added, so that every prompt has one line in the end.
    """

    def __init__(self, path: Path, settings: BatchSettings, *, fresh: bool) -> None:
        self._path = Path(os.path.realpath(path))
        if self._path.exists() and not self._path.is_file():
            raise RunError(
                f"{path}: is not a file. Give another --output, or none to print the lines."
            )
        self._about_path = self._path.with_name(self._path.name + ".run.json")
        self._held = self._hold(self._path)
        try:
            self._about = self._begin(settings, fresh=fresh)
            self.done: dict[str, str] = {}
            self._lines = JsonLines(self._path, BatchLine)
            self._failed = sum(not self._count(line) for line in self._lines.records())
        except BaseException:
            os.close(self._held)
            raise

    def append(self, line: BatchLine) -> None:
        if self._failed:
            self._take_out_errors()
        self._lines.append(encode_line(line.to_json()))

    def add_environment(self, environment: Environment) -> None:
        """Record where the batch is executed. It may be resumed in another environment."""
        environments = add_environment(self._about.environments, environment)
        if environments != self._about.environments:
            self._about = dataclasses.replace(self._about, environments=environments)
            self._write(self._about)

    def close(self) -> None:
        self._lines.close()
        os.close(self._held)

    def _begin(self, settings: BatchSettings, *, fresh: bool) -> BatchAbout:
        """Return the content of ``<output>.run.json``, or write it if the output is empty."""
        with reporting(self._path):
            if fresh:
                os.truncate(self._held, 0)
            if os.fstat(self._held).st_size == 0:
                about = BatchAbout(settings, datetime.now(UTC).isoformat())
                self._write(about)
                return about
        content = DOCUMENTS.read_json(self._about_path) if self._about_path.exists() else None
        try:
            about = read_document(BatchAbout, content)
        except ValueError as error:
            raise RunError(
                f"{self._path}: its settings in {self._about_path.name} are missing or damaged "
                f"({error}). {INSTEAD}"
            ) from error
        both = (json.loads(codec.dumps(s)) for s in (about.settings, settings))
        if differing := [one for one in differences(*both) if one[0] not in NO_SETTINGS]:
            changes = ", ".join(f"{n} was {_short(a)}, is {_short(b)}" for n, a, b in differing)
            raise RunError(f"{self._path}: was started with other settings ({changes}). {INSTEAD}")
        return about

    def _write(self, about: BatchAbout) -> None:
        write_whole(self._about_path, codec.pretty(write_document(about)))

    def _count(self, line: BatchLine) -> bool:
        if line.error is not None:
            return False
        if line.task_id in self.done:
            raise RunError(f"{self._path}: has two lines for {line.task_id}. Remove one of them.")
        self.done[line.task_id] = line.request_digest
        return True

    def _take_out_errors(self) -> None:
        """Replace the file in one step. A kill leaves the old or the new one; both are locked."""
        with reporting(self._path):
            descriptor, partial = create_beside(self._path)
            os.close(descriptor)
            try:
                held = self._copy_answers(partial)
                replace(partial, self._path)
            finally:
                partial.unlink(missing_ok=True)
        self._lines.close()
        os.close(self._held)
        self._lines, self._held = JsonLines(self._path, BatchLine), held
        self._failed = 0

    def _copy_answers(self, target: Path) -> int:
        """Write the lines without an error into ``target``, and return the lock on it."""
        held = self._hold(target)
        copied = JsonLines(target, BatchLine)
        try:
            for line in self._lines.records():
                if line.error is None:
                    copied.append(encode_line(line.to_json()))
            os.fsync(held)
        except BaseException:
            os.close(held)
            raise
        finally:
            copied.close()
        return held

    def _hold(self, path: Path) -> int:
        busy = (
            f"{self._path}: another process is writing it. "
            "Wait for that process, or give another --output."
        )
        return hold(path, busy)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:12]}…"
