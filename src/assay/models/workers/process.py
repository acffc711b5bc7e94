"""Engines in processes of their own: one JSON line in and out per prompt.

Apart from the harness because bindings replace signal handlers, print, and abort the whole process
on some damaged files, and because what waits for a GPU can only be stopped by a kill. A worker
module reads the settings, then requests until its input ends, and replies

    {"ready": true, "used_gpu": …, "in_hand": …, "facts": {…}, "scoring": {…}}
    {"fatal": "why"}                                              and ends, now or later
    {"id", "text", "finish_reason", "prompt_tokens", "tokens_generated", "ms", "logprob", "error"}

    {"generated": 123}                                            tokens so far, now and then
    {"id", "rendered": {"text", "tokens", "pieces"}, "error"}     to {"id", "render": prompt}
    {"id", "peak_mb", "gpu_peak_mb"}                              to {"id", "usage": true}
    {"ready": true, …} or {"fatal": "why"}                        to {"id", "generate": settings}

A line {"pause": true} says that no request follows for now: none need wait for company.

``in_hand`` is how many requests it wants to hold, so that none of its sequences is ever idle;
``facts`` is what a result must record of how it runs. ``scoring`` is there if the process answers
the questions of ``score_lines``: its own ``facts``, ``context`` and ``at_once``. A process that was
started to score alone holds no requests (``in_hand`` is 0) until ``generate`` says how to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from assay import codec
from assay.errors import ModelError
from assay.models import EngineOptions, Rendered, Usage, failed
from assay.models.gpu import driver_gpu
from assay.models.settings import OFF, template_variables
from assay.thoughts import has_thoughts
from assay.types import Completion, Decoding, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from assay.models import Loading
    from assay.progress import Reporter
    from assay.types import ModelIdentity, Prompt


class EngineProcess:
    """A model that loads, then answers in any order. ``kill`` may come from any thread."""

    def __init__(self, module: str, engine: str, model: str, settings: dict[str, Any]) -> None:
        self._engine, self._model, self._loaded = engine, model, False
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is the harness's to handle
        )
        self.used_gpu = False
        self.in_hand = 1
        self.facts: dict[str, object] = {}
        self.scoring: dict[str, Any] = {}
        self.on_generated: Callable[[int], None] = lambda _: None
        self.send(settings)

    def wait_until_loaded(self) -> None:
        reply = self.answer()
        self._loaded = True
        self.used_gpu, self.in_hand = bool(reply["used_gpu"]), int(reply["in_hand"])
        self.facts, self.scoring = reply["facts"], reply["scoring"]

    def ask(self, identifier: int, request: Request) -> None:
        self.send({"id": identifier, **codec.to_json(request)})

    def ask_how(self, prompt: Prompt) -> None:
        """Ask how the model is given this prompt."""
        self.send({"id": 0, "render": codec.to_json(prompt)})

    def ask_to_generate(self, settings: dict[str, Any]) -> None:
        """Ask a process that only scores to take requests too; wait until it is ready again."""
        self.send({"id": 0, "generate": settings})

    def ask_usage(self) -> None:
        """Ask for the memory it has taken."""
        self.send({"id": 0, "usage": True})

    def pause(self) -> None:
        self.send({"pause": True})

    def answer(self) -> dict[str, Any]:
        """The next reply; ModelError when the process is gone, or says why it cannot go on."""
        while "generated" in (reply := self._next()):
            self.on_generated(reply["generated"])
        return reply

    def _next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            code, reason = self._process.wait(), self._last_words()
            self.close()
            raise ModelError(
                f"{self._engine} ended while it ran {self._model} (exit {code}"
                f"{', ' + reason if reason else ''}); what was made is kept, run again to continue"
            )
        reply: dict[str, Any] = json.loads(line)
        if "fatal" in reply:
            reason = reply["fatal"] or self._last_words()
            self.close()
            doing = "run" if self._loaded else "load"
            raise ModelError(f"{self._engine} cannot {doing} {self._model}: {reason}")
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

    def send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended; the next answer says how
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _last_words(self) -> str:
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else ""


class ProcessModel:
    """A model whose engine starts with the first request and ends with the last, unless it is kept.

    Engines inherit it: they say which module serves, and with which settings.
    """

    identity: ModelIdentity
    scoring_module = ""  # what scores given tokens, where the engine can; maybe the same module
    reporter: Reporter | None = None

    def __init__(self, module: str, engine: str, model: str) -> None:
        self._names = module, engine, model
        self.template = ""  # for chats; engines set both
        self.options = EngineOptions()
        self._process: EngineProcess | None = None
        self._scoring: EngineProcess | None = None  # where another module scores
        self._facts: dict[str, object] = {}
        self._kept = False

    def settings(self, first: Request) -> dict[str, Any]:
        """What the worker is told before it loads; ``first`` is typical of the requests."""
        raise NotImplementedError

    def scoring_settings(self) -> dict[str, Any]:
        """The same for a worker of ``scoring_module``."""
        raise NotImplementedError

    def gpu(self) -> str:
        return driver_gpu()

    def scoring_process(self) -> EngineProcess:
        """Return a loaded process that scores; ``end_scoring`` gives it back."""
        module, engine, model = self._names
        shared = self.scoring_module == module
        found = self._process if shared else self._scoring
        if found is None:
            found = EngineProcess(self.scoring_module, engine, model, self.scoring_settings())
            if shared:
                self._process = found
            else:
                self._scoring = found
            try:
                found.wait_until_loaded()
            except BaseException:
                self.end()
                raise
        return found

    def end_scoring(self, *, keep: bool = False) -> None:
        """End the process, unless the model is kept loaded, or this one can serve the next call."""
        if not self._kept and not (keep and self._process is not None):
            self.end()

    @property
    def has_marks(self) -> bool:
        """Whether thoughts may be marked in what the model says."""
        return self.identity.prompt_form == "chat" and has_thoughts(self.template)

    @property
    def thinks(self) -> bool:
        return self.has_marks and self.options.thinking != OFF

    def template_settings(self) -> dict[str, Any]:
        """Return what a worker must know to render the chat template."""
        return {
            "thinking": self.options.thinking,
            "variables": template_variables(self.options),
        }

    def render(self, prompt: Prompt) -> Rendered:
        with self._serving():
            process = self._started(Request("", 0, prompt, Decoding(max_tokens=1), 0))
            process.ask_how(prompt)
            reply = process.answer()
        if reply["error"]:
            raise ModelError(f"{self.identity.name} cannot be given this prompt: {reply['error']}")
        return codec.from_json(Rendered, reply["rendered"])

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        waiting: dict[int, Request] = {}
        with self._serving():
            for number, request in enumerate(requests):
                process = self._started(request)
                process.ask(number, request)
                waiting[number] = request
                if len(waiting) >= process.in_hand:
                    yield _completion(process, waiting)
            if waiting:
                process.pause()
            while waiting:
                yield _completion(process, waiting)

    def describe(self) -> dict[str, object]:
        return {**self._facts, "thinks": True} if self.thinks else dict(self._facts)

    @contextlib.contextmanager
    def kept_loaded(self) -> Iterator[Loading]:
        before, self._kept = self._kept, True
        try:
            yield "kept"
        finally:
            self._kept = before
            if not before:
                self.end()

    def usage(self) -> Usage | None:
        if self._process is None:
            return None
        with self._serving():
            self._process.ask_usage()
            reply = self._process.answer()
        return Usage(reply["peak_mb"], reply["gpu_peak_mb"])

    def close(self) -> None:
        for process in (self._process, self._scoring):
            if process is not None:
                process.kill()

    @contextlib.contextmanager
    def _serving(self) -> Iterator[None]:
        """End the engine afterwards, unless it is kept and nothing is left unanswered."""
        answered = False
        try:
            yield
            answered = True
        finally:
            if not (self._kept and answered):
                self.end()

    def end(self) -> None:
        """End what is loaded; only for the thread that reads its answers."""
        for process in (self._process, self._scoring):
            if process is not None:
                process.close()
        self._process = self._scoring = None

    def _started(self, request: Request) -> EngineProcess:
        process = self._process
        if process is None or not process.in_hand:
            if self.reporter is not None:
                self.reporter.loading()
            if process is None:
                # Known before it is loaded, so that close() can end the loading too.
                process = self._process = EngineProcess(*self._names, self.settings(request))
            else:
                process.ask_to_generate(self.settings(request))
            if self.reporter is not None:
                process.on_generated = self.reporter.generating
            process.wait_until_loaded()
            process.on_generated(0)
            self._facts = process.facts
        return process


def _completion(process: EngineProcess, waiting: dict[int, Request]) -> Completion:
    reply = process.answer()
    request = waiting.pop(reply["id"])
    if reply["error"]:
        without = failed(*request.key, reply["error"], request.seed)
        return dataclasses.replace(without, used_gpu=process.used_gpu)
    return Completion(
        task_id=request.task_id,
        sample=request.sample,
        text=reply["text"],
        finish_reason=reply["finish_reason"],
        prompt_tokens=reply["prompt_tokens"],
        tokens_generated=reply["tokens_generated"],
        inference_ms=reply["ms"],
        seed=request.seed,
        used_gpu=process.used_gpu,
        logprob=reply["logprob"],
    )
