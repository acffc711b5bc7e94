"""The harness's end of a llama.cpp worker process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from assay.errors import ModelError


class LlamaEngine:
    """A model that loads, then answers in any order. ``kill`` may come from any thread."""

    def __init__(self, path: Path, parallel: int, context: int) -> None:
        self._path = path
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "assay.models._llama_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the harness's to handle
        )
        self.used_gpu = False
        self._send({"path": str(path), "parallel": parallel, "context": context})

    def wait_until_loaded(self) -> None:
        reply = self.answer()
        if "fatal" in reply:
            reason = self._last_words() or reply["fatal"]
            self.close()
            raise ModelError(f"llama.cpp cannot load {self._path}: {reason}")
        self.used_gpu = bool(reply["used_gpu"])

    def ask(self, identifier: int, body: dict[str, Any]) -> None:
        self._send({"id": identifier, "body": body})

    def answer(self) -> dict[str, Any]:
        """The next reply; ModelError when the process is gone."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            code, reason = self._process.wait(), self._last_words()
            self.close()
            raise ModelError(
                f"llama.cpp ended while it ran {self._path.name} (exit {code}"
                f"{', ' + reason if reason else ''}); what was made is kept, run again to continue"
            )
        reply: dict[str, Any] = json.loads(line)
        return reply

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Kill, and free what reading needs: only for the thread that reads."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended; the next answer says how
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _last_words(self) -> str:
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else ""
