"""Where progress and notes go."""

from __future__ import annotations

from collections.abc import Callable

Announce = Callable[[str], None]  # takes one line for the user
