"""Run work side by side: a lazy pool of threads, and a lock that many share or one holds alone."""

from assay.work.lock import FileRWLock, RWLock, ThreadRWLock, open_file_lock
from assay.work.pool import stream

__all__ = ["FileRWLock", "RWLock", "ThreadRWLock", "open_file_lock", "stream"]
