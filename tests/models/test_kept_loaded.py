"""A model that stays loaded between calls, what it tells of its memory, and when it is let go."""

from __future__ import annotations

import contextlib
import queue
import time
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError
from assay.models import EngineOptions, open_model, start_early
from assay.models.engines.llamacpp import llama_worker
from assay.models.scoring import open_scorer
from assay.models.workers.engine_messages import Ask, Pause, Render
from assay.models.workers.process_model import ProcessModel
from assay.types import Decoding, Prompt, Request

TEXT = "def area(width, height):"


def ask(count: int, new_tokens: int = 4) -> list[Request]:
    decoding = Decoding(max_tokens=new_tokens)
    return [Request(f"t/{n}", 0, Prompt(text=f"# {n}\n{TEXT}"), decoding, 0) for n in range(count)]


@pytest.fixture(params=["gguf", "hf"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> ProcessModel[Any]:
    options = EngineOptions(parallel=4, device="cpu")
    if request.param == "gguf":
        pytest.importorskip("xllamacpp", reason="needs the gguf extra")
        from tests.models.small_models import write_small

        opened = open_model(str(write_small(tmp_path / "small.gguf")), options)
    else:
        pytest.importorskip("torch", reason="needs the hf extra")
        pytest.importorskip("transformers", reason="needs the hf extra")
        from tests.models.torch_models import save_model

        opened = open_model(str(save_model(tmp_path)), options)
    assert isinstance(opened, ProcessModel)
    return opened


def process(model: ProcessModel[Any]) -> int | None:
    return None if model._process is None else model._process._process.pid


@pytest.mark.slow
def test_one_process_serves_all_calls(model: ProcessModel[Any]) -> None:
    assert model.usage() is None
    first = [c.text for c in model.generate(ask(1))]
    assert process(model) is None
    with model.keep_loaded() as loading:
        assert loading == "kept"
        kept = [c.text for c in model.generate(ask(1))]
        served_by = process(model)
        assert served_by is not None
        assert len(model.render(Prompt(text=TEXT)).tokens) > 4
        made = list(model.generate(ask(6)))
        usage = model.usage()
        assert process(model) == served_by
    assert process(model) is None
    assert kept == first
    assert [c.error for c in made] == [None] * 6
    assert {c.task_id for c in made} == {f"t/{n}" for n in range(6)}
    assert usage is not None
    # A Python with its engine, not the harness and not a whole machine.
    assert 20 < usage.peak_mb < 4000
    assert usage.gpu_peak_mb is None
    assert not Path(f"/proc/{served_by}").exists()


@pytest.mark.slow
def test_a_started_process_serves_the_first_call(model: ProcessModel[Any]) -> None:
    expected = [c.text for c in model.generate(ask(1))]
    with start_early(model):
        first = process(model)
        assert first is not None
        with model.keep_loaded():
            assert [c.text for c in model.generate(ask(1))] == expected
            assert process(model) == first
    assert process(model) is None
    assert not Path(f"/proc/{first}").exists()


@pytest.mark.slow
def test_a_started_process_that_was_killed_is_started_again(model: ProcessModel[Any]) -> None:
    with start_early(model):
        model.close()
        (made,) = model.generate(ask(1))
        assert made.error is None
    with start_early(model):
        model.close()
        with open_scorer(model) as scorer:
            assert len(scorer.tokenize(TEXT).ids) > 4


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True])
def test_a_started_process_scores_if_it_can_and_then_generates(
    model: ProcessModel[Any], *, kept: bool
) -> None:
    """llama.cpp scores in another process, which would hold the model a second time."""
    expected = [c.text for c in model.generate(ask(1))]
    with start_early(model), model.keep_loaded() if kept else contextlib.nullcontext():
        first = process(model)
        with open_scorer(model, then_generate=True) as scorer:
            assert len(scorer.tokenize(TEXT).ids) > 4
        assert len(model._processes) == 1
        assert process(model) == first
        assert [c.text for c in model.generate(ask(1))] == expected
    assert process(model) is None


@pytest.mark.slow
def test_scores_and_texts_do_not_depend_on_what_was_asked_before(model: ProcessModel[Any]) -> None:
    """One process does both in torch, and its slots have an attention of their own."""
    np = pytest.importorskip("numpy")
    alone = [c.text for c in sorted(model.generate(ask(3)), key=lambda one: one.task_id)]
    with open_scorer(model) as scorer:
        tokens = scorer.tokenize(TEXT).ids
        expected = scorer.logits(tokens)
        facts = scorer.facts, scorer.context, scorer.at_once
    assert process(model) is None
    with model.keep_loaded():
        for _ in range(2):
            with open_scorer(model) as scorer:
                assert np.array_equal(scorer.logits(tokens), expected)
                assert (scorer.facts, scorer.context, scorer.at_once) == facts
            made = sorted(model.generate(ask(3)), key=lambda one: one.task_id)
            assert [c.text for c in made] == alone
    assert process(model) is None


@pytest.mark.slow
def test_a_scorer_whose_engine_was_killed_is_started_again(model: ProcessModel[Any]) -> None:
    with model.keep_loaded():
        with open_scorer(model) as scorer:
            model.close()
            with pytest.raises(ModelError, match="ended unexpectedly"):
                scorer.tokenize(TEXT)
        with open_scorer(model) as scorer:
            assert len(scorer.tokenize(TEXT).ids) > 4


@pytest.mark.slow
def test_answers_that_nobody_took_are_not_given_to_the_next(model: ProcessModel[Any]) -> None:
    with model.keep_loaded():
        with contextlib.closing(model.generate(ask(4, new_tokens=40))) as left:  # type: ignore[type-var]
            next(left)
        assert process(model) is None
        (made,) = model.generate([Request("after", 0, Prompt(text=TEXT), Decoding(2), 0)])
        assert (made.task_id, made.error) == ("after", None)


@pytest.mark.slow
def test_a_killed_engine_is_started_again(model: ProcessModel[Any]) -> None:
    with model.keep_loaded():
        list(model.generate(ask(1)))
        model.close()
        with pytest.raises(ModelError, match="ended unexpectedly"):
            list(model.generate(ask(1)))
        assert [c.error for c in model.generate(ask(1))] == [None]


def test_a_request_that_comes_alone_waits_for_no_company(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llama_worker, "TOGETHER_S", 60.0)

    class Lines:
        requests: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def line(number: int) -> Ask:
        return Ask(number, Request("t", number, Prompt(text="a"), Decoding(), number))

    lines: Any = Lines()
    dispatcher = llama_worker._Dispatcher(None, lines, 8)
    question, pause = Render(Prompt(text="a")), Pause()
    for message in (line(0), line(1), pause, pause, line(2), question, pause):
        lines.requests.put(message)
    begun = time.monotonic()
    for ids in ([0, 1], [2]):
        first = dispatcher._first()
        assert isinstance(first, Ask)
        assert [ask.id for ask in dispatcher._group(first)] == ids
    assert dispatcher._first() == question
    assert time.monotonic() - begun < 30
