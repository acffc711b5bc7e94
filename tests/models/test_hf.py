"""The hf engine, with small models that are really run."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the hf extra: pip install 'assay-eval[hf]'")
pytest.importorskip("transformers", reason="needs the hf extra: pip install 'assay-eval[hf]'")

import torch

from assay.errors import AssayError, ModelError, UsageError
from assay.models import EngineOptions, open_model
from assay.models.engines.torch import torch_model as hf
from assay.models.engines.torch import torch_worker as worker
from assay.models.engines.torch.load import load
from assay.models.engines.torch.sampling import SamplingFeatures, SamplingSettings, choose
from assay.models.engines.torch.slots import Slots
from assay.models.engines.torch.torch_model import TorchSettings
from assay.models.engines.torch.torch_worker import TorchEngine
from assay.models.workers.engine_messages import Ask, Reply
from assay.types import Decoding, Message, Prompt, Request, SampleKey

from .torch_models import CONTEXT, save_adapter, save_model

pytestmark = pytest.mark.torch

GREEDY = Decoding(max_tokens=24)
SAMPLED = Decoding(max_tokens=24, temperature=0.8, top_k=40)
TEXTS = [
    "def f(x):",
    "a",
    "class A:\n    pass\n" * 6,
    "import os\n",
    "return the sum of two numbers",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"))


def asked(decoding: Decoding, samples: int = 1, stop: tuple[str, ...] = ()) -> list[Request]:
    return [
        Request(f"t{n}", s, Prompt(text=text, stop=stop), decoding, 1000 * n + s)
        for n, text in enumerate(TEXTS)
        for s in range(samples)
    ]


class FakeLines:
    """The harness's side, in this process."""

    def __init__(self, requests: list[Request]) -> None:
        self.requests: queue.SimpleQueue[Ask] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self.reply = self.replies.put
        self.count = lambda _: None
        for number, request in enumerate(requests):
            self.requests.put(Ask(number, request))


def served(
    folder: Path, requests: list[Request], parallel: int = 7
) -> tuple[TorchEngine, dict[SampleKey, Reply]]:
    """The worker's engine in a thread of this process: its replies, by sample."""
    lines: Any = FakeLines(requests)
    lines.settings = TorchSettings("", EngineOptions(parallel=parallel))
    loaded = load(TorchSettings(str(folder), EngineOptions(device="cpu", dtype="float32")))
    engine = TorchEngine(loaded, lines, 24)

    def serve() -> None:
        with torch.no_grad():
            engine.serve()

    threading.Thread(target=serve, daemon=True).start()
    replies = [lines.replies.get(timeout=120) for _ in requests]
    return engine, {requests[reply.id].key: reply for reply in replies}


def texts(replies: dict[SampleKey, Reply]) -> dict[SampleKey, str]:
    return {key: reply.text for key, reply in replies.items()}


def by_transformers(folder: Path, prompt: str, tokens: int, **settings: Any) -> str:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = (
        kind.from_pretrained(folder) for kind in (AutoTokenizer, AutoModelForCausalLM)
    )
    ids = torch.tensor([tokenizer(prompt)["input_ids"]])
    out = model.generate(
        ids, attention_mask=ids * 0 + 1, max_new_tokens=tokens, do_sample=False, **settings
    )
    return str(tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True))


def test_greedy_texts_are_those_of_transformers(folder: Path) -> None:
    model = open_model(str(folder), EngineOptions(prompt_form="text", parallel=3, threads=1))
    found = {completion.key: completion for completion in model.generate(asked(GREEDY))}
    for number, text in enumerate(TEXTS):
        completion = found[f"t{number}", 0]
        assert completion.text == by_transformers(folder, text, GREEDY.max_tokens)
        assert completion.error is None
        assert completion.prompt_tokens == len(text)
        assert not completion.used_gpu
        assert completion.logprob is not None
        assert completion.logprob < 0
    facts = model.describe().to_json()
    assert (facts["device"], facts["dtype"], facts["parallel"]) == ("cpu", "float32", 3)
    assert (facts["batch_invariant"], facts["threads"]) == (True, 1)


@pytest.mark.parametrize("decoding", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_a_text_does_not_depend_on_what_is_made_beside_it(folder: Path, decoding: Decoding) -> None:
    requests = asked(decoding, samples=4)
    _, batched = served(folder, requests, 7)
    _, alone = served(folder, requests[::-1], 1)
    assert texts(batched) == texts(alone)
    if decoding.temperature:
        samples = {batched["t0", s].text for s in range(4)}
        assert len(samples) == 4


def test_stop_words_end_a_text_and_are_not_part_of_it(folder: Path) -> None:
    _, whole = served(folder, asked(GREEDY))
    word = next(text[5:7] for text in texts(whole).values() if len(text) > 9)
    _, cut = served(folder, asked(GREEDY, stop=(word, "never")))
    hits = 0
    for key, reply in cut.items():
        before, found, _ = whole[key].text.partition(word)
        assert reply.text == before
        if found:
            hits += 1
            assert reply.finish_reason == "stop"
            assert reply.tokens_generated <= whole[key].tokens_generated
    assert hits


def test_a_prompt_too_long_for_the_context_fails_alone(folder: Path) -> None:
    requests = asked(GREEDY)
    requests[2] = Request("t2", 0, Prompt(text="x" * CONTEXT), GREEDY, 0)
    requests[3] = Request("t3", 0, Prompt(text="x" * (CONTEXT - 3)), GREEDY, 0)
    _, found = served(folder, requests)
    error = f"the prompt has {CONTEXT} tokens, the model's context {CONTEXT}"
    assert {key: reply.error for key, reply in found.items() if reply.error} == {("t2", 0): error}
    assert 0 < found["t3", 0].tokens_generated <= 3


@pytest.mark.parametrize("typical", [512, 8])
def test_a_long_prompt_after_short_ones_gets_longer_slots(
    folder: Path, monkeypatch: pytest.MonkeyPatch, typical: int
) -> None:
    """Slots of typical length take it beside the others. Shorter ones are allocated again."""
    lengths: list[int] = []

    class CountedSlots(Slots):
        def __init__(self, *args: Any) -> None:
            lengths.append(args[3])
            super().__init__(*args)

    monkeypatch.setattr(worker, "Slots", CountedSlots)
    monkeypatch.setattr(worker, "PROMPT_TOKENS", typical)
    long, long_length = Request("long", 0, Prompt(text="y" * 300), GREEDY, 0), 300
    requests = [*asked(GREEDY), long, *asked(SAMPLED)[:2]]
    _, found = served(folder, requests, 2)
    assert found["long", 0].text == by_transformers(folder, "y" * 300, GREEDY.max_tokens)
    assert lengths[-1] >= long_length
    assert len(lengths) == 1 or typical == 8


def test_an_empty_prompt_and_a_template_that_refuses_are_errors_of_their_prompt(
    tmp_path: Path,
) -> None:
    refusing = save_model(tmp_path / "m", template="{{ raise_exception('only users') }}")
    chat = Request("c", 0, Prompt(messages=(Message("user", "hi"),)), GREEDY, 0)
    empty = Request("e", 0, Prompt(text=""), GREEDY, 0)
    fine = Request("f", 0, Prompt(text="hi"), GREEDY, 0)
    _, found = served(refusing, [chat, empty, fine])
    assert "only users" in str(found["c", 0].error)
    assert found["e", 0].error == "the prompt is empty"
    assert found["f", 0].error is None


def test_an_adapter_changes_the_texts_and_the_identity(folder: Path, tmp_path: Path) -> None:
    adapter = save_adapter(tmp_path / "lora", folder)
    plain = open_model(str(folder))
    tuned = open_model(str(folder), EngineOptions(adapter=str(adapter)))
    by_itself = open_model(str(adapter))  # names its model in its configuration
    assert plain.identity.variant == "float32"
    assert tuned.identity.variant == by_itself.identity.variant != plain.identity.variant
    assert tuned.identity.name == by_itself.identity.name == f"{plain.identity.name} + lora"
    first, second, third = (
        {c.key: c.text for c in model.generate(asked(GREEDY))}
        for model in (plain, tuned, by_itself)
    )
    assert first != second == third


def test_other_weights_under_the_same_path_are_another_model(tmp_path: Path) -> None:
    before = open_model(str(save_model(tmp_path / "m"))).identity
    after = open_model(str(save_model(tmp_path / "m", seed=1))).identity
    assert before.weights_sha256 != after.weights_sha256
    assert before.tokenizer_sha256 == after.tokenizer_sha256


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: (f / "model.safetensors").unlink(), {}, "has no weights"),
        (lambda f: None, {"device": "cuda"}, "no NVIDIA GPU|torch finds no GPU"),
        (lambda f: None, {"adapter": "/nowhere"}, "is not a folder of LoRA weights"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\0" * 99), {}, "cannot load"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(
    tmp_path: Path, change: Any, options: dict[str, Any], message: str
) -> None:
    if options.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    folder = save_model(tmp_path / "m")
    change(folder)
    with pytest.raises(AssayError, match=message) as caught:
        list(open_model(str(folder), EngineOptions(**options)).generate(asked(GREEDY)[:1]))
    assert "\n" not in str(caught.value)


def test_a_chat_without_a_template_is_refused(tmp_path: Path) -> None:
    base = str(save_model(tmp_path / "m", template=""))
    assert open_model(base).identity.prompt_form == "text"
    with pytest.raises(UsageError, match="no chat template"):
        open_model(base, EngineOptions(prompt_form="chat"))


def test_an_adapter_that_names_no_model_is_one_line(tmp_path: Path) -> None:
    for content in ("{", "{}", '{"base_model_name_or_path": null}'):
        (tmp_path / "adapter_config.json").write_text(content)
        with pytest.raises(
            ModelError, match=r"config\.json: (not valid JSON|has no valid base_model_name_or_path)"
        ):
            open_model(str(tmp_path))


def test_missing_packages_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf, "PACKAGES", ("torch", "no_such_package"))
    with pytest.raises(ModelError, match="no_such_package: not installed"):
        open_model(str(folder))


def test_closing_ends_generation(folder: Path) -> None:
    model = open_model(str(folder), EngineOptions(parallel=1))
    endless = Decoding(max_tokens=400, temperature=0.8, top_k=40)
    stream = model.generate(asked(endless, samples=50))
    next(stream)
    threading.Timer(0.2, model.close).start()
    with pytest.raises(ModelError, match="transformers ended"):
        list(stream)


def test_out_of_memory_halves_the_batch_and_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = asked(SAMPLED, samples=3)
    _, whole = served(folder, requests, 8)
    advance = Slots.advance

    def short_of_memory(self: Slots, steps: int, choice: SamplingFeatures) -> None:
        if self.count > 3:
            raise torch.OutOfMemoryError("pretended")
        advance(self, steps, choice)

    monkeypatch.setattr(Slots, "advance", short_of_memory)
    engine, found = served(folder, requests, 8)
    assert engine.most == 2
    assert texts(found) == texts(whole)
    assert not any(reply.error for reply in found.values())


def test_too_little_memory_for_one_prompt_is_its_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Slots.place

    def short_of_memory(self: Slots, begun: Any) -> None:
        if any(prompt.length > 50 for prompt, _ in begun):
            raise torch.OutOfMemoryError("pretended")
        place(self, begun)

    monkeypatch.setattr(Slots, "place", short_of_memory)
    _, found = served(folder, asked(GREEDY), 4)
    assert {key: reply.error for key, reply in found.items() if reply.error} == {
        ("t2", 0): "the device has too little memory for this prompt alone"
    }


def test_samples_follow_the_probabilities() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, 3.0, -1.0])
    rows = 20_000

    def frequencies(top_k: int, top_p: float, min_p: float, temperature: float) -> dict[int, float]:
        settings = SamplingSettings(
            torch.full((rows,), temperature),
            torch.full((rows,), top_k),
            torch.full((rows,), top_p),
            torch.arange(rows),
            torch.full((rows,), min_p),
            torch.ones(rows),
        )
        choice = SamplingFeatures(top_k, nucleus=top_p < 1, floor=min_p > 0)
        made = torch.full((rows,), 3)
        tokens, logprobs = choose(logits.expand(rows, -1), made, settings, choice)
        assert torch.allclose(logprobs, torch.log_softmax(logits, -1)[tokens])
        counts = Counter(tokens.tolist())
        return {token: count / rows for token, count in counts.items()}

    def expected(kept: list[int], temperature: float) -> dict[int, float]:
        weights = torch.softmax(logits[kept] / temperature, -1).tolist()
        return dict(zip(kept, weights, strict=True))

    for top_k, top_p, min_p, temperature, kept in (
        (0, 1.0, 0.0, 1.0, [0, 1, 2, 3, 4]),
        (3, 1.0, 0.0, 0.8, [3, 2, 1]),
        (4, 0.8, 0.0, 1.0, [3, 2]),
        (0, 0.6, 0.0, 1.0, [3]),
        (0, 1.0, 0.3, 1.0, [3, 2]),  # e^-1 is 0.37, e^-2 0.14
        (3, 1.0, 0.3, 2.0, [3, 2, 1]),  # the temperature comes first: e^-0.5, e^-1
        (4, 0.99, 0.05, 0.5, [3, 2]),
    ):
        found = frequencies(top_k, top_p, min_p, temperature)
        assert found == pytest.approx(expected(kept, temperature), abs=0.015)


def test_temperature_zero_beside_sampled_sequences_is_greedy(folder: Path) -> None:
    greedy = asked(GREEDY)
    mixed = [*greedy, *(Request(f"s{n}", 0, r.prompt, SAMPLED, n) for n, r in enumerate(greedy))]
    found, alone = (served(folder, requests)[1] for requests in (mixed, greedy))
    assert {key: found[key].text for key in alone} == texts(alone)
