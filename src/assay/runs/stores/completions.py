"""Store completions, so that the same request to the same model is generated once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.data import codec
from assay.runs.kept import KeptData
from assay.types import Completion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from assay.types import Prompt, Request, SampleKey

    Complete = Callable[[Iterable[Request]], Iterator[Completion]]

# Raise it when the meaning of a request or of a stored completion changes.
FORMAT = 1
ANSWERS = ("stop", "length")  # other ends are no answers, and may have another end next time


class CompletionStore:
    """Completions by request, for the ``conditions`` of one model and its engine.

    ``conditions`` are everything besides a request that can change its text. ``written`` collects
    the keys that this process has stored. Without ``earlier`` only these are found, because the
    user wants new completions, or because the model may have changed since.
    """

    def __init__(
        self,
        folder: Path,
        conditions: Sequence[object],
        *,
        written: set[str] | None = None,
        earlier: bool = True,
    ) -> None:
        self._kept = KeptData(folder)
        self._conditions = [FORMAT, *conditions]
        self._written = set() if written is None else written
        self._earlier = earlier

    def key(self, request: Request) -> str:
        """Return the key of a request.

        Without sampling the seed has no effect. The number of the sample stands for it, so that
        two samples of one problem are still two requests.
        """
        sampled = request.decoding.temperature > 0
        decoding = codec.to_json(replace(request.decoding, seed=0))
        which = ["seed", request.seed] if sampled else ["sample", request.sample]
        return codec.digest([self._conditions, _encode(request.prompt), decoding, which])

    def get(self, key: str, request: Request) -> Completion | None:
        """Return the stored completion as one of ``request``, marked as reused, or None."""
        if not self.has(key):
            return None
        try:
            found = codec.from_json(Completion, self._kept.get(key))
            codec.check_numbers(found)
        except ValueError:
            return None
        return replace(
            found, task_id=request.task_id, sample=request.sample, seed=request.seed, reused=True
        )

    def has(self, key: str) -> bool:
        """Return whether there is a completion that ``get`` will find, unless it is damaged."""
        return (self._earlier or key in self._written) and self._kept.has(key)

    def put(self, key: str, completion: Completion) -> None:
        """Store a completion, unless the request failed."""
        if completion.error is None and completion.finish_reason in ANSWERS:
            self._kept.put(key, codec.to_json(replace(completion, task_id="", sample=0)))
            self._written.add(key)

    def has_all(self, requests: Iterable[Request]) -> bool:
        """Return whether no request needs the model."""
        return all(self.has(self.key(request)) for request in requests)

    def reuse(self, complete: Complete) -> Complete:
        """Return a function that calls ``complete`` only for requests without an answer here.

        Their answers are stored. Without such requests the engine does not start.
        """

        def reusing(requests: Iterable[Request]) -> Iterator[Completion]:
            found: list[Completion] = []
            keys: dict[SampleKey, str] = {}

            def new_requests() -> Iterator[Request]:
                for request in requests:
                    key = self.key(request)
                    if (completion := self.get(key, request)) is not None:
                        found.append(completion)
                    else:
                        keys[request.key] = key
                        yield request

            for completion in complete(new_requests()):
                yield from _take_all(found)
                self.put(keys.pop(completion.key), completion)
                yield completion
            yield from _take_all(found)

        return reusing


def _encode(prompt: Prompt) -> Any:
    """Return the prompt as JSON, without suffix and prefill if it has none, as before."""
    absent = {"suffix": prompt.suffix is None, "prefill": not prompt.prefill}
    return {k: value for k, value in codec.to_json(prompt).items() if not absent.get(k)}


def _take_all(found: list[Completion]) -> Iterator[Completion]:
    """Yield the completions that are there now, and remove them."""
    taken = found[:]
    del found[: len(taken)]
    yield from taken
