"""Judge the same programs with other harnesses that are installed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from assay.registry import Registry
from assay.types import SampleKey


@dataclass(frozen=True, slots=True)
class PeerVerdict:
    """The verdict of another harness: in all, by group of tests, and what it reports."""

    passed: bool
    groups: dict[str, bool] = field(default_factory=dict)
    detail: str = ""
    timed_out: bool = False  # by its own limits, which are of wall time


# From a benchmark's name, programs, a number of workers and the user's data folder, if there is
# one, to verdicts on all programs.
Judge = Callable[[str, Mapping[SampleKey, str], int, Path | None], dict[SampleKey, PeerVerdict]]

peers: Registry[Judge] = Registry("judge", "assay.peers")
