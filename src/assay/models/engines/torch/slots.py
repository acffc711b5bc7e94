"""Hold sequences in slots on the device: their keys, values and state, and steps for all of them.

Every slot is a sequence at its own position. Busy slots stay together at the front, so a step
computes only these. On a GPU a step is one CUDA graph: a small model's hundreds of kernels cost
more to launch than to run. Gradients must be off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from transformers import Cache

from assay.models.engines.torch import fused as hf_attention
from assay.models.engines.torch.fused import fuse
from assay.models.engines.torch.sampling import SamplingFeatures, SamplingSettings, choose
from assay.types import Decoding

if TYPE_CHECKING:
    from collections.abc import Sequence

# Sizes of graphs. A step between two sizes uses the larger one and wastes the rest.
SIZES = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 640, 768, 1024, 1280, 1536, 1792,
         2048)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prefilled:
    """A prompt that was read, from which its continuations start."""

    keys: torch.Tensor  # layers, heads, tokens, width
    values: torch.Tensor
    logits: torch.Tensor
    tokens: tuple[int, ...]

    @property
    def length(self) -> int:
        return int(self.keys.shape[2])


class _Gathering(Cache):  # type: ignore[misc]
    """The keys and values that a forward pass over prompts computes."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
        self.keys.append(key_states)
        self.values.append(value_states)
        return key_states, value_states


class _Past(Cache):  # type: ignore[misc]
    """Keys and values of the first ``rows`` slots. A token's own go to its sequence's position."""

    def __init__(self, slots: Slots, rows: int) -> None:
        super().__init__(layers=[])
        self._slots = slots
        self._rows = rows
        self._row = torch.arange(rows, device=slots.position.device)

    def update(self, key_states: Any, value_states: Any, layer_idx: int, *_: Any, **__: Any) -> Any:
        keys = self._slots.keys[layer_idx, : self._rows]
        values = self._slots.values[layer_idx, : self._rows]
        at = self._slots.position[: self._rows]
        keys[self._row, :, at] = key_states[:, :, 0]
        values[self._row, :, at] = value_states[:, :, 0]
        return keys, values


@dataclass(slots=True)
class _Computing:
    """State that the attention function needs about the pass in which it is called."""

    position: torch.Tensor | None = None
    longest: int = 0


@dataclass(slots=True)
class PromptReader:
    """The model as it is run over prompts, and the shapes of what a sequence needs."""

    model: Any
    pad: int
    computing: _Computing = field(default_factory=_Computing)

    def __post_init__(self) -> None:
        fuse(self.model)
        hf_attention.register(self.computing)
        self.model.set_attn_implementation(hf_attention.NAME)

    def read(self, prompts: Sequence[Sequence[int]]) -> list[Prefilled]:
        self.computing.position = None
        lengths = [len(prompt) for prompt in prompts]
        widest = max(lengths)
        padded = [[*prompt, *[self.pad] * (widest - len(prompt))] for prompt in prompts]
        ids = torch.tensor(padded, device=self.model.device)
        ends = sorted(set(lengths))
        cache = _Gathering()
        logits = self.model(
            input_ids=ids,
            position_ids=torch.arange(widest, device=ids.device)[None].expand_as(ids),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=torch.tensor([end - 1 for end in ends], device=ids.device),
        ).logits
        keys, values = torch.stack(cache.keys, 1), torch.stack(cache.values, 1)
        return [
            Prefilled(
                keys[row, :, :, :length], values[row, :, :, :length],
                logits[row, ends.index(length)], tuple(prompts[row]),
            )
            for row, length in enumerate(lengths)
        ]  # fmt: skip


class Slots:
    """Sequences in progress. Slots 0 to ``count`` - 1 are busy."""

    def __init__(
        self,
        reader: PromptReader,
        typical: Prefilled,
        size: int,
        length: int,
        new_tokens: int,
        ends: Sequence[int],
    ) -> None:
        self._reader = reader
        self._graphs: dict[tuple[int, SamplingFeatures], Any] = {}
        self._pool: Any = None
        self._warm: set[SamplingFeatures] = set()
        self.size, self.length, self.new_tokens = size, length, new_tokens
        self.count = 0
        self.uses_graphs = typical.keys.is_cuda
        layers, heads, _, width = typical.keys.shape
        shape = (layers, size, heads, length)
        self.keys = typical.keys.new_zeros((*shape, width))
        self.values = typical.values.new_zeros((*shape, typical.values.shape[-1]))
        device = typical.keys.device

        def state(dtype: torch.dtype, *more: int) -> torch.Tensor:
            return torch.zeros((size, *more), dtype=dtype, device=device)

        self.position = state(torch.int64)
        self._token = state(torch.int64)
        self._made = state(torch.int64)
        self._wanted = state(torch.int64)
        self._done = torch.ones(size, dtype=torch.bool, device=device)
        self._logprob = state(torch.float32)
        self._out = state(torch.int64, new_tokens + 1)  # the last column takes discarded tokens
        self._settings = SamplingSettings(
            temperature=state(torch.float32),
            top_k=state(torch.int64),
            top_p=state(torch.float32),
            seed=state(torch.int64),
            min_p=state(torch.float32),
            repetition_penalty=state(torch.float32),
        )
        # The tokens that each slot has had. Kept only once a sequence has a repetition penalty.
        self._seen: torch.Tensor | None = None
        self._vocabulary = typical.logits.shape[-1]
        self._ends = torch.tensor(list(ends), device=device)

    def place(self, begun: Sequence[tuple[Prefilled, Sequence[Decoding]]]) -> None:
        """Start sequences in the next free slots: for each prompt, one per wish."""
        wishes = [wish for _, of_prompt in begun for wish in of_prompt]
        prompts = [prompt for prompt, of_prompt in begun for _ in of_prompt]
        first, last = self.count, self.count + len(wishes)
        assert last <= self.size
        self.count = last
        at = first
        for prompt, of_prompt in begun:
            rows = slice(at, at := at + len(of_prompt))
            self.keys[:, rows, :, : prompt.length] = prompt.keys[:, None]
            self.values[:, rows, :, : prompt.length] = prompt.values[:, None]
        rows = slice(first, last)
        self._made[rows], self._logprob[rows], self._done[rows] = 0, 0, False
        settings = self._settings.by_name().items()
        for state, values in (
            # The position of the last token that was read. The next token follows it.
            (self.position, [prompt.length - 1 for prompt in prompts]),
            (self._wanted, [wish.max_tokens for wish in wishes]),
            *((state, [getattr(wish, name) for wish in wishes]) for name, state in settings),
        ):
            state[rows] = torch.tensor(values, dtype=state.dtype)
        logits = torch.stack([prompt.logits for prompt in prompts])
        choice = choice_for(wishes)
        self._note_prompts(prompts, first, choice)
        self._take(logits, rows, choice)

    def _note_prompts(
        self, prompts: Sequence[Prefilled], first: int, choice: SamplingFeatures
    ) -> None:
        """Mark the prompts' tokens as seen, if a penalty needs to know."""
        if not choice.penalty:
            return
        if self._seen is None:
            shape = (self.size, self._vocabulary)
            self._seen = torch.zeros(shape, dtype=torch.bool, device=self._out.device)
        for row, prompt in enumerate(prompts, first):
            self._seen[row] = False
            self._seen[row, torch.tensor(prompt.tokens, device=self._out.device)] = True

    def advance(self, steps: int, choice: SamplingFeatures) -> None:
        """Generate so many more tokens in every busy slot. Finished sequences stay as they are."""
        rows = self.count
        if self.uses_graphs:
            rows = min(self.size, next((size for size in SIZES if size >= rows), rows))
        for _ in range(steps):
            if not self.uses_graphs:
                self._step(rows, choice)
                continue
            if (rows, choice) not in self._graphs:
                self._graphs[rows, choice] = self._capture(rows, choice)
            self._graphs[rows, choice].replay()

    def done(self) -> set[int]:
        """Return the busy slots whose sequence has ended."""
        return {slot for slot, done in enumerate(self._done[: self.count].tolist()) if done}

    def tokens(self, slots: Sequence[int]) -> list[list[int]]:
        """Return the tokens that these slots have generated so far."""
        chosen = torch.tensor(list(slots), device=self._out.device)
        counts = self._made[chosen].tolist()
        out = self._out[chosen, : max(counts)].tolist()
        return [row[:count] for row, count in zip(out, counts, strict=True)]

    def logprobs(self, slots: Sequence[int]) -> list[float]:
        chosen = torch.tensor(list(slots), device=self._out.device)
        means = self._logprob[chosen] / self._made[chosen].clamp(min=1)
        return [float(mean) for mean in means.tolist()]

    def free(self, slots: Sequence[int]) -> list[tuple[int, int]]:
        """Free slots. The last busy slots move into the holes; return (from, to) of each."""
        gone, moves = set(slots), []
        keep = self.count - len(gone)
        holes = sorted(slot for slot in gone if slot < keep)
        for hole, last in zip(
            holes, [s for s in range(keep, self.count) if s not in gone], strict=True
        ):
            moves.append((last, hole))
        if moves:
            source, target = (
                torch.tensor(list(side), device=self._out.device)
                for side in zip(*moves, strict=True)
            )
            self._move(source, target)
        self._done[keep : self.count] = True
        self.position[keep : self.count] = 0
        self.count = keep
        return moves

    def _move(self, source: torch.Tensor, target: torch.Tensor) -> None:
        used = int(self.position[source].max()) + 1
        for layer in range(self.keys.shape[0]):  # one at a time: a copy of all takes memory
            self.keys[layer, target, :, :used] = self.keys[layer, source, :, :used]
            self.values[layer, target, :, :used] = self.values[layer, source, :, :used]
        for state in (*self._states(), self._wanted, *self._settings.by_name().values()):
            state[target] = state[source]

    def _step(self, rows: int, choice: SamplingFeatures) -> None:
        computing = self._reader.computing
        computing.position = self.position[:rows]
        computing.longest = self.length if self.keys.is_cuda else int(computing.position.max()) + 1
        logits = self._reader.model(
            input_ids=self._token[:rows, None],
            position_ids=self.position[:rows, None],
            past_key_values=_Past(self, rows),
            use_cache=True,
        ).logits[:, -1]
        self._take(logits, slice(0, rows), choice)

    def _take(self, logits: torch.Tensor, rows: slice, choice: SamplingFeatures) -> None:
        """Choose the next token of these slots and store it."""
        made, done = self._made[rows], self._done[rows]
        seen = self._seen[rows] if choice.penalty and self._seen is not None else None
        token, logprob = choose(logits, made, self._settings.of(rows), choice, seen)
        if seen is not None:
            seen.scatter_(1, token[:, None], True)
        live = ~done
        column = torch.where(live, made, self.new_tokens)
        self._out[rows].scatter_(1, column[:, None], token[:, None])
        self._logprob[rows] += torch.where(live, logprob, 0.0)
        self._made[rows] += live
        ended = (token[:, None] == self._ends).any(dim=1)
        self._done[rows] |= ended | (self._made[rows] >= self._wanted[rows])
        self._token[rows] = token
        # A finished sequence stays at its position, which must not leave the slot.
        self.position[rows] += ~self._done[rows]

    def _capture(self, rows: int, choice: SamplingFeatures) -> Any:
        """Capture a step as a graph, which computes nothing yet."""
        if choice not in self._warm:
            self._warm_up(rows, choice)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            self._step(rows, choice)
        self._pool = self._pool or graph.pool()
        return graph

    def _warm_up(self, rows: int, choice: SamplingFeatures) -> None:
        """Compute a step once, so that kernels are compiled, and restore every sequence's state."""
        copies = [state.clone() for state in self._states()]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._step(rows, choice)
        torch.cuda.current_stream().wait_stream(stream)
        for state, before in zip(self._states(), copies, strict=True):
            state.copy_(before)
        self._warm.add(choice)

    def _states(self) -> tuple[torch.Tensor, ...]:
        seen = () if self._seen is None else (self._seen,)
        return (
            self.position, self._token, self._made, self._done, self._logprob, self._out, *seen,
        )  # fmt: skip


def choice_for(wishes: Sequence[Decoding]) -> SamplingFeatures:
    """Return the smallest choice that suits all of them."""
    sampled = [wish for wish in wishes if wish.temperature > 0]
    penalty = any(wish.repetition_penalty != 1 for wish in wishes)
    if not sampled:
        return SamplingFeatures(1, penalty=penalty)
    width = 0 if any(wish.top_k == 0 for wish in sampled) else max(w.top_k for w in sampled)
    if width == 1:
        return SamplingFeatures(1, penalty=penalty)
    return SamplingFeatures(
        width,
        nucleus=any(wish.top_p < 1 for wish in sampled),
        floor=any(wish.min_p > 0 for wish in sampled),
        penalty=penalty,
    )


def bytes_per_token(typical: Prefilled) -> int:
    """Return the bytes of keys and values per token."""
    tensors: tuple[torch.Tensor, ...] = (typical.keys, typical.values)
    return sum(t[:, :, 0].numel() * t.element_size() for t in tensors)
