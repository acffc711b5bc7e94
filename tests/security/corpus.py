"""The whole forging corpus, and how a program of it is adapted to another task."""

from __future__ import annotations

from tests.security.forgeries import ENTRY_POINT, FORGERIES
from tests.security.forgeries_answers import FORGERIES_ANSWERS
from tests.security.forgeries_files import FORGERIES_FILES
from tests.security.forgeries_hints import FORGERIES_HINTS
from tests.security.forgeries_leaving import FORGERIES_LEAVING
from tests.security.forgeries_memory import FORGERIES_MEMORY
from tests.security.forgeries_odd_ways import FORGERIES_ODD_WAYS

CORPUS = (
    *FORGERIES, *FORGERIES_MEMORY, *FORGERIES_FILES, *FORGERIES_HINTS, *FORGERIES_ANSWERS,
    *FORGERIES_LEAVING, *FORGERIES_ODD_WAYS,
)  # fmt: skip
HEAD = f"def {ENTRY_POINT}(numbers):"


def adapt(code: str, entry_point: str) -> str:
    """Return the program with its function renamed, and willing to take any arguments."""
    willing = f"def {ENTRY_POINT}(numbers=None, *_more, **_named):"
    return code.replace(HEAD, willing).replace(ENTRY_POINT, entry_point)
