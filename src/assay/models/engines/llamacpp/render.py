"""Ask llama.cpp how it renders a prompt for its model."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.data import codec
from assay.datasets import cache_dir
from assay.errors import ModelError
from assay.models.devices import proc_bytes
from assay.models.model import Rendered
from assay.models.options import NamedValue, by_name
from assay.models.workers.engine_messages import RenderReply
from assay.models.workers.prompt_tokens import (
    MEMORY,
    PROBE,
    SECONDS,
    TemplateLimitError,
    gap_prompt,
    render_chat,
)
from assay.types import Message
from assay.work import run_in_background

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assay.formats.marks import Gap
    from assay.types import Prompt

    Template = Callable[[Sequence[Message]], str]


LOOK_EVERY_S = 0.1
# Limits of a process that tries a template: CPU time, so that a slow disk makes no difference.
TRY_CPU_S, TRY_WALL_S, TRY_MEMORY = 5, 300.0, 2 << 30
HARMLESS = "chatml"


def added_start(address: str) -> str:
    """Return the text of the token that llama.cpp puts before every prompt, or an empty text."""
    start = _request(f"{address}/tokenize", {"content": "", "add_special": True})["tokens"]
    return str(_request(f"{address}/props")["bos_token"]) if start else ""


def render_prompt(
    address: str, prompt: Prompt, template: Template, gap: Gap | None = None
) -> RenderReply:
    """Return the prompt as the model gets it. ``template`` renders messages."""
    if gap is not None:
        return _render_gap(address, prompt, gap)
    text = prompt.text.removeprefix(added_start(address))
    try:
        if prompt.messages:
            text = render_chat(template, prompt)
        # As for a completion: with a first token if the model expects one, special tokens parsed.
        ways = {"add_special": True, "parse_special": True, "with_pieces": True}
        tokens = _request(f"{address}/tokenize", {"content": text, **ways})["tokens"]
    except ValueError as failure:
        return RenderReply(Rendered(text), str(failure))
    ids = tuple(int(token["id"]) for token in tokens)
    return RenderReply(Rendered(text, ids, tuple(_text(token["piece"]) for token in tokens)))


def infill_tokens(address: str, prompt: Prompt, gap: Gap) -> list[int]:
    """Return the tokens of a prompt with a suffix."""

    def encode(text: str, **ways: bool) -> list[int]:
        body = {"content": text, "parse_special": False, **ways}
        return list(map(int, _request(f"{address}/tokenize", body)["tokens"]))

    start = encode("", add_special=True)
    return gap_prompt(encode, start, gap, prompt.text, prompt.suffix or "")


def _render_gap(address: str, prompt: Prompt, gap: Gap) -> RenderReply:
    ids = infill_tokens(address, prompt, gap)
    marks = dict(zip(gap.ids, gap.tokens, strict=True))
    pieces = (
        marks.get(token) or str(_request(f"{address}/detokenize", {"tokens": [token]})["content"])
        for token in ids
    )
    text = gap.tokens.mark(prompt.text, prompt.suffix or "")
    return RenderReply(Rendered(text, tuple(ids), tuple(pieces)))


def apply_template(
    address: str, messages: Sequence[Message], variables: Sequence[NamedValue] = ()
) -> str:
    """Return messages rendered by llama.cpp. Raise ValueError if the template refuses them."""
    content = [codec.to_json(message) for message in messages]
    body = {"messages": content, "chat_template_kwargs": by_name(variables)}
    return str(_request(f"{address}/apply-template", body)["prompt"])


def render_within_limits(
    address: str,
    messages: Sequence[Message],
    variables: Sequence[NamedValue] = (),
    seconds: float = SECONDS,
) -> str:
    """Render like ``apply_template``, but raise TemplateLimitError when time or memory runs out.

    llama.cpp cannot be interrupted: what it still computes then ends only with this process.
    """
    answers: queue.SimpleQueue[str | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(apply_template(address, messages, variables))
        except Exception as error:
            answers.put(error)

    deadline, before = time.monotonic() + seconds, _own_memory()
    run_in_background(ask)
    while True:
        try:
            answer = answers.get(timeout=LOOK_EVERY_S)
        except queue.Empty:
            if _own_memory() - before > MEMORY:
                raise TemplateLimitError(
                    f"rendering its chat template takes more than {MEMORY >> 30} GB"
                ) from None
            if time.monotonic() > deadline:
                raise TemplateLimitError(
                    f"rendering its chat template takes more than {seconds:g} s"
                ) from None
            continue
        if isinstance(answer, Exception):
            raise answer
        return answer


def _own_memory() -> int:
    """Return the bytes that belong to this process alone, without the files that it has mapped."""
    return proc_bytes("/proc/self/status", "RssAnon")


def _request(address: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refusal:
        content = json.load(refusal)
        raise ValueError(content.get("error", {}).get("message", str(refusal))) from refusal


def _text(piece: str | list[int]) -> str:
    """Return a token's text. Parts of a character arrive as bytes."""
    return piece if isinstance(piece, str) else bytes(piece).decode(errors="replace")


def check_template(path: Path, known_by: str) -> None:
    """Raise ModelError if llama.cpp cannot render the file's chat template within the limits.

    llama.cpp renders the template while it loads a file, to detect its features, without a limit of
    time or memory. So a process of this module tries it first.
    ``known_by`` names template, tokenizer and llama.cpp. A passed check is cached under it.
    """
    note = cache_dir() / "templates" / hashlib.sha256(known_by.encode()).hexdigest()
    if note.exists():
        return
    if not _can_render(path):
        # Ignore other reasons, such as a damaged file: the engine has a better message for them.
        if _can_render(path, HARMLESS):
            raise ModelError(
                f"{path}: rendering its chat template takes more than {TRY_CPU_S} s or "
                f"{TRY_MEMORY >> 30} GB. Do not use this file, or repair its template."
            )
        return
    with contextlib.suppress(OSError):  # without a cache it is slower, nothing else
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()


def _can_render(path: Path, template: str = "") -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "assay.models.engines.llamacpp.render", str(path), template],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "GGML_NO_BACKTRACE": "1"},
            timeout=TRY_WALL_S,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(path: str, template: str) -> None:
    """Load as little of the file as possible, and render one message within the limits."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.chat_template = template
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_parallel = 256, 32, 32, 1
    params.n_gpu_layers = params.verbosity = 0
    params.warmup = params.fit_params = False
    params.no_extra_bufts = True  # weights stay as they are in the file
    params.n_threads_http = params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, TRY_CPU_S),
        (resource.RLIMIT_DATA, TRY_MEMORY),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))
    server = xllamacpp.Server(params)
    with contextlib.suppress(ValueError):  # it may refuse this message
        apply_template(server.listening_address, PROBE)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
