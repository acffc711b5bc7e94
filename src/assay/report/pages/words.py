"""Say figures of pages in words."""

from __future__ import annotations

from datetime import datetime

from assay.scoring.power import POWER, detectable_difference
from assay.types import Estimate

# How many problems only one of two models passes: checkpoints of one training, other families.
DISCORDANCES = ((0.10, "checkpoints of one training"), (0.25, "models of different families"))
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as ``12.3``, in per cent, or a dash."""
    return DASH if value is None else f"{100 * value:.{digits}f}"


def ends(estimate: Estimate) -> str:
    """Return the interval of an estimate."""
    return range_of(estimate.low, estimate.high)


def range_of(low: float, high: float) -> str:
    """Return shares as ``68.5 - 81.5`` in per cent, with a real dash."""
    return f"{100 * low:.1f}\N{THIN SPACE}{DASH}\N{THIN SPACE}{100 * high:.1f}"


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


def count(number: int, noun: str) -> str:
    """Return ``1,140 problems`` or ``1 problem``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def could_show(problems: int) -> str:
    """Say which difference a paired comparison over so many problems shows."""
    over = f"With {count(problems, 'problem')}, a paired comparison"
    found = [
        (smallest, kind)
        for discordance, kind in DISCORDANCES
        if problems and (smallest := detectable_difference(problems, discordance)) is not None
    ]
    if not found:
        return f"{over} shows no difference between models: they are too few."
    power = f"({100 * POWER:g} % power)"
    if len({f"{100 * smallest:.1f}" for smallest, _ in found}) == 1:
        return f"{over} shows differences of {100 * found[0][0]:.1f} points and more {power}."
    parts = [f"{100 * smallest:.1f} points between {kind}" for smallest, kind in found]
    return f"{over} shows differences from {' and from '.join(parts)} {power}."


def probability(value: float) -> str:
    """Return a p-value as people write it: ``0.031``, ``5.0 * 10^-12`` with real signs."""
    if value >= 0.0001 or value <= 0:
        return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}\N{THIN SPACE}×\N{THIN SPACE}10{str(int(power)).translate(SUPERSCRIPTS)}"
