"""Seal cache entries: an entry counts only if this user's key made its seal.

The key is not in the cache but in the user's configuration folder. So a cache that was copied from
another machine, unpacked from an archive or written by someone else has no valid entry.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from assay.data.reading import FileReader
from assay.data.writing import write_whole
from assay.datasets.cache import cache_dir, file_sha256
from assay.errors import AssayError, DataError

KEY_BYTES = 32
WORTH_KEEPING = 1 << 20  # bytes of a file whose digest is cached
ENTRIES = FileReader(DataError, "Delete it", 1 << 30, follow=False, unpack=False)


def write_sealed(path: Path, purpose: str, content: bytes) -> None:
    """Write a cache entry. A failed write costs time later, nothing else."""
    with contextlib.suppress(OSError, AssayError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, _seal(purpose, content) + b"\n" + content, 0o600, durable=False)


def read_sealed(path: Path, purpose: str) -> bytes | None:
    """Return the content of a cache entry, or None if there is no intact one."""
    try:
        seal, _, content = ENTRIES.read_bytes(path).partition(b"\n")
    except AssayError:
        return None
    return content if hmac.compare_digest(seal, _seal(purpose, content)) else None


def _seal(purpose: str, content: bytes) -> bytes:
    about = purpose.encode()
    message = len(about).to_bytes(8, "big") + about + content
    return hmac.digest(_key(_key_path()), message, "sha256").hex().encode()


def _key_path() -> Path | None:
    try:
        folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    except RuntimeError:  # a user without a home folder
        return None
    return Path(folder, "assay", "seal.key")


@functools.cache
def _key(path: Path | None) -> bytes:
    """Return the user's key, which is created on first use.

    If none can be stored, this process uses its own key and finds no entries of others.
    """
    try:
        return _load_or_create(path) if path else secrets.token_bytes(KEY_BYTES)
    except OSError:
        return secrets.token_bytes(KEY_BYTES)


def _load_or_create(path: Path) -> bytes:
    if not path.is_symlink() and not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _create(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        key = file.read(KEY_BYTES + 1) if stat.S_ISREG(found.st_mode) else b""
    is_private = found.st_uid in (os.geteuid(), 0) and not found.st_mode & 0o077
    if len(key) != KEY_BYTES or not is_private:
        raise DataError(
            f"{path}: is not a key that only you can read. Delete it. Cached verdicts are "
            "then computed again."
        )
    return key


def _create(path: Path) -> None:
    """Store a new key in one step: of several processes, the first wins."""
    fresh = path.with_name(f".{secrets.token_hex(8)}.part")
    write_whole(fresh, secrets.token_bytes(KEY_BYTES), 0o600)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def look_up_sha256(path: Path) -> str:
    """Return the same as ``file_sha256``. A file that is unchanged since is not read again."""
    known = path.resolve().stat()
    if known.st_size < WORTH_KEEPING:
        return file_sha256(path)
    about = f"{path.resolve()}\n{known.st_size}\n{known.st_mtime_ns}\n{known.st_ino}"
    note = cache_dir() / "digests" / hashlib.sha256(about.encode()).hexdigest()
    if (known_digest := read_sealed(note, about)) is not None:
        return known_digest.decode()
    digest = file_sha256(path)
    write_sealed(note, about, digest.encode())
    return digest
