"""Any server that speaks OpenAI's interface: vLLM, llama.cpp's, SGLang, Ollama, hosted ones."""

from __future__ import annotations

import importlib.metadata
import json
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from assay import codec
from assay.errors import ModelError, UsageError
from assay.models import Backend, Rendered, backends
from assay.models.engines.openai.body import extra_fields, request_body
from assay.models.engines.openai.crew import Crew
from assay.models.engines.openai.server import check_key, parse_address
from assay.models.engines.openai.session import Session
from assay.models.settings import ON, check_chat_settings, refuse, thinking_budget
from assay.types import Decoding, ModelIdentity, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from assay.models import EngineOptions, Loading
    from assay.types import Completion, Prompt

PARALLEL = 16
# Of what servers tell of a model, what stays when they are started again: ``created`` does not.
LASTING = ("root", "owned_by")
LASTING_META = ("n_params", "n_vocab", "n_embd", "size")  # llama.cpp's
MOST_NAMED = 10


class OpenAIModel:
    """A model behind a server, which is asked for its name and little else when this is made."""

    def __init__(self, reference: str, options: EngineOptions) -> None:
        if options.dtype or options.adapter or options.threads or options.device != "auto":
            raise UsageError(
                "the server decides how it runs: no --dtype, --adapter, --device, --threads"
            )
        refuse(options, "openai", "revision")
        if thinking_budget(options) is not None:
            raise UsageError(
                f"--thinking {options.thinking}: servers have different names for a budget. Use "
                f"--engine-option thinking_token_budget={options.thinking} (vLLM) or "
                f"thinking_budget_tokens={options.thinking} (llama.cpp)."
            )
        self._extra = extra_fields(options)
        self._address = parse_address(options.base_url or os.environ.get("OPENAI_BASE_URL", ""))
        self._key = check_key(os.environ.get("OPENAI_API_KEY", ""))
        self._options = options
        self._parallel = 1 if options.batch_mode == "off" else options.parallel or PARALLEL
        opened = Session(self._address, self._key, options)
        try:
            listed = opened.models()
        finally:
            opened.server.close()
        self._name = reference or _only(listed, self._address.shown)
        told = next((m for m in listed or [] if m["id"] == self._name), None)
        self._unlisted = listed is not None and told is None
        self._session: Session | None = None
        self._crew: Crew[Request, Completion] | None = None
        self.identity = ModelIdentity(
            name=options.name or self._name,
            engine="openai",
            # Nobody can see the weights behind a server: this is all there is to know them by.
            weights_sha256=codec.digest(
                {"base_url": self._address.shown, "model": self._name, "told": _lasting(told)}
            ),
            prompt_form="chat" if options.prompt_form == "auto" else options.prompt_form,
            path=self._address.shown,
        )
        check_chat_settings(options, self.identity.prompt_form, "", self._name)
        self.thinks = options.thinking == ON  # a server does not show its template

    def gpu(self) -> str:
        return ""

    def render(self, prompt: Prompt) -> Rendered:
        """What is sent: the server makes a text and tokens of it."""
        body = request_body(
            self._name, Request("", 0, prompt, Decoding(), 0),
            logprobs=False, left_out=(), extra=self._extra,
        )  # fmt: skip
        shown = ("messages", "prompt", "stop", *self._extra)
        told = {name: body[name] for name in shown if name in body}
        return Rendered(json.dumps(told, indent=1, ensure_ascii=False))

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        self._session = session = Session(self._address, self._key, self._options, self._name)
        self._crew = Crew(session.complete, self._parallel, session.stopped, session.server.wake)
        try:
            yield from self._crew.run(requests)
        finally:
            session.server.close()

    def describe(self) -> dict[str, object]:
        facts: dict[str, object] = {
            "httpx": importlib.metadata.version("httpx"),
            "base_url": self._address.shown,
            "parallel": self._parallel,
            "batch_invariant": False,  # not known
        }
        if self._unlisted:
            facts["listed_by_server"] = False
        if self._session is not None and self._session.left_out:
            facts["left_out"] = sorted(self._session.left_out)
        if self._session is not None and self._session.without_logprobs:
            facts["logprobs"] = "not told by the server"
        return facts

    def kept_loaded(self) -> AbstractContextManager[Loading]:
        return nullcontext("elsewhere")

    def usage(self) -> None:
        """Not known."""

    def close(self) -> None:
        if (crew := self._crew) is not None:
            crew.stop()


def _only(listed: list[dict[str, Any]] | None, shown: str) -> str:
    names = [model["id"] for model in listed or []]
    if len(names) == 1:
        return str(names[0])
    some = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    what = f"has {len(names)} models ({some})" if names else "does not tell what models it has"
    raise ModelError(f"{shown} {what}: give the name of one after openai:")


def _lasting(told: dict[str, Any] | None) -> dict[str, Any]:
    told = told or {}
    meta = told.get("meta")
    about = meta if isinstance(meta, dict) else {}
    return {name: told[name] for name in LASTING if name in told} | {
        name: about[name] for name in LASTING_META if name in about
    }


def _is_no_file(path: object) -> bool:  # noqa: ARG001 - a server is only ever named
    return False


backends.register("openai")(Backend(OpenAIModel, _is_no_file))
