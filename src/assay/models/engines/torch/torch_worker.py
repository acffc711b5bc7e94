"""Serve the hf engine over the lines of ``workers.process``. Slots are refilled as they end."""

from __future__ import annotations

import dataclasses
import queue
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

import torch

from assay.models.devices import free_memory
from assay.models.engines.torch.load import AT_ONCE, Loaded, TorchScores, load, set_threads
from assay.models.engines.torch.slots import (
    Prefilled,
    PromptReader,
    Slots,
    bytes_per_token,
    choice_for,
)
from assay.models.engines.torch.texts import TextConverter, TokenAsk
from assay.models.engines.torch.torch_model import Generate, TorchFacts, TorchSettings
from assay.models.workers.engine_messages import Score, Scoring, Tokenize
from assay.models.workers.lines import Lines, answer_question

if TYPE_CHECKING:
    from collections.abc import Sequence

    WorkerLines = Lines[TorchSettings]

# Batch size, if memory allows.
MOST = {"cpu": 32, "cuda": 2048}
# Prompts read in one pass. On a CPU one: more are not faster, and results stay the same.
PROMPTS = {"cpu": 1, "cuda": 32}
STEPS = {"cpu": 1, "cuda": 8}  # between two checks for finished sequences
MEMORY_SHARE = {"cpu": 0.3, "cuda": 0.7}  # of what is free, for keys and values
PROMPT_TOKENS = 512  # of a typical request, for the first estimate
KEPT_PROMPTS = 4  # read, and kept for samples that wait for a free slot
ROUND = 128


def main() -> None:
    lines = Lines(TorchSettings, (Generate,))
    settings = lines.settings
    torch.set_grad_enabled(False)
    set_threads(settings.options.threads)
    with lines.ending_on(Exception):
        loaded = load(settings)
        generate = settings.generate or _score_until_asked_to_generate(lines, loaded)
        engine = TorchEngine(loaded, lines, generate.max_tokens)
    _tell_ready(lines, loaded, engine.facts(), 2 * engine.most)
    engine.serve()


def _tell_ready(lines: WorkerLines, loaded: Loaded, facts: TorchFacts, in_hand: int) -> None:
    lines.ready(
        facts,
        used_gpu=loaded.device == "cuda",
        in_hand=in_hand,
        scoring=Scoring(loaded.context, AT_ONCE[loaded.device]),
        gpu_peak=torch.cuda.max_memory_reserved,
    )


def _score_until_asked_to_generate(lines: WorkerLines, loaded: Loaded) -> Generate:
    """Score until a message asks to generate; return it. Some models can only be scored here."""
    scores = TorchScores(loaded)
    _tell_ready(lines, loaded, loaded.facts(), 0)
    while not isinstance(message := lines.requests.get(), Generate):
        lines.reply(answer_question(scores, message, loaded.context))
    if loaded.device == "cuda":
        torch.cuda.empty_cache()  # free memory decides the number of slots
    return message


class TorchEngine:
    """A loaded model that takes requests from the harness as slots become free."""

    def __init__(self, loaded: Loaded, lines: WorkerLines, new_tokens: int) -> None:
        self._loaded, self._scores = loaded, TorchScores(loaded)
        options = lines.settings.options
        self._texts, self._lines = TextConverter(loaded, lines, options), lines
        self._waiting: deque[TokenAsk] = deque()
        self._busy: list[TokenAsk] = []  # by slot
        tokenizer = loaded.tokenizer
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        self._reader = PromptReader(loaded.model, pad)
        self._read: OrderedDict[tuple[int, ...], Prefilled] = OrderedDict()
        self._typical = self._reader.read([[pad]])[0]
        self._slots: Slots | None = None
        self._new_tokens = new_tokens
        self._length = min(loaded.context, PROMPT_TOKENS + new_tokens)
        self.most = options.batch_size or min(MOST[loaded.device], self._fitting(self._length))

    def facts(self) -> TorchFacts:
        loaded = self._loaded
        exact = loaded.device == "cpu" and loaded.dtype == "float32"
        return dataclasses.replace(
            loaded.facts(), parallel=self.most, batch_invariant=self.most == 1 or exact
        )

    def serve(self) -> None:
        self._texts.start()
        while True:
            self._receive()
            try:
                self._admit()
                self._advance()
            except torch.OutOfMemoryError:
                self._shrink()

    def _receive(self) -> None:
        """Receive messages. Wait only if there is nothing else to do."""
        while True:
            try:
                idle = not self._waiting and not self._busy
                request = self._texts.inbox.get(block=idle)
            except queue.Empty:
                return
            if isinstance(request, TokenAsk):
                self._waiting.append(request)
            else:
                self._score(request)

    def _score(self, question: Tokenize | Score) -> None:
        """Score given tokens with the memory of idle slots."""
        if not self._busy:
            self._slots = None
            self._read.clear()
            if self._loaded.device == "cuda":
                torch.cuda.empty_cache()
        self._lines.reply(answer_question(self._scores, question, self._loaded.context))

    def _fitting(self, length: int) -> int:
        """Return how many slots of this length fit into memory."""
        per_slot = length * bytes_per_token(self._typical)
        vocabulary = self._loaded.model.get_output_embeddings().weight.shape[0]
        per_slot += 16 * vocabulary  # its logits, in the number formats that sampling needs
        on_gpu = self._loaded.device == "cuda"
        free = torch.cuda.mem_get_info()[0] if on_gpu else free_memory()
        return max(1, int(free * MEMORY_SHARE[self._loaded.device] / per_slot))

    def _prepare(self) -> Slots:
        """Return slots long enough for the waiting requests. Allocate new ones if needed.

        They are made for a typical request at least: longer ones than those that came first would
        wait until all of these are finished.
        """
        need = max(self._length, *(ask.length for ask in self._waiting))
        new_tokens = max(self._new_tokens, *(ask.wish.max_tokens for ask in self._waiting))
        slots = self._slots
        if slots is not None and (
            self._busy or (need <= slots.length and new_tokens <= slots.new_tokens)
        ):
            return slots
        self._slots = slots = None  # the new slots need the memory of the old ones
        if self._loaded.device == "cuda":
            torch.cuda.empty_cache()
        length = min(self._loaded.context, -(-need // ROUND) * ROUND)
        size = min(self.most, self._fitting(length))
        self._slots = Slots(
            self._reader, self._typical, size, length, new_tokens, self._loaded.ends
        )
        return self._slots

    def _admit(self) -> None:
        """Fill free slots. Each prompt is read once for all its consecutive samples."""
        while self._waiting:
            slots = self._prepare()
            groups = self._next_groups(slots)
            if not groups:
                return
            asks = [ask for group in groups for ask in group]
            try:
                prompts = self._prefill([group[0].prompt for group in groups])
                wishes = [[ask.wish for ask in group] for group in groups]
                slots.place(list(zip(prompts, wishes, strict=True)))
            except torch.OutOfMemoryError:
                self._waiting.extendleft(reversed(asks))
                raise
            self._busy += asks
            for ask in asks:
                ask.left = ask.wish.max_tokens - 1  # reading the prompt gave the first

    def _next_groups(self, slots: Slots) -> list[list[TokenAsk]]:
        groups: list[list[TokenAsk]] = []
        free = slots.size - slots.count
        now = time.perf_counter()
        while self._waiting and free:
            ask = self._waiting[0]
            if ask.length > slots.length or ask.wish.max_tokens > slots.new_tokens:
                break  # wait until the slots are empty and can be allocated again
            if groups and groups[-1][0].prompt == ask.prompt:
                groups[-1].append(ask)
            elif len(groups) == PROMPTS[self._loaded.device]:
                break
            else:
                groups.append([ask])
            ask.started = now
            self._waiting.popleft()
            free -= 1
        return groups

    def _prefill(self, prompts: Sequence[tuple[int, ...]]) -> list[Prefilled]:
        unread = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._read]
        if unread:
            self._read.update(zip(unread, self._reader.read(unread), strict=True))
        prefilled = [self._read[prompt] for prompt in prompts]
        for prompt in prompts:
            self._read.move_to_end(prompt)
        while len(self._read) > KEPT_PROMPTS:
            self._read.popitem(last=False)
        return prefilled

    def _advance(self) -> None:
        slots = self._slots
        if slots is None or not self._busy:
            return
        steps = min(STEPS[self._loaded.device], max(ask.left for ask in self._busy))
        slots.advance(steps, choice_for([ask.wish for ask in self._busy]))
        self._lines.count(steps * len(self._busy))
        for ask in self._busy:
            ask.left -= steps
        self._harvest(slots)

    def _harvest(self, slots: Slots) -> None:
        """Send all results that are done or have met a stop word, and free their slots."""
        done = slots.done()
        stoppable = [
            slot
            for slot, ask in enumerate(self._busy)
            if (ask.stop or ask.ends) and slot not in done
        ]
        if stoppable:
            asks = [self._busy[slot] for slot in stoppable]
            met = self._texts.stopped(asks, slots.tokens(stoppable), STEPS[self._loaded.device])
            done |= {slot for slot, stopped in zip(stoppable, met, strict=True) if stopped}
        if not done:
            return
        finished = sorted(done)
        results = zip(finished, slots.tokens(finished), slots.logprobs(finished), strict=True)
        for slot, tokens, logprob in results:
            self._texts.finish(self._busy[slot], tokens, logprob)
        for source, target in slots.free(finished):
            self._busy[target] = self._busy[source]
        del self._busy[slots.count :]

    def _shrink(self) -> None:
        """Halve the batch size after running out of memory. Interrupted sequences start again."""
        if self.most == 1:
            ask = self._busy.pop() if self._busy else self._waiting.popleft()
            self._texts.fail(ask, "the device has too little memory for this prompt alone")
        self.most = max(1, self.most // 2)
        self._waiting.extendleft(reversed(self._busy))
        self._busy, self._slots = [], None
        self._read.clear()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
