"""Render chat templates of transformers' tokenizers in a process with limits.

A template is a program that comes with a model. It may loop forever or write gigabytes, and a
single power of two large numbers holds Python's lock, so that no other thread can stop it. The
process is a fork of the engine's, so that the tokenizer's own method renders. It is forked with the
first conversation, while the engine is idle.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.data import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assay.types import Message

SECONDS = 10.0
MEMORY = 1 << 30  # on top of what the engine has
CHARACTERS = 1 << 23
PR_SET_PDEATHSIG = 1


class TemplateLimitError(Exception):
    """A chat template exceeded a limit: no prompt of this model can be rendered safely."""


class TemplateProcess:
    """Render messages with ``apply``, one conversation at a time."""

    def __init__(self, apply: Callable[[Any], str], seconds: float = SECONDS) -> None:
        self._apply, self._seconds = apply, seconds
        self._child = 0  # none yet

    def render(self, messages: Sequence[Message]) -> str:
        """Return the text. Raise ValueError if the template refuses, or TemplateLimitError."""
        question = json.dumps([codec.to_json(message) for message in messages]).encode() + b"\n"
        if not self._child:
            self._start()
        try:
            _write(self._questions, question)
            answer = json.loads(self._read())
        except (OSError, ValueError) as error:
            raise TemplateLimitError("rendering its chat template ended the process") from error
        if "limit" in answer:
            raise TemplateLimitError(answer["limit"])
        if "error" in answer:
            raise ValueError(answer["error"])
        return str(answer["text"])

    def close(self) -> None:
        if self._child:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            os.close(self._questions)
            os.close(self._answers)
            self._child = 0

    def _start(self) -> None:
        questions, self._questions = os.pipe()
        self._answers, answers = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            try:
                _serve(self._apply, questions, answers)
            finally:
                os._exit(1)
        os.close(questions)
        os.close(answers)

    def _read(self) -> bytes:
        """Return a line of the child process. Kill it if that takes too long."""
        deadline = time.monotonic() + self._seconds
        found = bytearray()
        while not found.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._answers], [], [], left)[0]:
                os.kill(self._child, signal.SIGKILL)
                raise TemplateLimitError(
                    f"rendering its chat template takes more than {self._seconds:g} s"
                )
            piece = os.read(self._answers, 1 << 16)
            if not piece:
                break
            found += piece
        return bytes(found)


def _serve(apply: Callable[[Any], str], questions: int, answers: int) -> None:
    """Answer until the engine has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.closerange(0, 2)
    os.closerange(3, min(questions, answers))
    os.closerange(max(questions, answers) + 1, os.sysconf("SC_OPEN_MAX"))
    _limit_memory()
    with os.fdopen(questions, "rb") as lines:
        for line in lines:
            _write(answers, json.dumps(_answer(apply, json.loads(line))).encode() + b"\n")


def _answer(apply: Callable[[Any], str], messages: Any) -> dict[str, str]:
    try:
        text = apply(messages)
    except MemoryError:
        return {"limit": f"rendering its chat template takes more than {MEMORY >> 30} GB"}
    except Exception as error:  # a template may raise anything
        return {"error": str(error)[:1000] or type(error).__name__}
    if len(text) > CHARACTERS:
        return {"limit": f"its chat template renders more than {CHARACTERS:,} characters"}
    return {"text": text}


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]
