"""Score given tokens: log-probabilities and logits from the engine that runs the model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.errors import ModelError
from assay.models.devices import DevicesModel
from assay.models.workers.engine_messages import LogprobsReply, Score, Tokenize, TokensReply
from assay.models.workers.process_model import ProcessModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from assay.models import Model

R = TypeVar("R", TokensReply, LogprobsReply)


class Scorer:
    """A loaded model that scores given tokens. Use it as a context manager.

    ``then_generate`` leaves the process running for the model's next call, if that can use it.
    """

    def __init__(self, model: ProcessModel[Any], *, then_generate: bool = False) -> None:
        self._model, self._then_generate = model, then_generate
        self._process = process = model.scoring_process()
        self.used_gpu = process.used_gpu
        if process.scoring is None:
            raise ModelError(
                f"{model.identity.name}: its engine cannot score tokens. Use gguf, hf or apr."
            )
        self.facts = process.facts.of_scoring()
        self.context, self.at_once = process.scoring.context, process.scoring.at_once

    def tokenize(self, text: str, *, special: bool = False) -> TokensReply:
        """Split a text with the start token of the model; ``special``: marks in it are tokens."""
        return self._ask(Tokenize(text, special), TokensReply)

    def logprobs(self, sequences: Sequence[Sequence[int]], last: int = 0) -> list[list[float]]:
        """Return log-probabilities of each sequence's tokens but the first, or of its last ones."""
        question = Score(tuple(tuple(one) for one in sequences), last)
        return [list(one) for one in self._ask(question, LogprobsReply).logprobs]

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Return one row per token: what the model expects after it."""
        import numpy as np

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "logits.npy")
            self._ask(Score((tuple(tokens),), logits=str(path)), LogprobsReply)
            logits: NDArray[np.float32] = np.load(path)
        return logits

    def close(self) -> None:
        self._model.end_scoring(then_generate=self._then_generate)

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, question: Tokenize | Score, kind: type[R]) -> R:
        self._process.send(question)
        try:
            reply = self._process.reply(kind)
        except BaseException:  # it has ended, or its answer may arrive too late for this question
            self._model.end()
            raise
        if reply.error:
            raise ModelError(reply.error)
        return reply


def open_scorer(model: Model, *, then_generate: bool = False) -> Scorer:
    """Load the model for scoring, if it is not loaded. Raise ModelError if its engine cannot."""
    if isinstance(model, DevicesModel):
        model = model.members[0]
    if not isinstance(model, ProcessModel) or not model.scoring_module:
        raise ModelError(
            f"{model.identity.engine}: this engine cannot score given tokens. Use gguf, hf or apr."
        )
    return Scorer(model, then_generate=then_generate)
