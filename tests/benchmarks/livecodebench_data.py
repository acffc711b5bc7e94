"""Small files in the format in which the hub has LiveCodeBench, which cannot be downloaded here."""

from __future__ import annotations

import base64
import contextlib
import json
import pickle
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from assay.benchmarks.support import livecodebench_files as files

STDIN = [("1 2\n", "3\n"), ("4 5\n", "9\n")]
# Even numbers are problems on standard input. This program solves them.
SCRIPT = "print(sum(map(int, input().split())))\n"
CALLS = [('[1, 2]\n"a"', '["a", 3]'), ('[4, 5]\n"b"', '["b", 9]')]


def encode_tests(pairs: list[tuple[str, str]], kind: str) -> str:
    return json.dumps([{"input": i, "output": o, "testtype": kind} for i, o in pairs])


def encode_private(pairs: list[tuple[str, str]], kind: str) -> str:
    """As on the hub: JSON, pickled, compressed, in base64."""
    return base64.b64encode(zlib.compress(pickle.dumps(encode_tests(pairs, kind)))).decode()


def record(number: int, **fields: Any) -> dict[str, Any]:
    function = number % 2 == 1
    kind = "functional" if function else "stdin"
    pairs = CALLS if function else STDIN
    return {
        "question_title": f"question-{number}",
        "question_content": f"Add {number} numbers.\n\nSample Input 1\n\n1 2",
        "platform": "leetcode" if function else "atcoder",
        "question_id": f"q{number}",
        "contest_id": "c",
        "contest_date": f"2024-{1 + number % 12:02}-15T07:30:00",
        "starter_code": "class Solution:\n    def add(self, a, b):\n        " if function else "",
        "difficulty": ("easy", "medium", "hard")[number % 3],
        "public_test_cases": encode_tests(pairs[:1], kind),
        "private_test_cases": encode_private(pairs[1:], kind),
        "metadata": json.dumps({"func_name": "add"} if function else {}),
        **fields,
    }


def write_release(folder: Path, release: str, records: list[dict[str, Any]]) -> Path:
    path = folder / files.FOLDER / files.RELEASES[release][0]
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    return path


@contextlib.contextmanager
def small_releases(folder: Path, sizes: Mapping[str, int]) -> Iterator[Path]:
    """Write releases with fewer problems than upstream's, numbered from 0, and expect so many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ASSAY_DATA_DIR", raising=False)
        patch.setenv("HF_HOME", str(folder / "hf"))
        first = 0
        for release, count in sizes.items():
            patch.setitem(files.RELEASES, release, (files.RELEASES[release][0], count))
            write_release(folder, release, [record(first + n) for n in range(count)])
            first += count
        yield folder
