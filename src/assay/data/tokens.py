"""Read or make the token that clients of a server need."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path

from assay.data.reading import FileReader
from assay.data.writing import write_whole
from assay.errors import UsageError

LEAST = 16  # characters
MOST_BYTES = 4_096
TOKENS = FileReader(UsageError, "Give a file with one token, or a new name", MOST_BYTES)
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_token(path: Path) -> str:
    """Return the token of a file. If the file does not exist, write a random one into it.

    Raise UsageError if other users can read the file, or if the token is short.
    """
    if not path.exists():
        write_whole(path, f"{secrets.token_urlsafe(32)}\n", mode=0o600)
    token = TOKENS.read_text(path).strip()
    if path.stat().st_mode & OTHERS:
        raise UsageError(f"{path}: other users can read it. Run chmod 600 on it.")
    if len(token) < LEAST or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"{path}: is not a token of at least {LEAST} letters and digits. Delete the file; "
            "assay then creates a random token."
        )
    return token
