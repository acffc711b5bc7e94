"""Run work side by side: child processes, pools, dispatch to workers that may be lost, locks."""

from assay.work.lock import FileRWLock, RWLock, ThreadRWLock, open_file_lock
from assay.work.pool import PAUSE, run_in_background, stream

__all__ = [
    "PAUSE", "FileRWLock", "RWLock", "ThreadRWLock", "open_file_lock", "run_in_background",
    "stream",
]  # fmt: skip
