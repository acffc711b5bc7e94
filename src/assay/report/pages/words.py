"""Say figures of pages in words."""

from __future__ import annotations

from datetime import datetime

from assay.scoring.power import POWER, detectable_difference
from assay.types import Estimate

# How many problems only one of two models passes: checkpoints of one training, other families.
DISCORDANCES = ((0.10, "checkpoints of one training"), (0.25, "models of different families"))
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as ``12.3``, in per cent, or a dash."""
    return DASH if value is None else f"{100 * value:.{digits}f}"


def ends(estimate: Estimate) -> str:
    """Return an interval as ``68.5 - 81.5`` in per cent, with a real dash."""
    return f"{100 * estimate.low:.1f}\N{THIN SPACE}{DASH}\N{THIN SPACE}{100 * estimate.high:.1f}"


def signed(value: float, digits: int = 1) -> str:
    """Return points with a sign: ``+1.2``, a real minus, and no sign for zero."""
    shown = f"{100 * value:+.{digits}f}"
    return shown[1:] if float(shown) == 0 else shown.replace("-", MINUS)


def day(timestamp: str) -> str:
    """Return ``17 Nov 2026, 05:43`` from ISO text, or the text itself if it is something else."""
    try:
        found = datetime.fromisoformat(timestamp)
    except ValueError:
        return timestamp[:40]
    return f"{found.day} {found:%b %Y, %H:%M}"


def duration(seconds: float) -> str:
    """Return ``45 s``, ``12 min`` or ``3.5 h``."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def count(number: int, noun: str) -> str:
    """Return ``1,140 problems`` or ``1 problem``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def could_show(problems: int) -> str:
    """Say which difference a paired comparison over so many problems shows."""
    parts = []
    for discordance, kind in DISCORDANCES:
        smallest = detectable_difference(problems, discordance) if problems else None
        if smallest is not None:
            parts.append(f"{100 * smallest:.1f} points between {kind}")
    if not parts:
        return f"{count(problems, 'problem')} are too few to show any difference between models."
    return (
        f"A paired comparison over {count(problems, 'problem')} shows differences from "
        f"{' or '.join(parts)}, with {100 * POWER:g} % power."
    )
