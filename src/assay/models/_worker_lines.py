"""A worker's end of the lines that ``_engine_process`` describes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from typing import Any


class Lines:
    """What the harness sends, and replies to it, from any thread.

    The input is read from the start, and its end ends the process, even one that still loads: the
    harness is gone then.
    """

    def __init__(self) -> None:
        self._replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # what an engine prints must not mix with the replies
        self._lock = threading.Lock()
        self.settings: dict[str, Any] = json.loads(sys.stdin.readline())
        self.requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def ready(self, *, used_gpu: bool, in_hand: int, facts: dict[str, object]) -> None:
        self.reply({"ready": True, "used_gpu": used_gpu, "in_hand": in_hand, "facts": facts})

    def fatal(self, error: Exception) -> None:
        """Say in one line why the model cannot be loaded, and end."""
        lines = str(error).strip().splitlines()
        self.reply({"fatal": lines[0] if lines else type(error).__name__})
        os._exit(0)

    def reply(self, message: dict[str, Any]) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._replies.write(json.dumps(message) + "\n")
            self._replies.flush()

    def _listen(self) -> None:
        for line in sys.stdin:
            self.requests.put(json.loads(line))
        os._exit(0)
