"""Try a tokenizer and a chat template in a separate process.

A template is a program, and a library that may abort reads a tokenizer's file. So both have limits
on memory and time. ``python -m assay.quality.check.texts`` reads a TrialQuestion as JSON and prints
a TrialReply.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Literal

from assay.data import codec
from assay.errors import ModelError, install_hint
from assay.quality.check.contents import EngineOnlyError, Template, Tokenizer

MEMORY = 2 << 30
TEMPLATE_S = 3
ALL_S = 120
# Composed characters, because some tokenizers compose them.
TEXTS = (
    "def add(a, b):\n    return a + b  # 1 + 1 == 2\n",
    "\tif x:\n\t\tpass\n\n\n  two  spaces   three\n",
    "for (int i = 0; i < 10; ++i) { sum += v[i] * 0x1F; } // \"quoted\" 'too' \\n",
    "naïve café, Ελλάδα, Москва, 中文, 日本語, עברית, 🙂👍🏽",
)
MESSAGE = "Add one and two."


@dataclass(frozen=True, slots=True)
class TrialQuestion:
    """A tokenizer or a template to try."""

    tokenizer: Tokenizer | None = None
    template: Template | None = None


@dataclass(frozen=True, slots=True)
class TrialReply:
    """The outcome and its reason. For ``missing`` that is the name of a package."""

    outcome: Literal["pass", "fail", "missing"]
    reason: str


def same_text(text: str, back: str) -> str:
    """Return how a text differs from what came back, if it does. SentencePiece adds a space."""
    if back.removeprefix(" ") == text.removeprefix(" "):
        return ""
    at = next((n for n, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), None)
    at = min(len(text), len(back)) if at is None else at
    start = max(0, at - 8)
    return f"{text[start : at + 8]!r} comes back as {back[start : at + 8]!r}"


def try_parts(question: TrialQuestion) -> str:
    """Return what passed. Raise ModelError if it failed, EngineOnlyError if it cannot be tried."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "assay.quality.check.texts"],
            input=codec.dumps(question).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ALL_S,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"it takes longer than {ALL_S} s") from error
    try:
        reply = codec.from_json(TrialReply, json.loads(done.stdout))
    except ValueError as error:
        raise ModelError(
            f"the library that reads it ended with exit code {done.returncode}"
        ) from error
    if reply.outcome == "missing":
        raise EngineOnlyError(f"needs {reply.reason}: {install_hint('hf')}")
    if reply.outcome == "fail":
        raise ModelError(reply.reason)
    return reply.reason


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    memory = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (memory, hard))
    try:
        question = codec.from_json(TrialQuestion, json.loads(sys.stdin.buffer.read()))
        if question.template is not None:
            reply = _render(question.template)
        else:
            assert question.tokenizer is not None
            reply = _round_trips(question.tokenizer)
    except ImportError as error:
        reply = TrialReply("missing", str(error.name))
    except MemoryError:
        reply = TrialReply("fail", f"it takes more than {MEMORY >> 30} GB of memory")
    except BaseException as error:  # a panic of the library is not an Exception
        reply = TrialReply("fail", f"{type(error).__name__}: {error}")
    print(codec.dumps(reply))


def _round_trips(request: Tokenizer) -> TrialReply:
    from tokenizers import Tokenizer as Library

    tokenizer = (
        Library.from_file(request.path) if request.path else Library.from_str(request.content)
    )
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    largest = max(vocabulary.values(), default=-1)
    if 0 < request.rows <= largest:
        sizes = f"there are tokens up to {largest:,}, but the vocabulary's size is {request.rows:,}"
        return TrialReply("fail", sizes)
    count = 0
    for text in TEXTS:
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        count += len(tokens)
        if difference := same_text(text, tokenizer.decode(tokens, skip_special_tokens=False)):
            return TrialReply("fail", difference)
    size = f"{tokenizer.get_vocab_size():,} tokens"
    return TrialReply(
        "pass", f"{size}; {len(TEXTS)} texts survive a round trip through {count} tokens"
    )


def _render(template: Template) -> TrialReply:
    from assay.quality.check.jinja import render_template

    def expired(*_: object) -> None:
        raise TimeoutError(f"it takes longer than {TEMPLATE_S} s")

    signal.signal(signal.SIGALRM, expired)
    signal.alarm(TEMPLATE_S)
    message = {"role": "user", "content": MESSAGE}
    text = render_template(template.text, [message], template.marks)
    if MESSAGE not in text:
        problem = f"the rendered chat does not contain the message: {text[:80]!r}"
        return TrialReply("fail", problem)
    return TrialReply("pass", f"a message of {len(MESSAGE)} characters renders to {len(text)}")


if __name__ == "__main__":
    main()
