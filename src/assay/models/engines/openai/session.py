"""Send the requests of one run: paced, retried, without the fields that the server refuses."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Literal

from assay.errors import ModelError
from assay.models import failed
from assay.models.engines.openai.answer import answer_limits
from assay.models.engines.openai.body import (
    DISPENSABLE,
    extra_fields,
    refused_fields,
    request_body,
)
from assay.models.engines.openai.model_server import (
    ModelServer,
    PassingError,
    ServerAddress,
    ServerRefusedError,
)
from assay.models.model import join_answer
from assay.types import Completion

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeVar

    from assay.models import EngineOptions
    from assay.models.engines.openai.answer import ListedModel, PartialCompletion
    from assay.models.engines.openai.infilling import InfillWay
    from assay.types import Request

    T = TypeVar("T")


FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LOOK_AGAIN_S = 0.5
TRIES = 7
SLOW_TRIES = 2  # each of them took all the time that an answer may take
LONGEST_WAIT_S = 600.0  # the longest wait that a server may demand
CHARACTERS_PER_TOKEN = 4  # a guess, corrected as soon as the server has counted


class RateLimiter:
    """A limit that spreads requests evenly over the minute, from any thread; 0 means none."""

    def __init__(self, requests_per_minute: float, tokens_per_minute: float) -> None:
        self._request_s = 60 / requests_per_minute if requests_per_minute else 0.0
        self._token_s = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._requests_from = self._tokens_from = self._held_until = 0.0
        self._lock = threading.Lock()

    def wait_s(self, tokens: int) -> float:
        """Return 0 and admit the request, or return the seconds to wait before asking again."""
        with self._lock:
            now = time.monotonic()
            wait = max(self._requests_from, self._tokens_from, self._held_until) - now
            if wait > 0:
                # Others may give tokens back in the meantime.
                return min(wait, LOOK_AGAIN_S)
            self._requests_from = now + self._request_s
            self._tokens_from = max(self._tokens_from, now) + tokens * self._token_s
            return 0.0

    def settle(self, estimate: int, used: int) -> None:
        """Correct the count of an admitted request from ``estimate`` to ``used`` tokens."""
        with self._lock:
            self._tokens_from -= (estimate - used) * self._token_s

    def hold(self, seconds: float) -> None:
        """Admit nothing for so many seconds, as the server demands."""
        with self._lock:
            self._held_until = max(self._held_until, time.monotonic() + seconds)


def pause_s(failed: int) -> float:
    """Return the seconds before the next try: doubled after each failure, with jitter."""
    return random.uniform(0.5, 1.5) * min(FIRST_PAUSE_S * 2.0 ** (failed - 1), LONGEST_PAUSE_S)


class Session:
    """Requests to one server in many threads. They return soon once ``stopped`` is set."""

    def __init__(
        self,
        address: ServerAddress,
        key: str,
        options: EngineOptions,
        model: str = "",
        way: Callable[[], InfillWay] | None = None,  # returns how the server fills in code
        check_prefilling: Callable[[], None] = lambda: None,  # raises ModelError
    ) -> None:
        self.stopped = threading.Event()
        self.server = ModelServer(address, key, timeout_s=options.timeout)
        self.left_out: frozenset[str] = frozenset()
        self.without_logprobs = False  # although they were requested
        self._left_out_lock = threading.Lock()
        self._model, self._logprobs, self._options = model, options.logprobs, options
        self._extra = extra_fields(options)
        self._way, self._check_prefilling = way, check_prefilling
        self._gate = RateLimiter(options.requests_per_minute, options.tokens_per_minute)

    def serve(self, request: Request, _on_idle: Callable[[], None]) -> Completion:
        """Return the completion of a request. Raise ModelError once ``stop`` was called.

        What came after that may be a failure that only the stop has caused.
        """
        try:
            completion = None if self.stopped.is_set() else self.complete(request)
        except ModelError:
            if not self.stopped.is_set():
                raise
            completion = None
        if completion is not None and not self.stopped.is_set():
            return completion
        raise ModelError("Interrupted. Completed work is saved; run the same command to resume.")

    def stop(self) -> None:
        """End all requests, from any thread."""
        self.stopped.set()
        self.server.wake()

    def complete(self, request: Request) -> Completion:
        """Return the completion. Raise ModelError if the server cannot serve any request."""
        try:
            return self._persist(lambda attempt: self._attempt(request, attempt))
        except ServerRefusedError as error:
            return failed(*request.key, str(error), request.seed)
        except PassingError as error:
            if error.unreachable and self.server.missed >= TRIES:
                raise ModelError(
                    f"{self.server.address.shown}: does not respond ({error}, {TRIES} times). "
                    "Start it again, then run the same command to resume."
                ) from error
            tries = SLOW_TRIES if error.is_slow else TRIES
            return failed(*request.key, f"{error} (tried {tries} times)", request.seed)

    def models(self) -> list[ListedModel] | None:
        """Return the models that the server lists; None if it does not list them."""
        try:
            return self._persist(lambda _: self.server.models(), unless_unreachable=True)
        except PassingError as error:
            raise ModelError(
                f"{self.server.address.shown}: does not respond ({error}). Start the server, "
                "or correct --base-url."
            ) from error

    def _persist(self, work: Callable[[int], T], *, unless_unreachable: bool = False) -> T:
        """Call ``work`` with the number of failures so far, until it succeeds.

        Raise its last PassingError if it never does.
        """
        failed = slow = 0
        while True:
            try:
                return work(failed)
            except PassingError as error:
                failed += 1
                slow += error.is_slow
                spent = failed == TRIES or slow == SLOW_TRIES
                if spent or (unless_unreachable and error.unreachable):
                    raise
                self._wait_after(error, failed)

    def _wait_after(self, trouble: PassingError, failed: int) -> None:
        if trouble.after_s > LONGEST_WAIT_S:
            raise ModelError(
                f"{self.server.address.shown}: accepts no requests for {trouble.after_s:.0f} s "
                f"({trouble}). Wait, then run the same command to resume."
            )
        if trouble.after_s:
            self._gate.hold(trouble.after_s)  # the demand of one response holds for all requests
        self._sleep(max(trouble.after_s, pause_s(failed)))

    def _attempt(self, request: Request, attempt: int) -> Completion:
        prompt = request.prompt
        if prompt.prefill:
            self._check_prefilling()
        way = self._way() if self._way and prompt.suffix is not None else None
        endpoint = "chat/completions" if prompt.messages else "completions"
        endpoint = way.endpoint if way else endpoint
        characters = len(prompt.text) + len(prompt.suffix or "") + len(prompt.prefill)
        characters += sum(len(m.content) for m in prompt.messages)
        tokens = characters // CHARACTERS_PER_TOKEN + request.decoding.max_tokens
        limits = answer_limits(request.decoding.max_tokens, self._options)
        while True:
            while wait := self._gate.wait_s(tokens):
                self._sleep(wait)
            body = request_body(
                self._model, request,
                logprobs=self._logprobs, left_out=self.left_out, extra=self._extra, way=way,
            )  # fmt: skip
            started = time.perf_counter()
            try:
                answer = self.server.complete(endpoint, body.encode(), limits)
            except ServerRefusedError as error:
                refused = refused_fields(error.complaint, body.fields)
                self._leave_out(refused, body.needed, error)
                continue
            if used := answer.prompt_tokens + answer.tokens_generated:
                self._gate.settle(tokens, used)
            self.without_logprobs |= self._logprobs and answer.logprob is None
            return _completion(request, answer, time.perf_counter() - started, attempt)

    def _leave_out(
        self, fields: set[str], essential: Collection[str], error: ServerRefusedError
    ) -> None:
        """Leave these fields out from now on, or raise if they are needed or are not the cause."""
        if needed := fields.intersection(essential):
            raise ModelError(
                f"{self.server.address.shown}: refuses {', '.join(sorted(needed))} ({error}). "
                "Use other settings."
            ) from error
        if not fields & DISPENSABLE:
            raise error
        with self._left_out_lock:
            self.left_out |= fields & DISPENSABLE

    def _sleep(self, seconds: float) -> None:
        if self.stopped.wait(seconds):
            raise ModelError("Interrupted.")


def _completion(
    request: Request, answer: PartialCompletion, seconds: float, retries: int
) -> Completion:
    reason: Literal["length", "stop"] = "length" if answer.finish_reason == "length" else "stop"
    return Completion(
        task_id=request.task_id,
        sample=request.sample,
        text=join_answer(request.prompt, answer.text, reason),
        finish_reason=reason,
        prompt_tokens=answer.prompt_tokens,
        tokens_generated=answer.tokens_generated,
        inference_ms=round(seconds * 1000, 3),
        seed=request.seed,
        used_gpu=False,  # servers do not report it
        logprob=answer.logprob,
        retries=retries,
    )
