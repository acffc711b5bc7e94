"""Score given tokens with a model in torch (see ``workers.score_lines``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from assay.models.engines.torch.load import Loaded

AT_ONCE = {"cpu": 1, "cuda": 16}  # sequences in one pass; a CPU is as fast with one


class TorchScores:
    """Score with the attention that the model had when this was created: transformers' own."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._attention = loaded.model.config._attn_implementation

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        tokenizer = self._loaded.tokenizer
        tokens: list[int] = tokenizer.encode(
            text, add_special_tokens=True, split_special_tokens=not special
        )
        return tokens

    def bytes_of(self, token: int) -> int:
        text: str = self._loaded.tokenizer.decode(
            [token], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return len(text.encode())

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = (
            self._compute_logits([list(tokens)], 0)[0].float().cpu().numpy()
        )
        return found

    def logprobs(self, sequences: Sequence[Sequence[int]], last: int) -> list[list[float]]:
        """Return log-probabilities. Sequences of equal length are computed together."""
        if len({len(tokens) for tokens in sequences}) > 1:
            return [self.logprobs([tokens], last)[0] for tokens in sequences]
        logits = self._compute_logits(sequences, last + 1)[:, :-1]
        wanted = torch.tensor([tokens[-last:] for tokens in sequences], device=logits.device)
        found = [
            row.float().log_softmax(-1).gather(-1, token[:, None])[:, 0].cpu()
            for row, token in zip(logits, wanted, strict=True)
        ]
        return [row.double().tolist() for row in found]

    def _compute_logits(self, sequences: Sequence[Sequence[int]], last: int) -> Any:
        model = self._loaded.model
        tokens = torch.tensor(sequences, device=self._loaded.device)
        generating = model.config._attn_implementation  # the slots' own, if there are any
        model.set_attn_implementation(self._attention)
        try:
            return model(tokens, logits_to_keep=last, use_cache=False).logits
        finally:
            model.set_attn_implementation(generating)
