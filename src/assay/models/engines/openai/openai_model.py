"""Use any server with OpenAI's interface: vLLM, llama.cpp's, SGLang, Ollama, hosted ones."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.data import codec
from assay.errors import ModelError, UsageError
from assay.models import Backend, Rendered, backends
from assay.models.engines.openai.body import extra_fields, request_body
from assay.models.engines.openai.infilling import InfillWay, check_continuing, find_way
from assay.models.engines.openai.model_server import check_key, parse_address
from assay.models.engines.openai.session import Session
from assay.models.model import EngineFacts, LoadedElsewhere
from assay.models.options import ON, by_name, check_chat_settings
from assay.types import Decoding, ModelIdentity, Request
from assay.work import stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assay.models import EngineOptions
    from assay.models.engines.openai.answer import ListedModel
    from assay.types import Completion, Prompt

PARALLEL = 16
MOST_NAMED = 10
SHOWN = (
    "messages", "prompt", "suffix", "input_prefix", "input_suffix", "stop",
    "continue_final_message", "add_generation_prompt",
)  # fmt: skip
ACCEPTS = frozenset({
    "batch_mode", "parallel", "prompt_form", "base_url", "logprobs", "timeout", "answer_timeout",
    "requests_per_minute", "tokens_per_minute", "price_in", "price_out", "thinking",
    "engine_options",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerFacts(EngineFacts):
    httpx: str
    base_url: str
    parallel: int
    batch_invariant: bool = False  # not known
    listed_by_server: bool | None = None
    left_out: tuple[str, ...] | None = None  # fields of requests that it refuses
    logprobs: str | None = None
    infilling: str | None = None  # how the server is given prefix and suffix


class OpenAIModel(LoadedElsewhere):
    """A model behind a server. Creating it only asks the server which models it has."""

    served = True

    def __init__(self, reference: str, options: EngineOptions) -> None:
        if options.thinking_budget is not None:
            raise UsageError(
                f"--thinking {options.thinking}: servers use different names for this limit. Use "
                f"--engine-option thinking_token_budget={options.thinking} (vLLM) or "
                f"thinking_budget_tokens={options.thinking} (llama.cpp)."
            )
        self._extra = extra_fields(options)
        self._address = parse_address(options.base_url or os.environ.get("OPENAI_BASE_URL", ""))
        self._key = check_key(os.environ.get("OPENAI_API_KEY", ""))
        self._options = options
        self._parallel = options.batch_size or PARALLEL
        with self._session_for_questions() as session:
            listed = session.models()
        self._name = reference or _only(listed, self._address.shown)
        entry = next((m for m in listed or [] if m.name == self._name), None)
        self._continues = False  # not tried yet
        self._unlisted = listed is not None and entry is None
        self._session: Session | None = None
        self.identity = ModelIdentity(
            name=options.name or self._name,
            engine="openai",
            # The weights behind a server cannot be seen. These facts identify them.
            weights_sha256=codec.digest(
                {
                    "base_url": self._address.shown,
                    "model": self._name,
                    "told": by_name(entry.lasting if entry else ()),
                }
            ),
            prompt_form="chat" if options.prompt_form == "auto" else options.prompt_form,
            path=self._address.shown,
        )
        check_chat_settings(options, self.identity.prompt_form, "", self._name)
        self.thinks = options.thinking == ON  # a server does not show its template

    @contextlib.contextmanager
    def _session_for_questions(self) -> Iterator[Session]:
        session = Session(self._address, self._key, self._options)
        try:
            yield session
        finally:
            session.server.close()

    @functools.cached_property
    def way(self) -> InfillWay:
        """Return the server's way to get prefix and suffix. Raise ModelError if it has none."""
        with self._session_for_questions() as session:
            return find_way(session.server, self._name)

    def check_infilling(self) -> str:
        return str(self.way)

    def check_prefilling(self) -> None:
        if not self._continues:
            with self._session_for_questions() as session:
                check_continuing(session.server, self._name, self._extra)
        self._continues = True

    def render(self, prompt: Prompt) -> Rendered:
        """Return the messages. The server renders and tokenises them."""
        body = request_body(
            self._name, Request("", 0, prompt, Decoding(), 0),
            logprobs=False, left_out=(), extra=self._extra,
            way=None if prompt.suffix is None else self.way,
        )  # fmt: skip
        own = [field.name for field in self._extra]
        return Rendered(body.show((*SHOWN, *own)))

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        self._session = session = Session(
            self._address, self._key, self._options, self._name, lambda: self.way,
            self.check_prefilling,
        )  # fmt: skip
        try:
            # No result waits while another request is sent, so a kill loses no more than these.
            yield from stream(
                requests, session.serve, self._parallel, wants_more=lambda _: True, ahead=0,
                stop=session.stop,
            )  # fmt: skip
        finally:
            session.server.close()

    def describe(self) -> ServerFacts:
        left_out, lacks_logprobs = (
            (self._session.left_out, self._session.without_logprobs)
            if self._session is not None
            else ((), False)
        )
        return ServerFacts(
            httpx=importlib.metadata.version("httpx"),
            base_url=self._address.shown,
            parallel=self._parallel,
            listed_by_server=False if self._unlisted else None,
            left_out=tuple(sorted(left_out)) or None,
            logprobs="not reported by the server" if lacks_logprobs else None,
            infilling=str(self.__dict__["way"]) if "way" in self.__dict__ else None,
        )

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()


def _only(listed: list[ListedModel] | None, address: str) -> str:
    names = [model.name for model in listed or []]
    if len(names) == 1:
        return names[0]
    some = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    what = f"has {len(names)} models ({some})" if names else "does not list its models"
    raise ModelError(f"{address}: {what}. Give the name of one as openai:NAME.")


backends.register("openai")(Backend(OpenAIModel, lambda _: False, ACCEPTS))
