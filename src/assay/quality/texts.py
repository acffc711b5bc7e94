"""Load texts that models are measured on: pinned ones by name, or any file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import benchmarks
from assay.data.reading import FileReader
from assay.datasets import catalogue as data
from assay.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

WIKITEXT = "wikitext-2"
BUILT_IN = "built-in"


@dataclass(frozen=True, slots=True)
class LoadedText:
    """A text, or its first lines. The digest covers exactly what is here."""

    name: str
    content: str
    sha256: str


def load_text(
    name: str,
    limit_bytes: int = 0,
    announce: Callable[[str], None] = lambda _: None,
    data_dir: Path | None = None,
) -> LoadedText:
    """Return the pinned text of this name, or the file. A limit cuts it to whole lines."""
    if limit_bytes < 0:
        raise UsageError(f"--bytes: {limit_bytes} is negative. Give 0 or more.")
    names = [BUILT_IN]
    names += [known for known in data.data_files.names() if data.data_files.get(known).is_text]
    if name == BUILT_IN:
        content = _built_in()
    elif name in names:
        content = data.text(data.data_files.get(name), announce, data_dir)
    else:
        content = _read(Path(name), names)
    if limit_bytes:
        content = _first_lines(content, limit_bytes)
    if not content.strip():
        raise UsageError(f"{name}: has no text to measure. Give another file, or more --bytes.")
    return LoadedText(name, content, hashlib.sha256(content.encode()).hexdigest())


def _built_in() -> str:
    """Return code and its descriptions: the built-in benchmark's solutions."""
    return "\n".join(problem.reference for problem in benchmarks.load("mini").problems)


def _read(path: Path, names: list[str]) -> str:
    advice = f"Give a UTF-8 text file, or one of {', '.join(names)}"
    return FileReader(UsageError, advice, 1 << 30).read_text(path)


def _first_lines(content: str, limit: int) -> str:
    """Return whole lines up to the limit. A longer first line is cut at a character."""
    cut = content.encode()[:limit].decode(errors="ignore")
    whole = cut[: cut.rfind("\n") + 1]
    return cut if len(cut) == len(content) or not whole else whole
