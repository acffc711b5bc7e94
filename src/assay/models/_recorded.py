"""Completions that others recorded: JSONL, EvalPlus's folders, result files of peers.

A record has ``task_id`` and a text; result files hold the programs that were judged.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from assay.errors import ModelError

GZIP = b"\x1f\x8b"
Record = tuple[str, Any]  # where it stands, and what


def records(path: Path) -> Iterator[Record]:
    """ModelError says what is wrong with the file or folder."""
    try:
        if path.is_dir():
            yield from _folder(path)
        elif (judged := _judged(path)) is not None:
            yield from _results(path, judged)
        else:
            yield from _lines(path)
    except FileNotFoundError as error:
        raise ModelError(f"no file of completions at {path}") from error
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 ({error}): convert it") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ModelError(f"{path} is damaged or cut short ({error}): get it again") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} is no JSONL file of completions ({error})") from error


def _lines(path: Path) -> Iterator[Record]:
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"{path} line {number}", json.loads(line)


def _folder(path: Path) -> Iterator[Record]:
    """``HumanEval_0/0.py``, as EvalPlus writes samples: a folder a task, a program a file."""
    programs = sorted(path.glob("*_*/*.py"), key=_place)
    if not programs:
        raise ModelError(
            f"{path} holds no samples: a folder has one for each task, HumanEval_0/0.py"
        )
    for program in programs:
        benchmark, _, number = program.parent.name.rpartition("_")
        yield (
            str(program),
            {"task_id": f"{benchmark}/{number}", "solution": program.read_text("utf-8")},
        )


def _place(program: Path) -> tuple[str, int, int]:
    benchmark, _, number = program.parent.name.rpartition("_")
    return benchmark, _number(number), _number(program.stem)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1


def _judged(path: Path) -> dict[str, Any] | None:
    """The samples by task of a result file of EvalPlus or BigCodeBench; None if it has lines."""
    if not path.name.removesuffix(".gz").endswith(".json"):
        return None
    with _opened(path) as file:
        try:
            found = json.load(file)
        except json.JSONDecodeError:  # several values: some name files of lines so
            return None
    judged = found.get("eval") if isinstance(found, dict) else None
    if isinstance(judged, dict):
        return judged
    if isinstance(found, dict) and "task_id" in found:  # a single line
        return None
    raise ModelError(f"{path} is no result file of EvalPlus or BigCodeBench: it has no 'eval'")


def _results(path: Path, judged: dict[str, Any]) -> Iterator[Record]:
    for task_id, samples in judged.items():
        for sample in samples if isinstance(samples, list) else [samples]:
            text = sample.get("solution") if isinstance(sample, dict) else None
            yield f"{path}, {task_id}", {"task_id": task_id, "solution": text}


def _opened(path: Path) -> IO[str]:
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    if packed:
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")
