"""Build requests for OpenAI's interface, and parse the errors of servers that refuse them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.models.options import (
    NamedValue,
    by_name,
    refuse_reserved,
)
from assay.protocol import TEMPLATE_VARIABLES
from assay.types import Message

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from assay.models import EngineOptions
    from assay.models.engines.openai.infilling import InfillWay
    from assay.types import Request

# Fields that are left out if a server does not know them. The results record that.
DISPENSABLE = {
    "max_tokens",  # some servers only know max_completion_tokens
    "min_p",
    "repetition_penalty",
    "seed",
    "stream",
    "stream_options",
    "top_k",
    "top_p",
    "repeat_penalty",
    "repeat_last_n",
}
# Neutral values, which change nothing. Any other value was requested by the user.
NEUTRAL = {"top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
# Fields of the protocol: without them the completions would belong to another one.
ESSENTIAL = {"temperature", "stop", "logprobs", "max_completion_tokens", "suffix"}
# By which servers continue an assistant's message. llama.cpp's does so without them.
CONTINUE = {"continue_final_message": True, "add_generation_prompt": False}
WHOLE_TEXT = 1 << 16  # tokens that count as repeated; some servers have no value for all
REFUSAL = re.compile(
    r"un(?:known|supported|recogni[sz]ed|expected)|does(?: not|n't) (?:support|accept|allow)"
    r"|not (?:\w+ )?(?:supported|permitted|allowed|recogni[sz]ed)|forbidden"
    r"|(?:extra|additional) (?:inputs?|fields?|propert)|invalid (?:parameter|argument|field)",
    re.IGNORECASE,
)


# Fields of a request that other options decide.
RESERVED = {
    "model": "--model", "messages": "--system", "prompt": "--prompt-strategy",
    "suffix": "--prompt-strategy", "continue_final_message": "--prompt-strategy",
    "add_generation_prompt": "--prompt-strategy",
    "temperature": "--temperature", "top_p": "--top-p", "top_k": "--top-k", "min_p": "--min-p",
    "repetition_penalty": "--repetition-penalty", "repeat_penalty": "--repetition-penalty",
    "max_tokens": "--max-tokens", "max_completion_tokens": "--max-tokens", "seed": "--seed",
    "stop": "--stop", "logprobs": "--logprobs", "n": "--n-samples", "stream": "",
    "stream_options": "",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Body:
    """A request as JSON. ``needed`` lists fields that the evaluation cannot do without."""

    fields: dict[str, Any]
    needed: frozenset[str]

    def encode(self) -> bytes:
        """Return the request as ASCII: prompts and names may have what UTF-8 cannot encode."""
        return json.dumps(self.fields).encode()

    def show(self, names: Collection[str]) -> str:
        """Return those of these fields that the request has, as readable text."""
        values = {name: self.fields[name] for name in names if name in self.fields}
        return json.dumps(values, indent=1, ensure_ascii=False)


def request_body(
    model: str,
    request: Request,
    *,
    logprobs: bool,
    left_out: Collection[str],
    extra: Sequence[NamedValue] = (),
    way: InfillWay | None = None,
) -> Body:
    """Build a request with every sampler setting explicit: servers have different defaults.

    ``way`` is how the server is given a suffix, for a prompt that has one.
    """
    decoding, prompt = request.decoding, request.prompt
    body = {
        "model": model,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_tokens": decoding.max_tokens,
        "seed": request.seed,
        "repetition_penalty": decoding.repetition_penalty,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if decoding.temperature > 0:  # temperature 0 alone means greedy
        body["top_k"] = decoding.top_k or -1  # all servers know -1 for "no limit"
        body["min_p"] = decoding.min_p
    if decoding.repetition_penalty != 1:  # llama.cpp's server and Ollama have another name
        body |= {"repeat_penalty": decoding.repetition_penalty, "repeat_last_n": WHOLE_TEXT}
    if prompt.stop:
        body["stop"] = list(prompt.stop)
    if prompt.messages:
        messages = prompt.messages
        if prompt.prefill:
            messages = (*messages, Message("assistant", prompt.prefill))
            body |= CONTINUE
        body["messages"] = [{"role": m.role, "content": m.content} for m in messages]
    elif way is not None and prompt.suffix is not None:
        body |= way.fields(prompt.text, prompt.suffix)
        if way.is_native:
            body["n_predict"] = decoding.max_tokens
            body["cache_prompt"] = False
    else:
        body["prompt"] = prompt.text
    if logprobs:
        body["logprobs"] = True if prompt.messages else 1
    if "max_tokens" in left_out:
        body["max_completion_tokens"] = decoding.max_tokens
    if "stream" in left_out:
        del body["stream_options"]
    body |= by_name(extra)
    fields = {name: value for name, value in body.items() if name not in left_out}
    chosen = {name for name, value in NEUTRAL.items() if fields.get(name, value) != value}
    named = {one.name for one in extra}
    return Body(fields, frozenset(ESSENTIAL | CONTINUE.keys() | chosen | named))


def extra_fields(options: EngineOptions) -> tuple[NamedValue, ...]:
    """Return the request fields that the user names. Raise UsageError for a reserved one."""
    own, variables = options.own_options, options.template_variables
    refuse_reserved(own, RESERVED)
    if not variables:
        return own
    return *own, NamedValue(TEMPLATE_VARIABLES, json.dumps(by_name(variables)))


@dataclass(frozen=True, slots=True)
class Complaint:
    """A server's error message. ``field`` and ``code`` are set where the server names them."""

    text: str
    field: str = ""
    code: str = ""


def complaint(answer: Any) -> Complaint:
    """Parse an error answer: JSON in one of several shapes, or any other text."""
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    if not isinstance(error, dict):
        return Complaint(_text(error))
    text = error.get("message") or error.get("detail") or error
    return Complaint(_text(text), str(error.get("param") or ""), str(error.get("code") or ""))


def refused_fields(error: Complaint, fields: Collection[str]) -> set[str]:
    """Return the request's fields that the server does not know or refuses.

    A complaint about a field's value, such as a length beyond the context, does not count.
    """
    if not REFUSAL.search(f"{error.text} {error.code}".replace("_", " ")):
        return set()
    if error.field in fields:
        return {error.field}
    return {name for name in fields if re.search(rf"(?<!\w){name}(?!\w)", error.text)}


def _text(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except RecursionError:
        text = "an error that is nested too deeply"
    return " ".join(text.split())
