"""Read LiveCodeBench's files as the Hugging Face hub has them (livecodebench/code_generation_lite).

A file can have more than a gigabyte, nearly all of it private tests. These stay packed.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import datetime
import hashlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.data import codec, text_cases
from assay.data.reading import MOST_RATIO, RATIO_FROM, FileReader, parse_json
from assay.datasets import cache_dir
from assay.datasets.catalogue import FOLDER_VARIABLE
from assay.errors import DataError
from assay.types import TextCases

FOLDER = "livecodebench"
VARIABLE = "ASSAY_LIVECODEBENCH_PATH"
SOURCE = "livecodebench/code_generation_lite on the Hugging Face hub"
REMEDY = f"Get the file again from {SOURCE}"
FILES = FileReader(DataError, REMEDY, 1 << 33)
# Of each release, what it adds to the one before: a file, and its problems.
RELEASES = {
    "v1": ("test.jsonl", 400),
    "v2": ("test2.jsonl", 111),
    "v3": ("test3.jsonl", 101),
    "v4": ("test4.jsonl", 101),
    "v5": ("test5.jsonl", 167),
    "v6": ("test6.jsonl", 175),
}


@dataclass(frozen=True, slots=True)
class LiveCodeBenchRecord:
    """A problem as the hub has it. Tests and metadata are JSON in a text."""

    question_title: str
    question_content: str
    platform: str
    question_id: str
    contest_date: str
    starter_code: str
    difficulty: str
    public_test_cases: str
    private_test_cases: str
    metadata: str


@dataclass(frozen=True, slots=True)
class LiveCodeBenchQuestion:
    """A problem with its tests, which are packed. ``function`` is empty for standard input."""

    record: LiveCodeBenchRecord
    function: str
    tests: TextCases


def releases_of(version: str) -> list[str]:
    """Return the releases of a version: ``v5`` is all up to the fifth, ``v5_v6`` is two of them."""
    names = list(RELEASES)
    first, _, last = version.rpartition("_")
    start = names.index(first) if first else 0
    return names[start : names.index(last) + 1]


def read_releases(
    releases: list[str], data_dir: Path | None
) -> tuple[list[LiveCodeBenchQuestion], str]:
    """Return the problems of these releases, and the digest of their files."""
    questions: list[LiveCodeBenchQuestion] = []
    digests = []
    for release in releases:
        name, count = RELEASES[release]
        path = find_file(name, data_dir)
        added, digest = _read_file(path)
        if len(added) != count:
            raise DataError(
                f"{path}: has {len(added)} problems instead of the {count} that LiveCodeBench "
                f"{release} adds. {REMEDY}."
            )
        questions += added
        digests.append(digest)
    ids = [question.record.question_id for question in questions]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise DataError(f"LiveCodeBench: has the problem {twice} twice. {REMEDY}.")
    return questions, codec.digest(digests)


def find_file(name: str, data_dir: Path | None) -> Path:
    """Return where a file is on this machine. Raise DataError that says where to put it."""
    for folder in _folders(data_dir):
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise DataError(
        f"{name} of LiveCodeBench: is not on this machine. Put it from {SOURCE} into "
        f"{cache_dir() / FOLDER}, or into {FOLDER}/ in a folder for --data."
    )


def _folders(data_dir: Path | None) -> Iterator[Path]:
    if folder := data_dir or os.environ.get(FOLDER_VARIABLE):
        yield Path(folder, FOLDER)
    if named := os.environ.get(VARIABLE):
        if not Path(named).is_dir():
            raise DataError(f"{VARIABLE}: {named} is not a folder. Correct or unset it.")
        yield Path(named)
    yield cache_dir() / FOLDER
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    snapshots = hub / "datasets--livecodebench--code_generation_lite" / "snapshots"
    yield from sorted(snapshots.iterdir()) if snapshots.is_dir() else []


def _read_file(path: Path) -> tuple[list[LiveCodeBenchQuestion], str]:
    digest = hashlib.sha256()
    questions = []
    for number, line in enumerate(FILES.lines(path), 1):
        digest.update(line)
        if not line.strip():
            continue
        try:
            questions.append(_read_question(parse_json(line, any_number=True)))
        except (ValueError, TypeError, MemoryError) as error:
            why = str(error) or "too large for this machine's memory"
            raise DataError(
                f"{path}, line {number}: is not a problem of LiveCodeBench ({why}). {REMEDY}."
            ) from error
    return questions, digest.hexdigest()


def _read_question(data: Any) -> LiveCodeBenchQuestion:
    if not isinstance(data, dict):
        raise ValueError("not an object")
    names = LiveCodeBenchRecord.__dataclass_fields__
    if missing := next((name for name in names if not isinstance(data.get(name), str)), None):
        raise ValueError(f"{missing} is not a text")
    record = LiveCodeBenchRecord(**{name: data[name] for name in names})
    if not (record.question_id.strip() and record.question_id.isprintable()):
        raise ValueError("question_id is not an id")
    datetime.date.fromisoformat(record.contest_date[:10])
    function = _read_function(record.metadata)
    parts = (_pack(record.public_test_cases), _pack_private(record.private_test_cases))
    # Its large field is packed now.
    small = dataclasses.replace(record, private_test_cases="")
    cases = text_cases.from_parts(parts, "calls" if function else "stdin")
    return LiveCodeBenchQuestion(small, function, cases)


def _read_function(metadata: str) -> str:
    """Return the name of the function that tests call, or an empty text for standard input."""
    data = parse_json(metadata or "{}")
    if not isinstance(data, dict):
        raise ValueError("the metadata is not an object")
    function = data.get("func_name") or ""
    if not isinstance(function, str) or (function and not function.isidentifier()):
        raise ValueError("func_name is not a name")
    return function


def _pack(tests: str) -> bytes:
    """Return JSON in packed form, if it is a list of cases."""
    text_cases.parse_pairs(tests)
    return zlib.compress(tests.encode(errors="surrogatepass"), 1)


def _pack_private(tests: str) -> bytes:
    """Return private tests: JSON, or JSON that was pickled, compressed and written in base64."""
    if tests.lstrip().startswith("["):
        return _pack(tests)
    try:
        part = base64.b64decode(tests, validate=True)
    except binascii.Error as error:
        raise ValueError(f"the private tests are not base64: {error}") from error
    try:
        # Its checksum, and that there is nothing but a string. Its cases are read when they are
        # needed: that takes longer than everything else here.
        most = min(text_cases.MOST_BYTES, max(RATIO_FROM, MOST_RATIO * len(part)))
        cases = text_cases.unpack_part(part, most).strip()
        if not (cases.startswith("[") and cases.endswith("]")):
            raise ValueError("not a list of test cases")
    except ValueError as error:
        raise ValueError(f"the private tests are damaged: {error}") from error
    return part
