"""A worker's end of the lines that ``_engine_process`` describes."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Lines:
    """What the harness sends, and replies to it, from any thread."""

    def __init__(self) -> None:
        self._replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # what an engine prints must not mix with the replies
        self._lock = threading.Lock()
        self.settings: dict[str, Any] = json.loads(sys.stdin.readline())

    def ready(self, *, used_gpu: bool, in_hand: int, facts: dict[str, object]) -> None:
        self.reply({"ready": True, "used_gpu": used_gpu, "in_hand": in_hand, "facts": facts})

    def fatal(self, reason: str) -> None:
        self.reply({"fatal": reason})

    def requests(self) -> Iterator[dict[str, Any]]:
        for line in sys.stdin:
            yield json.loads(line)

    def reply(self, message: dict[str, Any]) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._replies.write(json.dumps(message) + "\n")
            self._replies.flush()
