"""Define a model whose engine is a process, which engines inherit."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from assay.errors import ModelError
from assay.formats.marks import describe_missing, thought_tags
from assay.models import EngineOptions, LoadedOnDemand, Rendered, Usage, failed
from assay.models.devices import driver_gpu
from assay.models.model import EngineFacts, join_answer
from assay.models.options import OFF
from assay.models.workers.engine_messages import (
    Ask,
    AskUsage,
    EngineWorkerSettings,
    Pause,
    Render,
    RenderReply,
    Reply,
)
from assay.models.workers.process import EngineProcess, EngineWorker
from assay.types import Completion, Decoding, Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from assay.formats.marks import Gap
    from assay.progress import Reporter
    from assay.types import ModelIdentity

F = TypeVar("F", bound=EngineFacts)


class ProcessModel(LoadedOnDemand, Generic[F]):
    """A model whose engine is a process.

    Engines inherit it. They define which module serves, and its settings.
    """

    identity: ModelIdentity
    scoring_module = ""  # what scores given tokens, where the engine can; maybe the same module
    reporter: Reporter | None = None

    def __init__(self, worker: EngineWorker[F]) -> None:
        self._worker = worker
        self.template = ""  # for chats; engines set both
        self.options = EngineOptions()
        self._processes: dict[str, EngineProcess[F]] = {}  # by module: one may score
        self._facts = worker.facts()  # nothing is known yet

    def set_environment(self, variables: Mapping[str, str]) -> None:
        """Give variables to the processes that are started from now on."""
        self._worker = dataclasses.replace(self._worker, environment=variables)

    def settings(self, first: Request) -> EngineWorkerSettings:
        """Return the worker's settings. ``first`` is typical of the requests."""
        raise NotImplementedError

    def scoring_settings(self) -> EngineWorkerSettings:
        """Return the settings for a worker of ``scoring_module``."""
        raise NotImplementedError

    def start_generating(self, first: Request) -> object:
        """Return the message that makes a process which only scored accept requests too."""
        raise NotImplementedError

    def find_gap(self) -> Gap | None:
        """Return how the model marks a gap to fill in, or None. Engines override this."""
        return None

    @functools.cached_property
    def gap(self) -> Gap:
        """Return the model's tokens around a gap. Raise ModelError if it has none."""
        if (gap := self.find_gap()) is None:
            raise ModelError(describe_missing(self.identity.name))
        return gap

    def check_infilling(self) -> str:
        return f"prefix, suffix and middle are marked by {self.gap.tokens}"

    def check_prefilling(self) -> None:
        """Return: every engine that is a process renders the beginning of an answer."""

    def _gap_for(self, prompt: Prompt) -> Gap | None:
        return None if prompt.suffix is None else self.gap

    def gpu(self) -> str:
        return driver_gpu()

    @property
    def _process(self) -> EngineProcess[F] | None:
        return self._processes.get(self._worker.module)

    def scoring_process(self) -> EngineProcess[F]:
        """Return a loaded process that scores. ``end_scoring`` returns it."""
        process = self._begin_to_load(self.scoring_module, self.scoring_settings)
        if not process.is_loaded:
            try:
                process.wait_until_loaded()
            except BaseException:
                self.end()
                raise
        return process

    def end_scoring(self, *, then_generate: bool = False) -> None:
        """End the process, unless the model is kept loaded.

        With ``then_generate``, a process that can also generate stays, and one that cannot is
        ended in any case: it would hold the model a second time.
        """
        if not then_generate:
            if not self._kept:
                self.end()
        elif self.scoring_module != self._worker.module and self.scoring_module in self._processes:
            self._processes.pop(self.scoring_module).close()

    @property
    def chat_template(self) -> str:
        """Return the template if prompts are chats, otherwise an empty text."""
        return self.template if self.identity.prompt_form == "chat" else ""

    @property
    def thinks(self) -> bool:
        return thought_tags(self.chat_template) is not None and self.options.thinking != OFF

    def render(self, prompt: Prompt) -> Rendered:
        with self.serving():
            process = self._start(Request("", 0, prompt, Decoding(max_tokens=1), 0))
            process.send(Render(prompt, self._gap_for(prompt)))
            reply = process.reply(RenderReply)
        if reply.error:
            raise ModelError(f"{self.identity.name}: cannot process this prompt ({reply.error}).")
        return reply.rendered

    @contextlib.contextmanager
    def start_early(self) -> Iterator[None]:
        if self._process is None:
            self._processes[self._worker.module] = EngineProcess(self._worker)
        try:
            yield
        finally:
            self.end()

    def preload(self, decoding: Decoding) -> None:
        self._begin_to_generate(Request("", 0, Prompt(), decoding, 0))

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        waiting: dict[int, Request] = {}
        with self.serving():
            for number, request in enumerate(requests):
                process = self._start(request)
                if not number:
                    self._report_tokens(process)
                process.send(Ask(number, request, self._gap_for(request.prompt)))
                waiting[number] = request
                if len(waiting) >= process.in_hand:
                    yield _completion(process, waiting)
            if waiting:
                process.send(Pause())
            while waiting:
                yield _completion(process, waiting)

    def describe(self) -> EngineFacts:
        return self._facts

    def usage(self) -> Usage | None:
        if self._process is None or not self._process.is_loaded:
            return None
        with self.serving():
            self._process.send(AskUsage())
            return self._process.reply(Usage)

    def close(self) -> None:
        for process in list(self._processes.values()):
            process.kill()

    def end(self) -> None:
        """End every loaded process. Only for the thread that reads the answers."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    def _start(self, request: Request) -> EngineProcess[F]:
        process = self._process
        if process is None or not (process.is_loaded and process.in_hand):
            if self.reporter is not None:
                self.reporter.loading()
            if process is not None and process.is_loaded:  # it only scored so far
                process.send(self.start_generating(request))
            else:
                process = self._begin_to_generate(request)
            process.wait_until_loaded()
            self._facts = process.facts
        return process

    def _begin_to_generate(self, typical: Request) -> EngineProcess[F]:
        return self._begin_to_load(self._worker.module, lambda: self.settings(typical))

    def _begin_to_load(
        self, module: str, settings: Callable[[], EngineWorkerSettings]
    ) -> EngineProcess[F]:
        """Return the module's process: one that waits for settings gets them, or a new one does.

        The settings come first, because an error in them must not leave a process behind. The
        process is stored before it is loaded: close() can end the loading too.
        """
        process = self._processes.get(module)
        if process is None or not process.has_settings:
            message = settings()
            if process is None or not process.is_running:
                if process is not None:
                    process.close()
                process = EngineProcess(dataclasses.replace(self._worker, module=module))
                self._processes[module] = process
            process.load(message)
        return process

    def _report_tokens(self, process: EngineProcess[F]) -> None:
        """Report the tokens of the following answers, without those of earlier calls."""
        reporter, before = self.reporter, process.answered_tokens
        if reporter is None:
            return

        def report(tokens: int) -> None:
            reporter.generating(max(0, tokens - before))

        process.on_generated = report
        report(before)


def _completion(process: EngineProcess[F], waiting: dict[int, Request]) -> Completion:
    reply = process.reply(Reply)
    process.answered_tokens += reply.tokens_generated
    request = waiting.pop(reply.id)
    if reply.error:
        without = failed(*request.key, reply.error, request.seed)
        return dataclasses.replace(without, used_gpu=process.used_gpu)
    return Completion(
        task_id=request.task_id,
        sample=request.sample,
        text=join_answer(request.prompt, reply.text, reply.finish_reason),
        finish_reason=reply.finish_reason,
        prompt_tokens=reply.prompt_tokens,
        tokens_generated=reply.tokens_generated,
        inference_ms=reply.ms,
        seed=request.seed,
        used_gpu=process.used_gpu,
        logprob=reply.logprob,
    )
