"""Write prompts for ``apr run --batch-jsonl`` and parse the answers in its output."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.data import codec
from assay.data.reading import parse_json
from assay.errors import ModelError
from assay.formats.marks import cut_at
from assay.models import failed
from assay.types import Completion, Decoding, Prompt

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from assay.types import Request

# Samples equal to their task's first one that are too many for chance.
ALIKE = 20


def write(requests: Iterable[Request], path: Path) -> tuple[dict[str, Request], list[Completion]]:
    """Write the requests to a file. Return them by their names in it, and errors for the others.

    Prompt texts are not returned: there may be many. Only what an answer needs is kept.
    """
    waiting: dict[str, Request] = {}
    refused: list[Completion] = []
    with path.open("w", encoding="utf-8") as file:
        for number, request in enumerate(requests):
            first = next(iter(waiting.values()), request)
            if why := _refusal(request, first):
                refused.append(failed(*request.key, why, request.seed))
                continue
            name = f"{number}_s{request.sample}"
            line = {
                "prompt": request.prompt.messages[0].content,
                "task_id": name,
                "max_tokens": request.decoding.max_tokens,
            }
            file.write(json.dumps(line) + "\n")
            waiting[name] = replace(request, prompt=Prompt(stop=request.prompt.stop))
    return waiting, refused


def read(line: str, waiting: dict[str, Request]) -> Completion:
    """Return the completion in a line of output and remove its request from ``waiting``."""
    try:
        answer = codec.read_known(_Answer, parse_json(line))  # not trusted
        codec.check_numbers(answer)
        # A line that apr could not read has no name. apr answers in the order of the file.
        name = next(iter(waiting)) if answer.task_id is None else answer.task_id
        if name not in waiting:
            raise ValueError(f"{name[:40]!r} is not a prompt that still waits")
    except ValueError as error:
        raise ModelError(
            f"apr: wrote an invalid answer ({error}): {line[:80]!r}. Install another version."
        ) from error
    return _completion(answer, waiting.pop(name))


class Variety:
    """A check that samples of a prompt differ: some versions of apr use a fixed seed."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._alike = 0
        self._varied = False

    def check(self, completion: Completion) -> None:
        text = hash(completion.text)
        if completion.task_id not in self._first:
            self._first[completion.task_id] = text
        elif self._first[completion.task_id] != text:
            self._varied = True
        else:
            self._alike += 1
        if self._alike >= ALIKE and not self._varied:
            raise ModelError(
                "apr: this version generates the same text for all samples of a prompt. Use "
                "--n-samples 1, or another engine."
            )


def unsuited(prompt: Prompt) -> str:
    """Return why apr cannot be sent this prompt, or an empty text if it can."""
    if len(prompt.messages) != 1 or prompt.messages[0].role != "user":
        return "apr accepts one user message and nothing else. Use --prompt-form chat."
    if prompt.prefill:
        return "apr cannot continue a prefilled answer. Use another --prompt-strategy."
    return ""


def _refusal(request: Request, first: Request) -> str:
    decoding = request.decoding
    if why := unsuited(request.prompt):
        return why
    neutral = Decoding()
    for name in ("top_p", "min_p", "repetition_penalty"):
        if (wanted := getattr(decoding, name)) != getattr(neutral, name):
            return f"apr has no {name.replace('_', '-')} in its batch mode (requested: {wanted})"
    one, other = ((d.temperature, d.top_k) for d in (first.decoding, decoding))
    if one != other:
        return f"apr accepts one temperature and top-k for all prompts: {one}, not {other}"
    return ""


@dataclass(frozen=True, slots=True)
class _Answer:
    """A line of apr's output."""

    text: str
    tokens_generated: int
    inference_ms: float
    used_gpu: bool
    task_id: str | None = None
    error: str | None = None


def _completion(answer: _Answer, request: Request) -> Completion:
    text, stopped = cut_at(answer.text, request.prompt.stop)
    whole = stopped or answer.tokens_generated < request.decoding.max_tokens
    return Completion(
        task_id=request.task_id,
        sample=request.sample,
        text=text,
        finish_reason="error" if answer.error else "stop" if whole else "length",
        prompt_tokens=0,  # not reported
        tokens_generated=answer.tokens_generated,
        inference_ms=answer.inference_ms,
        seed=request.seed,
        used_gpu=answer.used_gpu,
        error=answer.error,
    )
