"""The default model through llama.cpp, for real."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError
from assay.models import DEFAULT_WEIGHTS, EngineOptions, Model, convert, open_model
from assay.models.engines.llamacpp import llama_worker
from assay.models.engines.llamacpp.gguf_model import GgufModel, LlamaSettings
from assay.models.workers.engine_messages import Ask, Reply
from assay.prompts import strategies
from assay.types import Benchmark, Decoding, Message, Prompt, Request
from tests.formats.gguf_samples import gguf

pytestmark = pytest.mark.model
SAMPLED = Decoding(max_tokens=24, temperature=0.8, top_k=40)


def requests(benchmark: Benchmark, decoding: Decoding, count: int) -> list[Request]:
    build = strategies.get("standard").build
    return [
        Request(p.task_id, 0, build(p, "chat"), decoding, seed=11)
        for p in benchmark.problems[:count]
    ]


def test_the_default_model_is_the_one_named(mini: Benchmark, default_model: Model) -> None:
    model = default_model
    assert model.identity.weights_sha256 == DEFAULT_WEIGHTS.sha256
    assert (model.identity.engine, model.identity.prompt_form) == ("gguf", "chat")
    (made,) = model.generate(requests(mini, Decoding(max_tokens=24), 1))
    assert made.error is None
    assert made.text.strip()
    assert 0 < made.tokens_generated <= 24
    assert made.finish_reason in ("stop", "length")
    assert made.prompt_tokens > 20
    assert made.used_gpu is False


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, pytest.param(0.8, marks=pytest.mark.whole)])
def test_batched_and_one_by_one_give_the_same_tokens(mini: Benchmark, temperature: float) -> None:
    decoding = Decoding(max_tokens=24, temperature=temperature, top_k=40 if temperature else 1)
    asked = requests(mini, decoding, 6)
    texts = [
        {c.task_id: c.text for c in open_model("default", EngineOptions(mode)).generate(asked)}
        for mode in ("on", "off")
    ]
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_float_weights_are_not_called_batch_invariant(tmp_path: Path) -> None:
    path = tmp_path / "f16.gguf"
    convert(Path("default"), path, dtype="float16")
    request = Request("t", 0, Prompt(text="def f(x):"), Decoding(max_tokens=1), 0)
    told = []
    on, off = EngineOptions("on"), EngineOptions("off")
    for spec, options in (("default", on), (str(path), on), (str(path), off)):
        model = open_model(spec, options)
        assert [c.error for c in model.generate([request])] == [None]
        told.append(model.describe().to_json()["batch_invariant"])
    assert told == [True, False, True]


def test_seeds_decide_samples(mini: Benchmark, default_model: Model) -> None:
    prompt = strategies.get("standard").build(mini.problems[0], "chat")
    hot = Decoding(max_tokens=24, temperature=1.5, top_k=0)
    asked = [Request("t", i, prompt, hot, seed=seed) for i, seed in enumerate((1, 2, 1))]
    made = {c.sample: c.text for c in default_model.generate(asked)}
    assert made[0] == made[2] != made[1]


def test_a_prompt_beyond_the_context_is_a_failure_of_that_prompt_only(default_model: Model) -> None:
    short, long = (Prompt(messages=(Message("user", "word " * n),)) for n in (5, 9000))
    asked = [Request("t", i, p, Decoding(max_tokens=4), 0) for i, p in enumerate((short, long))]
    made = {c.sample: c for c in default_model.generate(asked)}
    assert made[0].error is None
    assert (made[1].finish_reason, made[1].error) == ("prompt-too-long", None)


def test_stop_words_and_plain_text(mini: Benchmark, default_model: Model) -> None:
    prompt = Prompt(text=mini.problems[0].prompt, stop=("return",))
    (made,) = default_model.generate([Request("t", 0, prompt, Decoding(max_tokens=64), 0)])
    assert made.error is None
    assert "return" not in made.text


@pytest.mark.slow
def test_closing_from_another_thread_ends_generation(mini: Benchmark) -> None:
    model = open_model("default", EngineOptions(parallel=2, threads=1))
    stream = model.generate(requests(mini, Decoding(max_tokens=16), 20))
    next(stream)
    threading.Timer(0.3, model.close).start()
    with pytest.raises(ModelError, match="llama.cpp ended"):
        list(stream)


def test_closing_while_it_loads_ends_the_loading(mini: Benchmark) -> None:
    model = open_model("default")
    threading.Timer(0.2, model.close).start()
    with pytest.raises(ModelError, match="llama.cpp ended"):
        list(model.generate(requests(mini, Decoding(max_tokens=400), 20)))


class FakeLines:
    """The harness's side, in this process."""

    def __init__(self) -> None:
        self.settings = LlamaSettings("", EngineOptions(), "", 512, 8192, 4, invariant=True)
        self.requests: queue.SimpleQueue[Ask] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self.reply = self.replies.put
        self.count = lambda _: None


def line(number: int, seed: int, text: str = "a") -> Ask:
    return Ask(number, Request("t", number, Prompt(text=text), SAMPLED, seed))


def next_ask(dispatcher: llama_worker._Dispatcher) -> Ask:
    first = dispatcher._first()
    assert isinstance(first, Ask)
    return first


def test_a_request_that_llama_cpp_throws_at_is_answered() -> None:
    class Throwing:
        def handle_completions(self, *_: object) -> None:
            raise RuntimeError("thrown")

    lines: Any = FakeLines()
    for number in range(6):
        lines.requests.put(line(number, number))
    dispatcher = llama_worker._Dispatcher(Throwing(), lines, 4)
    threading.Thread(target=dispatcher.serve, daemon=True).start()
    answers = sorted((lines.replies.get(timeout=10) for _ in range(6)), key=lambda a: a.id)
    assert [(a.id, a.error) for a in answers] == [(n, "thrown") for n in range(6)]


def test_samples_of_a_prompt_are_asked_for_together() -> None:
    lines: Any = FakeLines()
    for number, (seed, text) in enumerate(
        [(5, "a"), (6, "a"), (7, "a"), (8, "a"), (9, "b"), (11, "b"), (12, "b")]
    ):
        lines.requests.put(line(number, seed, text))
    dispatcher = llama_worker._Dispatcher(None, lines, 6)
    groups = [[ask.id for ask in dispatcher._group(next_ask(dispatcher))] for _ in range(4)]
    assert groups == [[0, 1, 2], [3], [4], [5, 6]]


@pytest.mark.slow
def test_samples_made_together_are_those_made_alone(mini: Benchmark) -> None:
    asked = [
        Request(p.task_id, s, Prompt(messages=(Message("user", p.prompt),)), SAMPLED, 100 + s)
        for p in mini.problems[:2]
        for s in range(5)
    ]
    together, alone = (
        {c.key: (c.text, c.tokens_generated, c.prompt_tokens) for c in found}
        for found in (
            open_model("default", EngineOptions(parallel=10)).generate(asked),
            open_model("default", EngineOptions("off")).generate(asked),
        )
    )
    assert together == alone
    assert len({text for text, *_ in together.values()}) > 5


def test_a_file_that_llama_cpp_refuses_is_one_line(tmp_path: Path, mini: Benchmark) -> None:
    path = tmp_path / "hollow.gguf"
    path.write_bytes(gguf())
    with pytest.raises(ModelError, match="llama.cpp"):
        list(GgufModel(str(path), EngineOptions()).generate(requests(mini, Decoding(), 1)))
