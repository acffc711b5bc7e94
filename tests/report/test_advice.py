"""The summary's line about answers that cannot be used, and what to try."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay import benchmarks
from assay.errors import AssayError
from assay.protocol import PromptSettings, RecordedProtocol
from assay.report.pages.run.page import list_remarks
from assay.report.summary import summarize
from assay.report.text import advise_on_form
from assay.runs.about import Environment
from assay.runs.result import ConfigResult, Result, ScoreResult
from assay.types import Decoding, ModelIdentity

MISREAD, CUT_OFF = "misunderstood the form of an answer", "reached the token limit"


def run(
    reasons: dict[str, int],
    strategy: str = "standard",
    benchmark: str = "cruxeval-o",
    *,
    form: str = "chat",
    max_tokens: int = 512,
    thinks: bool = False,
    thinking: str = "default",
    template: str = "1",
    origin: str = "",
) -> Result:
    settings = PromptSettings(form, "own", "", thinking, (), ())  # type: ignore[arg-type]
    return Result(
        benchmark=benchmark,
        model="toy",
        timestamp="2026-11-18T00:00:00",
        config=ConfigResult(Decoding(max_tokens), settings, "", 1, strategy),
        results=ScoreResult(9, 9, 0, 9, 0, 0, 0, 0, {}, reasons=reasons),
        problems=(),
        protocol=RecordedProtocol(
            hash="0" * 64, benchmark=benchmark, n_samples=1, prompt_strategy=strategy, origin=origin
        ),
        model_identity=ModelIdentity("toy", "gguf", "0" * 64, "chat", template_sha256=template),
        environment=Environment(engine={"thinks": True} if thinks else {}),
        run="r",
        path=Path("r.json"),
    )


@pytest.mark.parametrize("reason", ["unparsable", "no-code", "truncated"])
def test_more_than_a_fifth_gives_a_line(reason: str) -> None:
    assert advise_on_form(run({"passed": 80, reason: 20})) == ""
    assert advise_on_form(run({"passed": 79, reason: 21})).startswith(
        f"21 % of the answers cannot be used ({reason} 21): "
    )
    assert advise_on_form(run({"passed": 100})) == ""
    assert advise_on_form(run({})) == ""


def test_the_three_reasons_count_together() -> None:
    found = advise_on_form(run({"passed": 70, "unparsable": 10, "no-code": 11, "truncated": 9}))
    assert found.startswith("30 % of the answers cannot be used (unparsable 10, no-code 11, trunc")
    assert MISREAD in found
    assert advise_on_form(run({"passed": 60, "wrong-answer": 40})) == ""


def test_the_dominant_reason_decides() -> None:
    assert MISREAD in advise_on_form(run({"unparsable": 30, "truncated": 30}))
    found = advise_on_form(run({"unparsable": 30, "truncated": 31}))
    assert found.endswith(f"{CUT_OFF} of 512. Try --max-tokens 2048.")
    assert advise_on_form(run({"truncated": 9}, max_tokens=16384)).endswith("--max-tokens 32768.")


@pytest.mark.parametrize(
    ("benchmark", "used", "suggested"),
    [
        ("cruxeval-o", "standard", "upstream-cot"),
        ("cruxeval-o", "upstream", "upstream-cot"),
        ("cruxeval-o", "upstream-cot", "upstream"),
        ("humaneval", "standard", "upstream"),
        ("humaneval", "upstream", "standard"),
        ("livecodebench", "standard", "few-shot"),
        ("mini", "few-shot", "standard"),
        ("of-the-users-own", "standard", "few-shot"),
    ],
)
def test_another_strategy_is_suggested(benchmark: str, used: str, suggested: str) -> None:
    found = advise_on_form(run({"no-code": 9}, used, benchmark, template=""))
    assert f"Try --prompt-strategy {suggested}, or --prompt-form text if it is a base" in found


def test_models_that_think_can_stop_thinking() -> None:
    cut = {"truncated": 9}
    found = advise_on_form(run(cut, thinks=True, max_tokens=16384))
    assert found.endswith("Try --max-tokens 32768, or --thinking off.")
    assert "thinking" not in advise_on_form(run(cut, thinks=True, thinking="off"))


def test_a_chat_model_in_plain_text_is_asked_in_chats() -> None:
    found = advise_on_form(run({"no-code": 9}, form="text"))
    assert found.endswith("Try --prompt-form chat, since the model has a chat template.")
    assert "--prompt-form" not in advise_on_form(run({"no-code": 9}, form="text", template=""))


def test_infilling_needs_a_model_that_can() -> None:
    found = advise_on_form(run({"no-code": 9}, form="infill"))
    assert found.endswith("Try a model that was trained to fill in code.")


@pytest.mark.parametrize("reason", ["no-code", "truncated"])
def test_recorded_completions_cannot_be_asked_again(reason: str) -> None:
    found = advise_on_form(run({reason: 9}, "recorded", origin="digest"))
    assert found.endswith(("of an answer.", "token limit."))


def test_it_is_one_line_of_the_summary_and_of_the_page() -> None:
    result = run({"passed": 294, "unparsable": 506})
    (line,) = (one for one in summarize(result) if "cannot be used" in one)
    assert line == f"  advice    {advise_on_form(result)}"
    assert ("bad", "advice", advise_on_form(result)) in list(list_remarks(result))
    fine = replace(result, results=replace(result.results, reasons={"passed": 800}))
    assert not any("advice" in one for one in summarize(fine))
    assert not any(name == "advice" for _, name, _ in list_remarks(fine))


@pytest.mark.parametrize("name", benchmarks.benchmarks.names())
def test_described_strategies_exist(name: str) -> None:
    description = benchmarks.benchmarks.describe(name)
    if not (description and description.strategies):
        return
    try:
        found = benchmarks.load(name)
    except AssayError as error:
        pytest.skip(f"needs the data of {name}: {error}")
    assert set(description.strategies) <= set(found.strategies)
