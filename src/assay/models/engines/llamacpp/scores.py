"""Score tokens with llama.cpp as a worker (see ``workers.score_lines``). It ends with its input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.models.engines.llamacpp.native import NativeModel
from assay.models.engines.llamacpp.settings import LlamaFacts, LlamaScoreSettings
from assay.models.engines.llamacpp.worker import wants_gpu
from assay.models.workers.lines import Lines
from assay.models.workers.messages import Scoring
from assay.models.workers.score_lines import answer_question, logprobs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


class LlamaScores:
    def __init__(self, model: NativeModel) -> None:
        self._model = model
        self.tokenize, self.bytes_of = model.tokenize, model.bytes_of

    def logits(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        return self._model.logits(tokens, len(tokens))

    def logprobs(self, sequences: Sequence[Sequence[int]], last: int) -> list[list[float]]:
        return [
            logprobs_of(self._model.logits(tokens, last + 1)[:-1], tokens[-last:])
            for tokens in sequences
        ]


def main() -> None:
    lines = Lines(LlamaScoreSettings)
    settings = lines.settings
    try:
        use_gpu = wants_gpu(settings.device)
        model = NativeModel(settings.path, settings.context, settings.threads, use_gpu=use_gpu)
    except Exception as error:
        lines.fatal(error)
        return
    facts = LlamaFacts(device="gpu" if use_gpu else "cpu", threads=settings.threads)
    scoring = Scoring(context=model.context, at_once=1)
    lines.ready(facts, used_gpu=use_gpu, in_hand=0, scoring=scoring)
    scores = LlamaScores(model)
    while True:
        lines.reply(answer_question(scores, lines.requests.get(), model.context))


if __name__ == "__main__":
    main()
