"""Convert prompts to the tokens that a model is given. A process with limits renders chats."""

from __future__ import annotations

import contextlib
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
from assay.models.model import Rendered
from assay.models.options import (
    SWITCHES,
    EngineOptions,
    NamedValue,
    by_name,
    thinking_variables,
)
from assay.models.workers.engine_messages import RenderReply
from assay.types import Message, Prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assay.formats.marks import Gap

    Render = Callable[[Sequence[Message]], str]
    Encode = Callable[[str], list[int]]


PROBE = (Message("user", "hello"),)
BEGUN = "-[[the-model-continues-here]]-"
# Before a text, so that it is not the first. CodeLlama's own code does the same.
FIRST, LETTER = "\N{WHITE SMILING FACE}", "a"
SECONDS = 10.0
MEMORY = 1 << 30  # on top of what the engine has
CHARACTERS = 1 << 23
PR_SET_PDEATHSIG = 1


def template_of(tokenizer: Any, variables: Sequence[NamedValue] = ()) -> Callable[[Any], str]:
    """Return a function that renders messages up to the point where the model answers."""

    def apply(messages: Any) -> str:
        return str(
            tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **by_name(variables)
            )
        )

    return apply


def template_process(tokenizer: Any, options: EngineOptions) -> TemplateProcess:
    """Return a renderer with these options. Raise ValueError if it cannot switch thinking."""
    if options.thinking:

        def render(variables: Sequence[NamedValue]) -> str:
            with contextlib.closing(TemplateProcess(template_of(tokenizer, variables))) as process:
                return process.render(PROBE)

        check_switch(render)
    return TemplateProcess(template_of(tokenizer, options.template_variables))


def check_switch(render: Callable[[Sequence[NamedValue]], str]) -> None:
    """Raise ValueError if a chat template renders the same text with thinking on and off."""
    if render(thinking_variables(True)) == render(thinking_variables(False)):
        raise ValueError(
            f"its chat template has no switch for thinking ({' or '.join(SWITCHES)}). "
            "Drop --thinking."
        )


def render_chat(render: Render, prompt: Prompt) -> str:
    """Render messages up to the answer, or up to the end of its prefill.

    The template renders the prefill too, as EvalPlus lets it: some write more before an answer than
    they do to ask for one. A mark shows where the prefill ends.
    """
    if not prompt.prefill:
        return render(prompt.messages)
    begun = Message("assistant", prompt.prefill + BEGUN)
    text, mark, _ = render((*prompt.messages, begun)).partition(BEGUN)
    if not (mark and text.endswith(prompt.prefill)):
        raise ValueError("its chat template does not keep the beginning of an answer as it is")
    return text


def prompt_text(render: Render, prompt: Prompt, gap: Gap | None = None) -> str:
    """Render messages with the chat template, up to the answer. Return a text as it is."""
    if gap is not None:
        return gap.tokens.mark(prompt.text, prompt.suffix or "")
    return render_chat(render, prompt) if prompt.messages else prompt.text


def prompt_tokens(
    tokenizer: Any, render: Render, prompt: Prompt, gap: Gap | None = None
) -> list[int]:
    """Return the prompt's tokens. Special tokens that it spells out are not added again."""
    if gap is not None:
        return _gap_tokens(tokenizer, prompt, gap)
    text = prompt_text(render, prompt)
    spelt_out = bool(tokenizer.bos_token) and text.startswith(tokenizer.bos_token)
    tokens: list[int] = tokenizer.encode(
        text, add_special_tokens=not (prompt.messages or spelt_out)
    )
    return tokens


def _gap_tokens(tokenizer: Any, prompt: Prompt, gap: Gap) -> list[int]:
    def encode(text: str) -> list[int]:
        tokens: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return tokens

    first = tokenizer.encode("")[:1]  # some tokenizers add an end too
    start = first if first == [tokenizer.bos_token_id] else []
    return gap_prompt(encode, start, gap, prompt.text, prompt.suffix or "")


def render_prompt(
    tokenizer: Any, render: Render, prompt: Prompt, gap: Gap | None = None
) -> RenderReply:
    """Return the prompt as the model is given it."""
    try:
        text = prompt_text(render, prompt, gap)
        tokens = prompt_tokens(tokenizer, render, prompt, gap)
    except TemplateLimitError:
        raise
    except Exception as failure:  # a template may raise anything
        return RenderReply(Rendered(""), f"it cannot be rendered: {failure}")
    pieces = [tokenizer.decode([token], clean_up_tokenization_spaces=False) for token in tokens]
    return RenderReply(Rendered(text, tuple(tokens), tuple(pieces)))


def gap_prompt(
    encode: Encode, start: Sequence[int], gap: Gap, prefix: str, suffix: str
) -> list[int]:
    """Return the tokens: prefix and suffix after their marks, then the mark of the middle.

    ``encode`` splits a text without special tokens. ``start`` is what precedes every prompt.
    """
    before, after, between = gap.ids
    inner = encode_inner(encode, suffix)
    return [*start, before, *encode(prefix), after, *inner, between]


def encode_inner(encode: Encode, text: str) -> list[int]:
    """Return the tokens of a text inside another.

    SentencePiece puts a space before every text. The suffix of a program must not get one.
    """
    first = encode(FIRST)
    if encode(FIRST + LETTER) == [*first, *encode(LETTER)]:
        return encode(text)
    whole = encode(FIRST + text)
    return whole[len(first) :] if whole[: len(first)] == first else encode(text)


class TemplateLimitError(Exception):
    """A chat template exceeded a limit: no prompt of this model can be rendered safely."""


class TemplateProcess:
    """A process that renders messages with ``apply``, one conversation at a time.

    A template is a program that comes with a model. It may loop forever or write gigabytes, and a
    single power of two large numbers holds Python's lock, so that no other thread can stop it. The
    process is a fork of the engine's, so that the tokenizer's own method renders. It is forked with
    the first conversation, while the engine is idle.
    """

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
        line = bytearray()
        while not line.endswith(b"\n"):
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._answers], [], [], left)[0]:
                os.kill(self._child, signal.SIGKILL)
                raise TemplateLimitError(
                    f"rendering its chat template takes more than {self._seconds:g} s"
                )
            piece = os.read(self._answers, 1 << 16)
            if not piece:
                break
            line += piece
        return bytes(line)


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
