"""A worker's end of the lines that ``workers.process`` describes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
REPORT_S = 1.0  # between two reports of tokens


class Lines:
    """What the harness sends, and replies to it, from any thread.

    The input is read from the start, and its end ends the process, even one that still loads: the
    harness is gone then. Pauses are for those who wait for company.
    """

    def __init__(self, *, pauses: bool = False) -> None:
        self._pauses = pauses
        self._gpu_peak: Callable[[], int] | None = None
        self._replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # what an engine prints must not mix with the replies
        self._lock = threading.Lock()
        self._generated, self._reported = 0, time.monotonic()
        self.settings: dict[str, Any] = json.loads(sys.stdin.readline())
        self.requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def ready(
        self,
        *,
        used_gpu: bool,
        in_hand: int,
        facts: dict[str, object],
        scoring: dict[str, object] | None = None,
        gpu_peak: Callable[[], int] | None = None,
    ) -> None:
        """``gpu_peak`` tells the bytes of GPU memory that this process has had at most."""
        self._gpu_peak = gpu_peak if used_gpu else None
        told = {"used_gpu": used_gpu, "in_hand": in_hand, "facts": facts, "scoring": scoring or {}}
        self.reply({"ready": True, **told})

    def fatal(self, error: Exception) -> None:
        """Say in one line why the model cannot be loaded or run, and end."""
        lines = str(error).strip().splitlines()
        self.reply({"fatal": lines[0] if lines else type(error).__name__})
        os._exit(0)

    def reply(self, message: dict[str, Any]) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._replies.write(json.dumps(message) + "\n")
            self._replies.flush()

    def count(self, tokens: int) -> None:
        """Count generated tokens, and report their number at most once a second."""
        with self._lock:
            self._generated += tokens
            total, now = self._generated, time.monotonic()
            if now - self._reported < REPORT_S:
                return
            self._reported = now
        self.reply({"generated": total})

    def _listen(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "usage" in message:
                self.reply({"id": message["id"], **self._usage()})
            elif self._pauses or "pause" not in message:
                self.requests.put(message)
        os._exit(0)

    def _usage(self) -> dict[str, float | None]:
        on_gpu = None if self._gpu_peak is None else round(self._gpu_peak() / MIB, 1)
        return {"peak_mb": round(_peak_memory() / MIB, 1), "gpu_peak_mb": on_gpu}


def _peak_memory() -> int:
    """In bytes. Not by getrusage: that counts what the harness had when it started this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
