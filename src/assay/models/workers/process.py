"""Run engines in separate processes: one JSON line in and out per prompt.

They are separate from the harness because bindings replace signal handlers, print, and abort the
whole process on some damaged files. Only a kill stops a process that waits for a GPU. A worker
module reads its settings, then questions until its input ends. It sends its facts, ``Ready`` and
replies, or sends ``Fatal`` and ends. ``workers.engine_messages`` has all of them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from assay.data import codec
from assay.datasets import cache_dir, check_private
from assay.errors import ModelError
from assay.models.model import EngineFacts
from assay.models.workers.engine_messages import (
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
PACKAGE = "torch"  # the largest; how it is installed shows how the others are
FOLDER = "PYTHONPYCACHEPREFIX"
NEVER_WRITE = "PYTHONDONTWRITEBYTECODE"


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


def bytecode_variables(package: str = PACKAGE) -> dict[str, str]:
    """Return variables that make Python keep compiled modules in the cache folder.

    Many container images install packages uncompiled and set ``PYTHONDONTWRITEBYTECODE``. Python
    then compiles torch and transformers whenever an engine starts: some thousand modules, which
    takes longer than loading a small model. There are no variables if the package is compiled, or
    if Python will keep what it compiles anyway.
    """
    code = _find_code(package)
    if code is None or os.environ.get(FOLDER):
        return {}
    compiled = Path(importlib.util.cache_from_source(str(code)))
    can_write = not os.environ.get(NEVER_WRITE) and os.access(code.parent, os.W_OK)
    if compiled.exists() or can_write:
        return {}
    folder = cache_dir().absolute() / "bytecode"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        check_private(folder)  # whoever can write to it can make an engine run anything
    except OSError:
        return {}
    return {FOLDER: str(folder / _digest_packages(code.parent.parent)), NEVER_WRITE: ""}


def _find_code(package: str) -> Path | None:
    """Return the package's first module, or None if there is no such file."""
    with contextlib.suppress(ValueError):  # a stand-in that a program put into sys.modules
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            return Path(spec.origin)
    return None


def _digest_packages(folder: Path) -> str:
    """Return a digest of the packages in a folder, with their versions.

    Python compares only time and size, which images that are built reproducibly do not change.
    """
    names = sorted(path.name for path in folder.glob("*.dist-info"))
    return codec.digest([sys.version, str(folder), names])[:16]
