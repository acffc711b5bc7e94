"""Check a model with the engine that runs it, once its file seems sound."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable

from assay.errors import ModelError, install_hint
from assay.formats.format import find_format
from assay.models import EngineOptions, Model, ModelReference, open_model
from assay.models.scoring import open_scorer
from assay.quality.check.contents import SkippedError
from assay.quality.check.texts import MESSAGE, TEXTS, same_text
from assay.types import Decoding, Message, Prompt, Request

START = "def add(a, b):\n    return"
TOKENS = 8
PACKAGES = {"gguf": ("xllamacpp",), "hf": ("torch", "transformers")}
EXTRAS = {"gguf": "gguf", "hf": "hf", "apr": "hf"}  # by engine
# Messages of engines that do not know a kind of model. The file may still be sound.
UNKNOWN = ("attention with ", "does not recognize this architecture")


def open_engine(model: ModelReference, shared: Callable[[], Model] | None = None) -> Model:
    """Return the model, not yet loaded. Raise SkippedError if its engine cannot be used here.

    ``shared`` opens the model for those who use it after the check.
    """
    engine = model.engine or find_format(model.path) or "hf"
    if engine not in EXTRAS:
        raise SkippedError(f"a check does not run {engine}")
    extra = EXTRAS[engine]
    if missing := [name for name in PACKAGES[extra] if importlib.util.find_spec(name) is None]:
        raise SkippedError(f"needs {' and '.join(missing)}: {install_hint(extra)}")
    if shared is not None:
        return shared()
    return open_model(str(model), EngineOptions(parallel=1, longest=TOKENS, logprobs=True))


def forward(model: Model) -> str:
    """Run one pass over a few tokens. Every number in the result must be finite."""
    try:
        with open_scorer(model) as scorer:
            logits = scorer.logits(scorer.tokenize(START).ids)
    except ModelError as error:
        raise _classify(error) from error
    import numpy as np

    numbers = np.isfinite(logits)
    if not numbers.all():
        raise ModelError(f"{(~numbers).sum():,} of {logits.size:,} logits are not finite")
    rows, width = logits.shape
    return f"{rows} tokens, {width:,} logits each, from {logits.min():.1f} to {logits.max():.1f}"


def sample(model: Model) -> str:
    """Generate the likeliest tokens after a line of code. They must be text."""
    request = Request("check", 0, Prompt(text=START), Decoding(max_tokens=TOKENS), 0)
    try:
        (done,) = model.generate([request])
    except ModelError as error:
        raise _classify(error) from error
    if done.error:
        raise ModelError(done.error)
    if not done.text and done.tokens_generated <= 1:
        return f"after {START!r} the model generates nothing"
    if not done.text.strip("\ufffd\x00"):
        raise ModelError(f"{done.tokens_generated} tokens do not decode to text: {done.text!r}")
    return f"the model continues {START!r} with {done.text!r}"


def round_trip(model: Model) -> str:
    """Encode and decode texts with the engine's tokenizer, all at once to load it only once."""
    text = "\n".join(TEXTS)
    rendered = model.render(Prompt(text=text))
    back = "".join(rendered.pieces)
    back = back[max(0, back.find(text[:8])) :]  # without what the engine puts before
    at = 0
    # A token that is a part of a character is decoded as the replacement character.
    for part in re.split("\ufffd+", back):
        if (start := text.find(part, at)) < 0 or (not at and start):
            raise ModelError(same_text(text, back))
        at = start + len(part)
    if at < len(text) and not back.endswith("\ufffd"):
        raise ModelError(same_text(text, back))
    return f"{len(TEXTS)} texts survive a round trip through {len(rendered.tokens)} tokens"


def chat(model: Model) -> str:
    """Render the chat template with the engine."""
    text = model.render(Prompt(messages=(Message("user", MESSAGE),))).text
    if MESSAGE not in text:
        raise ModelError(f"the rendered chat does not contain the message: {text[:80]!r}")
    return f"a message of {len(MESSAGE)} characters renders to {len(text)}"


def _classify(error: ModelError) -> Exception:
    """Return the error, or a SkippedError if the engine does not know this kind of model."""
    if any(words in str(error) for words in UNKNOWN):
        return SkippedError(f"the engine does not know this kind of model: {error}")
    return error
