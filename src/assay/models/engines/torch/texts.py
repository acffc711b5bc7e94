"""Convert between texts and tokens, in threads, while the device computes."""

from __future__ import annotations

import dataclasses
import itertools
import queue
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.formats.marks import THOUGHT_MARKS, cut_at
from assay.models.options import EngineOptions
from assay.models.workers.engine_messages import Render, Reply, Score, Tokenize
from assay.models.workers.prompt_tokens import (
    TemplateLimitError,
    prompt_tokens,
    render_prompt,
    template_process,
)
from assay.types import Decoding
from assay.work import run_in_background

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.formats.marks import Gap
    from assay.models.engines.torch.load import Loaded
    from assay.models.engines.torch.torch_model import TorchSettings
    from assay.models.workers.lines import Lines
    from assay.types import Prompt, Request

MARGIN = 8  # tokens that may decode to no text alone: parts of a character


@dataclass(slots=True)
class TokenAsk:
    """A request as tokens."""

    identifier: int
    prompt: tuple[int, ...]
    wish: Decoding
    stop: tuple[str, ...]
    error: str = ""
    started: float = 0.0
    left: int = 0  # tokens that it may still generate
    ends: frozenset[int] = frozenset()  # tokens that end its text besides the model's own
    # The result; no tokens if there is an error.
    tokens: list[int] = field(default_factory=list)
    logprob: float | None = None
    ms: float = 0.0

    @property
    def length(self) -> int:
        return len(self.prompt) + self.wish.max_tokens


class TextConverter:
    """A converter of requests to tokens in ``inbox``, and of tokens to texts.

    Requests about tokens go to ``inbox`` as they are.
    """

    def __init__(self, loaded: Loaded, lines: Lines[TorchSettings], options: EngineOptions) -> None:
        self._loaded, self._lines = loaded, lines
        self._hidden = _find_hidden(loaded.tokenizer)
        self._render = template_process(loaded.tokenizer, options).render
        self._last: tuple[Prompt | None, tuple[int, ...], str] = None, (), ""
        self._made: queue.SimpleQueue[TokenAsk] = queue.SimpleQueue()
        self.inbox: queue.SimpleQueue[TokenAsk | Tokenize | Score] = queue.SimpleQueue()

    def start(self) -> None:
        for loop in (self._take, self._give):
            run_in_background(loop)

    def finish(self, ask: TokenAsk, tokens: list[int], logprob: float | None) -> None:
        end = next((at for at, token in enumerate(tokens, 1) if token in ask.ends), len(tokens))
        elapsed = time.perf_counter() - ask.started if tokens else 0.0
        ask.tokens, ask.logprob, ask.ms = tokens[:end], logprob, round(elapsed * 1000, 3)
        self._made.put(ask)

    def fail(self, ask: TokenAsk, reason: str) -> None:
        ask.error = reason
        self.finish(ask, [], None)

    def stopped(
        self, asks: Sequence[TokenAsk], tokens: Sequence[list[int]], new: int
    ) -> list[bool]:
        """Return whether a stop word or an end is in the text. Search only its ``new`` tokens."""
        tails = [
            made[-(new + max(map(len, ask.stop), default=0) + MARGIN) :]
            for ask, made in zip(asks, tokens, strict=True)
        ]
        return [
            any(word in text for word in ask.stop) or not ask.ends.isdisjoint(tail)
            for ask, tail, text in zip(asks, tails, self._decode(tails), strict=True)
        ]

    def _take(self) -> None:
        while True:
            message = self._lines.requests.get()
            try:
                self._take_one(message)
            except TemplateLimitError as error:
                self._lines.fatal(error)

    def _take_one(self, message: Any) -> None:
        if isinstance(message, Render):
            parts = message.prompt, message.gap
            self._lines.reply(render_prompt(self._loaded.tokenizer, self._render, *parts))
            return
        if isinstance(message, Tokenize | Score):
            self.inbox.put(message)
            return
        ask = self._ask(message.id, message.request, message.gap)
        if ask.error:
            self.finish(ask, [], None)
        else:
            self.inbox.put(ask)

    def _ask(self, identifier: int, request: Request, gap: Gap | None) -> TokenAsk:
        prompt, decoding, context = request.prompt, request.decoding, self._loaded.context
        if prompt != self._last[0]:  # the samples of a problem follow one another
            self._last = (prompt, *self._tokens(prompt, gap))
        _, tokens, error = self._last
        most = min(decoding.max_tokens, max(1, context - len(tokens)))
        wish = dataclasses.replace(decoding, max_tokens=most, seed=request.seed)
        ends = frozenset(gap.ends if gap else ())
        return TokenAsk(identifier, tokens, wish, prompt.stop, error, ends=ends)

    def _tokens(self, prompt: Prompt, gap: Gap | None) -> tuple[tuple[int, ...], str]:
        """Return the prompt's tokens, and an error if it cannot be continued."""
        try:
            tokens = tuple(prompt_tokens(self._loaded.tokenizer, self._render, prompt, gap))
        except TemplateLimitError:
            raise
        except Exception as error:  # a template may raise anything
            return (), f"the prompt cannot be rendered: {error}"
        if not tokens:
            return (), "the prompt is empty"
        if len(tokens) >= self._loaded.context:
            context = self._loaded.context
            return tokens, f"the prompt has {len(tokens)} tokens, the model's context {context}"
        return tokens, ""

    def _give(self) -> None:
        while True:
            asks = [self._made.get()]
            while not self._made.empty():
                asks.append(self._made.get())
            # Some tokenizers drop a leading space unless another token precedes it.
            last = [self._last_shown(one) for one in asks]
            before = self._decode(last)
            whole = self._decode(
                [(*token, *_text_tokens(one)) for token, one in zip(last, asks, strict=True)]
            )
            for one, start, text in zip(asks, before, whole, strict=True):
                self._reply(one, text[len(start) :])

    def _last_shown(self, ask: TokenAsk) -> tuple[int, ...]:
        """Return the last token of the prompt; before a gap, the last one that is part of it."""
        if not ask.ends:
            return ask.prompt[-1:]
        inner = (t for t in reversed(ask.prompt) if t not in ask.ends and t not in self._hidden)
        return tuple(itertools.islice(inner, 1))

    def _decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Decode tokens exactly, without the clean-up of spaces in some models' settings."""
        tokenizer, hidden = self._loaded.tokenizer, self._hidden
        visible = [[token for token in one if token not in hidden] for one in tokens]
        if tokenizer.is_fast:
            texts: list[str] = tokenizer.backend_tokenizer.decode_batch(
                visible, skip_special_tokens=False
            )
            return texts
        return [tokenizer.decode(one, clean_up_tokenization_spaces=False) for one in visible]

    def _reply(self, ask: TokenAsk, text: str) -> None:
        text, is_cut = cut_at(text, ask.stop)
        ended = bool(ask.tokens) and (
            ask.tokens[-1] in self._loaded.ends or ask.tokens[-1] in ask.ends
        )
        self._lines.reply(
            Reply(
                id=ask.identifier,
                text=text,
                finish_reason="stop" if ended or is_cut else "length",
                prompt_tokens=len(ask.prompt),
                tokens_generated=len(ask.tokens),
                ms=ask.ms,
                logprob=ask.logprob,
                error=ask.error or None,
            )
        )


def _text_tokens(ask: TokenAsk) -> list[int]:
    """Return the tokens of a text, without the token that ended an infilled middle."""
    ended = bool(ask.tokens) and ask.tokens[-1] in ask.ends
    return ask.tokens[:-1] if ended else ask.tokens


def _find_hidden(tokenizer: Any) -> frozenset[int]:
    """Return the special tokens that do not belong to the text: all except reasoning markers."""
    special = {
        token: str(added)
        for token, added in tokenizer.added_tokens_decoder.items()
        if added.special
    }
    special |= dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    return frozenset(token for token, text in special.items() if text not in THOUGHT_MARKS)
