"""Turn a run's samples into data for the script: an index in columns, and texts in chunks.

The index is small and is read when the page opens. Texts are read when a sample is opened, one
chunk of neighbouring problems at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from assay.data.failures import explain_failure
from assay.prompts import name_parts
from assay.report.pages.markup import join_key
from assay.report.pages.run.data import RunData, RunSample

CHUNK = 400_000  # characters of the texts that are packed together
LONGEST_DETAIL = 200  # characters of a detail in the index; texts have all of it
MORE_DIGITS = 4

Value = str | int | float | bool | None


def _verdict(name: str, otherwise: Value) -> Callable[[RunSample], Value]:
    def find(sample: RunSample) -> Value:
        verdict = sample.found.verdict
        found: Value = otherwise if verdict is None else getattr(verdict, name)
        return round(found, MORE_DIGITS) if isinstance(found, float) else found

    return find


def _completion(name: str) -> Callable[[RunSample], Value]:
    def find(sample: RunSample) -> Value:
        found: Value = getattr(sample.found.completion, name)
        return found

    return find


# Columns of the index. Those of WORDS have few different values and are stored as numbers.
WORDS: dict[str, Callable[[RunSample], Value]] = {
    "status": lambda sample: sample.status,
    "reason": lambda sample: sample.reason,
    "rule": _verdict("rule", ""),
    "integrity": _verdict("integrity", ""),
    "finish": _completion("finish_reason"),
}
NUMBERS: dict[str, Callable[[RunSample], Value]] = {
    "sample": _completion("sample"),
    "group": lambda sample: sample.program_group,
    "tokens": _completion("tokens_generated"),
    "chars": lambda sample: len(sample.found.completion.text),
    "cpu": _verdict("cpu_s", 0.0),
    "wall": _verdict("wall_s", 0.0),
    "mb": _verdict("peak_mb", 0.0),
    "detail": lambda sample: shorten(_explain(sample)),
    "reused": lambda sample: int(sample.found.completion.reused),
}


def shorten(content: str, most: int = LONGEST_DETAIL) -> str:
    """Return the beginning of a long text."""
    return content if len(content) <= most else f"{content[:most]}…"


def _explain(sample: RunSample) -> str:
    return explain_failure(sample.found.verdict) if sample.found.verdict else ""


def index_name(run: str) -> str:
    """Return the name of a run's index."""
    return join_key("run", run)


def build_index(data: RunData) -> Any:
    """Return the samples of a run in columns, without their long texts."""
    entry = data.source.entry
    result = entry.result
    clusters = {p.task_id: p.cluster for p in result.problems if p.cluster} if result else {}
    limits = data.protocol.limits
    samples = list(data.samples())
    return {
        "run": data.source.key,
        "model": data.source.model,
        "benchmark": f"{entry.benchmark}{entry.selection}",
        "tasks": list(data.tasks),
        "clusters": clusters,
        "chunks": _chunk_numbers(data),
        "counts": [len(found) for found in data.tasks.values()],
        "words": {name: _encode(list(map(find, samples))) for name, find in WORDS.items()},
        "numbers": {name: list(map(find, samples)) for name, find in NUMBERS.items()},
        "limits": limits and {"cpu": limits.cpu_s, "wall": limits.wall_s, "mb": limits.memory_mb},
        "time_limits": dict(data.time_limits),
        "prompt_note": data.prompt_note,
    }


def _encode(values: Sequence[Value]) -> Any:
    known = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return {"of": list(known), "at": [known[value] for value in values]}


def _chunks(data: RunData) -> Iterator[list[str]]:
    """Yield the tasks of every chunk, in order."""
    chunk: list[str] = []
    size = 0
    for task, samples in data.tasks.items():
        chunk.append(task)
        size += 200 + sum(map(_size, samples))
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _size(sample: RunSample) -> int:
    program = sample.found.program
    return len(sample.found.completion.text) + (len(program.code) if program else 0)


def _chunk_numbers(data: RunData) -> list[int]:
    return [number for number, tasks in enumerate(_chunks(data)) for _ in tasks]


def count_chunks(data: RunData) -> int:
    """Return the number of chunks of a run's texts."""
    return sum(1 for _ in _chunks(data))


def build_texts(data: RunData, number: int) -> Any:
    """Return a chunk of the run's texts: by task, its prompt and its samples."""
    tasks = list(_chunks(data))[number]
    return {task: _build_task(data, task) for task in tasks}


def _build_task(data: RunData, task: str) -> Any:
    prompt = data.prompts.get(task)
    return {
        "prompt": None if prompt is None else name_parts(prompt),
        "statement": name_parts(data.statements[task]) if task in data.statements else [],
        "samples": [_build_sample(sample) for sample in data.tasks[task]],
    }


def _build_sample(sample: RunSample) -> Any:
    found = sample.found
    verdict, program = found.verdict, found.program
    return {
        "answer": found.completion.text,
        "error": found.completion.error or "",
        "program": program.code if program else None,
        "detail": _explain(sample),
        "test": sample.outcome.test,
        "output": verdict.output if verdict else "",
        "groups": verdict.groups if verdict else {},
        "call": sample.outcome.call,
        "expected": sample.outcome.expected,
        "actual": sample.outcome.actual,
        "difference": sample.outcome.difference,
        "input": sample.outcome.input,
        "prompt_tokens": found.completion.prompt_tokens,
        "ms": round(found.completion.inference_ms, 1),
        "seed": found.completion.seed,
        "logprob": found.completion.logprob,
    }
