"""Digests of large files, read once: kept by the file's place, size, time and inode."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from assay.fetch._cache import cache_dir, file_sha256

if TYPE_CHECKING:
    from pathlib import Path

WORTH_KEEPING = 1 << 20


def kept_sha256(path: Path) -> str:
    """As ``file_sha256``; a file that was not touched since is not read again."""
    known = path.resolve().stat()
    if known.st_size < WORTH_KEEPING:
        return file_sha256(path)
    about = f"{path.resolve()}\n{known.st_size}\n{known.st_mtime_ns}\n{known.st_ino}"
    note = cache_dir() / "digests" / hashlib.sha256(about.encode()).hexdigest()
    with contextlib.suppress(OSError):
        if len(kept := note.read_text()) == hashlib.sha256().digest_size * 2:
            return kept
    digest = file_sha256(path)
    with contextlib.suppress(OSError):  # without a cache it is only slower
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(digest)
    return digest
