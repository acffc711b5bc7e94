"""The registry of formats. Adding one is adding a file to ``formats``."""

from __future__ import annotations

from collections.abc import Callable

from assay.errors import UsageError
from assay.registry import Registry
from assay.report.leaderboard.board import Leaderboard, LeaderboardBlock

Renderer = Callable[[Leaderboard], str]
renderers: Registry[Renderer] = Registry(
    "leaderboard format", "assay.report.leaderboard.formats", plug_ins=False
)


def render(board: Leaderboard, form: str) -> str:
    """Return a leaderboard in a format, with a newline at its end."""
    return renderers.get(form)(board)


def only_block(board: Leaderboard, form: str) -> LeaderboardBlock:
    """Return the block of a format that has no place for protocols. Raise UsageError for others."""
    if len(board.blocks) != 1:
        raise UsageError(
            f"--format {form}: holds one protocol per benchmark, and there are "
            f"{len(board.blocks)} blocks that are not comparable. Choose one with --block."
        )
    return board.blocks[0]
