"""Read completions made elsewhere: JSONL, EvalPlus's folders, result files of other harnesses.

A record has ``task_id`` and a text. Result files hold the programs that were judged.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from assay.data.reading import FileReader, parse_json
from assay.errors import ModelError

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
    found = TASK_ID.match(line)
    if found is None:
        raise ModelError(f"{where}: is cut off before its task_id. Delete the line.")
    with SAMPLES.reporting(where):
        named = {"task_id": parse_json(found[1])}
        if found[2]:
            named["sample"] = parse_json(found[2])
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
            found = parse_json(content)
        except ValueError as error:  # several values: some files of lines have this name
            if isinstance(error.__cause__, json.JSONDecodeError):
                return None
            raise
    judged = found.get("eval") if isinstance(found, dict) else None
    if isinstance(judged, dict):
        return _results(path, judged.items())
    if isinstance(found, dict) and "task_id" in found:  # a single line
        return None
    raise ModelError(
        f"{path}: is not a result file of EvalPlus or BigCodeBench (no 'eval'). Give another file."
    )


def _results(path: Path, judged: Iterable[tuple[str, Any]]) -> Iterator[ReplayRecord]:
    for task_id, samples in judged:
        for sample in samples if isinstance(samples, list) else [samples]:
            text = sample.get("solution") if isinstance(sample, dict) else None
            yield ReplayRecord(f"{path}, {task_id}", {"task_id": task_id, "solution": text})
