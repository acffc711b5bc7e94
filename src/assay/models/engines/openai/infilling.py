"""Find how a server fills in code or continues an answer, and build its requests.

llama.cpp's server has ``/infill``, some servers have ``suffix`` in OpenAI's completions. With
others, such as vLLM's, assay itself puts the model's tokens around prefix and suffix.

llama.cpp's server always continues an assistant's message at the end, vLLM's and SGLang's if they
are asked to. A server that ignores the question would begin another answer, so it is tried first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.formats.marks import FORMS, GapTokens, describe_missing
from assay.models.engines.openai.answer import AnswerLimits
from assay.models.engines.openai.body import CONTINUE
from assay.models.engines.openai.model_server import PassingError, ServerRefusedError
from assay.models.options import by_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.models.engines.openai.model_server import ModelServer
    from assay.models.options import NamedValue

INFILL, COMPLETIONS, TOKENIZE = "/infill", "completions", "/tokenize"
CHAT, APPLY_TEMPLATE, BEGUN = "chat/completions", "/apply-template", "One, two,"
PREFIX, SUFFIX = "def double(x):\n    return", "\n\nprint(double(3))\n"
PROBE_LIMITS = AnswerLimits(60.0, 1 << 20, 1 << 12)


@dataclass(frozen=True, slots=True)
class InfillWay:
    """A server's way to get prefix and suffix. ``tokens`` are put around them here."""

    endpoint: str
    tokens: GapTokens | None = None
    verified: bool = True  # the suffix was seen to add tokens to the prompt

    def __str__(self) -> str:
        if self.tokens is not None:
            return f"prefix, suffix and middle are marked by {self.tokens}"
        if self.endpoint == INFILL:
            return "prefix and suffix are sent to the server's /infill"
        unverified = "" if self.verified else " (the server does not report whether it uses it)"
        return f"the suffix is sent to the server's /completions{unverified}"

    @property
    def is_native(self) -> bool:
        """Return whether requests have llama.cpp's own fields."""
        return self.endpoint == INFILL

    def fields(self, prefix: str, suffix: str) -> dict[str, Any]:
        """Return the fields of a request that hold prefix and suffix."""
        if self.tokens is not None:
            return {"prompt": self.tokens.mark(prefix, suffix)}
        if self.endpoint == INFILL:
            return {"input_prefix": prefix, "input_suffix": suffix}
        return {"prompt": prefix, "suffix": suffix}


def find_way(server: ModelServer, model: str) -> InfillWay:
    """Ask the server, in a few short requests. Raise ModelError if it has no way."""
    if _has_infill(server, model):
        return InfillWay(INFILL)
    if (way := _suffix_way(server, model)) is not None:
        return way
    for form in FORMS:
        if all(_is_token(server, model, token) for token in form):
            return InfillWay(COMPLETIONS, form)
    raise ModelError(
        f"{model}: the server cannot fill in code (no /infill, no suffix in completions, no "
        "fill-in-the-middle tokens that /tokenize knows). Choose another model or server."
    )


def _has_infill(server: ModelServer, model: str) -> bool:
    """Return whether this is llama.cpp's server. Raise ModelError if its model has no tokens."""
    body = {"input_prefix": PREFIX, "input_suffix": SUFFIX, "n_predict": 1, "stream": False}
    try:
        server.complete(INFILL, _encode(model, body), PROBE_LIMITS)
    except ServerRefusedError as error:
        if "infill" in str(error).lower():
            raise ModelError(f"{describe_missing(model)} ({error})") from error
        return False
    except (ModelError, PassingError):
        return False
    return True


def _suffix_way(server: ModelServer, model: str) -> InfillWay | None:
    """Return the way by ``suffix``, or None. A server that ignores it counts as many tokens."""
    body = {"prompt": PREFIX, "max_tokens": 1, "temperature": 0, "stream": False}
    try:
        without = server.complete(COMPLETIONS, _encode(model, body), PROBE_LIMITS)
        body["suffix"] = SUFFIX
        answer = server.complete(COMPLETIONS, _encode(model, body), PROBE_LIMITS)
    except ServerRefusedError:
        return None
    except PassingError as error:
        raise ModelError(
            f"{server.address.shown}: does not respond ({error}). Start the server again."
        ) from error
    if answer.prompt_tokens and answer.prompt_tokens == without.prompt_tokens:
        return None
    return InfillWay(COMPLETIONS, verified=bool(answer.prompt_tokens))


def _is_token(server: ModelServer, model: str, text: str) -> bool:
    """Return whether a text is one token, as vLLM's server splits it."""
    answer = _try_ask(server, TOKENIZE, model, {"prompt": text, "add_special_tokens": False})
    return bool(answer.get("count") == 1)


def check_continuing(server: ModelServer, model: str, extra: Sequence[NamedValue]) -> None:
    """Raise ModelError unless the server continues an assistant's message at the end.

    ``extra`` are the fields of every request that the user names.
    """
    messages = [{"role": "user", "content": "Count."}, {"role": "assistant", "content": BEGUN}]
    if (rendered := _apply_template(server, model, messages, extra)) is not None:
        if rendered.endswith(BEGUN):
            return
        raise _cannot_continue(model, "its chat template does not end with the message")
    body = {"messages": messages, "max_tokens": 1, "temperature": 0, "stream": False}
    body |= by_name(extra)
    new_turn = {name: not value for name, value in CONTINUE.items()}
    counts = []
    for way in (CONTINUE, new_turn):
        try:
            answer = server.complete(CHAT, _encode(model, body | way), PROBE_LIMITS)
        except (ServerRefusedError, PassingError) as error:
            raise _cannot_continue(model, str(error)) from error
        counts.append(answer.prompt_tokens)
    if not 0 < counts[0] < counts[1]:
        raise _cannot_continue(model, "it ignores continue_final_message")


def _apply_template(
    server: ModelServer, model: str, messages: list[dict[str, str]], extra: Sequence[NamedValue]
) -> str | None:
    """Return messages as llama.cpp's server renders them, or None from another server."""
    body = {"messages": messages, **by_name(extra)}
    text = _try_ask(server, APPLY_TEMPLATE, model, body).get("prompt")
    return text if isinstance(text, str) else None


def _try_ask(server: ModelServer, endpoint: str, model: str, body: dict[str, Any]) -> Any:
    """Return the object that a server answers; an empty one if it answers anything else."""
    try:
        answer = server.ask(endpoint, _encode(model, body), PROBE_LIMITS)
    except (ServerRefusedError, ModelError, PassingError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _cannot_continue(model: str, why: str) -> ModelError:
    return ModelError(
        f"{model}: the server cannot continue a prefilled answer ({why}). Use another "
        "--prompt-strategy or engine."
    )


def _encode(model: str, body: dict[str, Any]) -> bytes:
    return json.dumps({"model": model, **body}).encode()
