"""Find the control groups that workers and supervisors make."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def groups_of(pids: Iterable[int]) -> set[Path]:
    """Return the control groups of these processes. Groups of others come and go meanwhile."""
    names = {f"assay-{int(pid)}" for pid in pids}
    return {
        Path(folder, name)
        for folder, below, _ in os.walk("/sys/fs/cgroup")  # skips what is gone
        for name in names.intersection(below)
    }


def has_control_groups() -> bool:
    return os.access("/sys/fs/cgroup/memory", os.W_OK) or os.access("/sys/fs/cgroup", os.W_OK)
