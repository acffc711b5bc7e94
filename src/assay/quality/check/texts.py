"""A tokenizer and a chat template, tried in a process of their own.

A template is a program and a tokenizer's file is read by a library that may abort, so both have a
limit of memory and of time. ``python -m assay.quality.check.texts`` reads one JSON object,
{"tokenizer": {"path" or "content"}, "rows"} or {"template", "marks"}, and replies one with
"fail", "missing" (a package) or "pass" and the reason.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from assay.distribution import install_hint
from assay.errors import ModelError
from assay.quality.check.opened import EngineOnlyError

if TYPE_CHECKING:
    from assay.quality.check.opened import Template, Tokenizer

MEMORY = 2 << 30
TEMPLATE_S = 3
ALL_S = 120
# Composed characters: some tokenizers compose them.
TEXTS = (
    "def add(a, b):\n    return a + b  # 1 + 1 == 2\n",
    "\tif x:\n\t\tpass\n\n\n  two  spaces   three\n",
    "for (int i = 0; i < 10; ++i) { sum += v[i] * 0x1F; } // \"quoted\" 'too' \\n",
    "naïve café, Ελλάδα, Москва, 中文, 日本語, עברית, 🙂👍🏽",
)
MESSAGE = "Add one and two."


def tried_tokenizer(tokenizer: Tokenizer) -> str:
    """What passed; ModelError if something did not, Skipped where it cannot be tried."""
    asked: dict[str, Any] = {"path": str(tokenizer.path)} if tokenizer.path else {}
    return _asked({"tokenizer": asked or {"content": tokenizer.content}, "rows": tokenizer.rows})


def tried_template(template: Template) -> str:
    return _asked({"template": template.text, "marks": dict(template.marks)})


def same_text(text: str, back: str) -> str:
    """How a text differs from what came back, if it does. SentencePiece adds a space."""
    if back.removeprefix(" ") == text.removeprefix(" "):
        return ""
    at = next((n for n, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), None)
    at = min(len(text), len(back)) if at is None else at
    start = max(0, at - 8)
    return f"{text[start : at + 8]!r} comes back as {back[start : at + 8]!r}"


def _asked(question: dict[str, Any]) -> str:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "assay.quality.check.texts"],
            input=json.dumps(question).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ALL_S,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"it takes longer than {ALL_S} s") from error
    try:
        reply = json.loads(done.stdout)
    except ValueError as error:
        raise ModelError(f"the library that reads it ends with exit {done.returncode}") from error
    if "missing" in reply:
        raise EngineOnlyError(f"needs {reply['missing']}: {install_hint('hf')}")
    if "fail" in reply:
        raise ModelError(reply["fail"])
    return str(reply["pass"])


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    memory = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (memory, hard))
    question = json.loads(sys.stdin.buffer.read())
    try:
        reply = _template(question) if "template" in question else _round_trips(question)
    except ImportError as error:
        reply = {"missing": error.name}
    except MemoryError:
        reply = {"fail": f"it takes more than {MEMORY >> 30} GB of memory"}
    except BaseException as error:  # a panic of the library is no Exception
        reply = {"fail": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply))


def _round_trips(question: dict[str, Any]) -> dict[str, Any]:
    from tokenizers import Tokenizer as Library

    asked = question["tokenizer"]
    read = Library.from_file if "path" in asked else Library.from_str
    tokenizer = read(asked["path"] if "path" in asked else json.dumps(asked["content"]))
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    largest = max(vocabulary.values(), default=-1)
    if 0 < question["rows"] <= largest:
        return {"fail": f"there are tokens up to {largest:,}, the vocabulary's size is "
                        f"{question['rows']:,}"}  # fmt: skip
    count = 0
    for text in TEXTS:
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        count += len(tokens)
        if difference := same_text(text, tokenizer.decode(tokens, skip_special_tokens=False)):
            return {"fail": difference}
    return {"pass": f"{tokenizer.get_vocab_size():,} tokens; {len(TEXTS)} texts are the same after "
                    f"{count} tokens"}  # fmt: skip


def _template(question: dict[str, Any]) -> dict[str, Any]:
    from assay.quality.check.jinja import rendered

    def expired(*_: object) -> None:
        raise TimeoutError(f"it takes longer than {TEMPLATE_S} s")

    signal.signal(signal.SIGALRM, expired)
    signal.alarm(TEMPLATE_S)
    message = {"role": "user", "content": MESSAGE}
    text = rendered(question["template"], [message], question["marks"])
    if MESSAGE not in text:
        return {"fail": f"what is said to the model is not in what comes out: {text[:80]!r}"}
    return {"pass": f"a message of {len(MESSAGE)} characters becomes {len(text)}"}


if __name__ == "__main__":
    main()
