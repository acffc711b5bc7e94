"""Parse the lines of a batch file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.data import codec
from assay.data.reading import MOST_LINES, FileReader, open_bounded, parse_json
from assay.errors import UsageError
from assay.types import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LONGEST = 1 << 24  # bytes of a line: far beyond any context, and a bound for memory
SEEDS = 1 << 31
PROMPTS = FileReader(UsageError, "Give a file with a JSON object per line", 1 << 32)


@dataclass(frozen=True, slots=True)
class BatchPrompt:
    """One line: plain text or messages, and its own settings. None means the batch's setting."""

    task_id: str
    prompt: str | None = None
    messages: tuple[Message, ...] | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    unused: tuple[str, ...] = ()  # names of unknown fields


@dataclass(frozen=True, slots=True)
class BadLine:
    task_id: str
    error: str
    is_object: bool  # whether the line is a JSON object


USED = {f.name for f in dataclasses.fields(BatchPrompt)} - {"unused"}


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the file's lines with their indices, one at a time, without blank lines.

    Only the beginning of a line that is too long is read into memory.
    """
    with PROMPTS.reporting(path), open_bounded(path, PROMPTS.most, unpack=False) as file:
        index = 0
        while line := file.readline(LONGEST + 1):
            rest = line
            while len(rest) > LONGEST and not rest.endswith(b"\n"):
                rest = file.readline(LONGEST + 1)
            if line.strip():
                yield index, line
            index += 1
            if index > MOST_LINES:
                raise ValueError(f"has more than {MOST_LINES:,} lines")


def parse(index: int, line: bytes) -> BatchPrompt | BadLine:
    """Parse a line. Its task id is its index if it has none."""
    task_id, is_object = str(index), False
    try:
        fields = _parse_object(line, first=index == 0)
        is_object = True
        task_id = _task_id(fields.get("task_id"), index)
        return _prompt(fields, task_id)
    except ValueError as error:
        return BadLine(task_id, str(error), is_object)


def _parse_object(line: bytes, *, first: bool) -> dict[str, Any]:
    if len(line) > LONGEST:
        raise ValueError(f"longer than {LONGEST >> 20} MiB")
    try:
        found = parse_json(line.decode("utf-8-sig" if first else "utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start})") from error
    if not isinstance(found, dict):
        raise ValueError(f"not a JSON object but {type(found).__name__}")
    return found


def _task_id(given: Any, index: int) -> str:
    if given is None:
        return str(index)
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise ValueError("task_id is neither text nor a whole number")
    return _text(str(given), "task_id")


def _prompt(fields: Mapping[str, object], task_id: str) -> BatchPrompt:
    known = {name: fields[name] for name in USED if fields.get(name) is not None}
    known["task_id"] = task_id
    if isinstance(known.get("stop"), str):
        known["stop"] = [known["stop"]]
    line = codec.from_json(BatchPrompt, {**known, "unused": sorted(fields.keys() - USED)})
    if line.prompt is not None and line.messages is not None:
        raise ValueError("both prompt and messages: give one of them")
    if line.prompt is None and not line.messages:
        raise ValueError("neither prompt nor messages")
    if line.seed is not None and not 0 <= line.seed < SEEDS:
        raise ValueError(f"seed {line.seed}: must be 0 or more and less than 2^31")
    _text(line.prompt or "", "prompt")
    for message in line.messages or ():
        _text(message.content, "messages")
    if "" in [_text(word, "stop") for word in line.stop]:
        raise ValueError("a stop word is empty")
    return line


def _text(text: str, name: str) -> str:
    """Return the same text. Raise ValueError if it cannot be sent to an engine."""
    if "\0" in text:
        raise ValueError(f"{name} contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} contains half a surrogate pair") from error
    return text
