"""Run engines in separate processes: one JSON line in and out per prompt.

They are separate from the harness because bindings replace signal handlers, print, and abort the
whole process on some damaged files. Only a kill stops a process that waits for a GPU. A worker
module reads its settings, then questions until its input ends. It sends its facts, ``Ready`` and
replies, or sends ``Fatal`` and ends. ``workers.messages`` has all of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from assay.data import codec
from assay.errors import ModelError
from assay.models.facts import EngineFacts
from assay.models.workers.bytecode import bytecode_variables
from assay.models.workers.messages import (
    TO_HARNESS,
    EngineWorkerSettings,
    Fatal,
    Generated,
    Ready,
    Scoring,
    decode,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


T = TypeVar("T")
F = TypeVar("F", bound=EngineFacts)


@dataclass(frozen=True, slots=True)
class EngineWorker(Generic[F]):
    """The module that serves, the user's names for engine and model, and the type of its facts.

    ``environment`` has variables that the process gets in addition to ours.
    """

    module: str
    engine: str
    model: str
    facts: type[F]
    environment: Mapping[str, str] = field(default_factory=dict)


def make_environment(additional: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an engine's process: ours, these, and those that make it faster.

    Threads of llama.cpp and torch sleep while they wait for each other. They meet several hundred
    times per token. On busy cores a thread that spins takes the time that the thread it waits for
    needs. On two cores with a load average of 2 to 6 ``eval mini`` took 272 s, and 44 s without
    spinning (see benchmarks/busy.py). OpenMP takes this setting from the environment alone.
    """
    return {"OMP_WAIT_POLICY": "passive", **os.environ, **bytecode_variables(), **additional}


class EngineProcess(Generic[F]):
    """A model that loads, then answers in any order. Any thread may call ``kill``.

    The process loads nothing before it gets its settings. What it can import, it imports at once.
    """

    def __init__(self, worker: EngineWorker[F]) -> None:
        self._worker, self.has_settings, self.is_loaded = worker, False, False
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [sys.executable, "-m", worker.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=make_environment(worker.environment),
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the harness's to handle
        )
        self.used_gpu = False
        self.in_hand = 1
        self.answered_tokens = 0  # of all answers so far
        self.facts = worker.facts()
        self.scoring: Scoring | None = None
        self.on_generated: Callable[[int], None] = lambda _: None

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def load(self, settings: EngineWorkerSettings) -> None:
        """Make it load the model, and return at once."""
        self.has_settings = True
        self._write(json.dumps(codec.to_json(settings)) + "\n")

    def wait_until_loaded(self) -> None:
        self.facts = self.reply(self._worker.facts)
        ready = self.reply(Ready)
        self.is_loaded = True
        self.used_gpu, self.in_hand, self.scoring = ready.used_gpu, ready.in_hand, ready.scoring

    def send(self, message: object) -> None:
        """Send a message of a kind that the worker knows."""
        self._write(encode(message))

    def reply(self, kind: type[T]) -> T:
        """Return the next reply, which is of this kind.

        Raise ModelError if the process has ended, or reports why it cannot continue.
        """
        while isinstance(reply := self._next(), Generated):
            self.on_generated(reply.tokens)
        if not isinstance(reply, kind):
            raise TypeError(f"{type(reply).__name__} came instead of {kind.__name__}")
        return reply

    def _next(self) -> object:
        assert self._process.stdout is not None
        engine, model = self._worker.engine, self._worker.model
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            code, reason = self._process.wait(), self._last_words()
            self.close()
            raise ModelError(
                f"{model}: {engine} ended unexpectedly (exit {code}"
                f"{', ' + reason if reason else ''}). "
                "Completed work is saved; run the same command to resume."
            )
        reply: object = decode(line, (*TO_HARNESS, self._worker.facts))
        if isinstance(reply, Fatal):
            reason = reply.reason or self._last_words()
            self.close()
            doing = "run" if self.is_loaded else "load"
            raise ModelError(f"{model}: {engine} cannot {doing} it: {reason}")
        return reply

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Kill the process and free its pipes. Only for the thread that reads."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended; the next answer has the reason
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _last_words(self) -> str:
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else ""
