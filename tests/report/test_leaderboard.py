"""Leaderboards: what shares a block, which run stands for a model, ranks, order and marks."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.protocol import VERSION, RecordedProtocol
from assay.report.comparison import summarize_comparison
from assay.report.leaderboard import (
    Baseline,
    Leaderboard,
    LeaderboardBlock,
    ModelFacts,
    Row,
    leaderboard,
)
from assay.report.leaderboard.build import rank
from assay.report.leaderboard.entries import name_runs
from assay.report.leaderboard.measures import MEASURES, MOST_MODELS, group_by_tests, mark_pareto
from assay.runs import Result, RunEntry
from assay.runs.about import Environment
from assay.runs.compare import compare
from assay.runs.result import ConfigResult, ProblemResult, Timing
from assay.types import Decoding, ModelIdentity, TimeRule
from tests.report.leaderboards import PROBLEMS, make_result
from tests.test_protocol import BASE

SAMPLED = replace(BASE, decoding=Decoding(temperature=0.8))
RECORDED = replace(BASE, prompt_strategy="recorded", origin="one file")


def only(board: Leaderboard) -> LeaderboardBlock:
    (block,) = board.blocks
    return block


def models(block: LeaderboardBlock) -> list[str]:
    return [row.model for row in block.rows]


def row_of(block: LeaderboardBlock, model: str) -> Row:
    (row,) = (row for row in block.rows if row.model == model)
    return row


def test_one_row_per_model_and_one_column_per_benchmark() -> None:
    block = only(
        leaderboard([make_result("a", 40), make_result("b", 60), make_result("a", 70, "mbpp")])
    )
    assert [column.benchmark for column in block.columns] == ["humaneval", "mbpp"]
    assert models(block) == ["a", "b"]  # b has no mean rank
    assert row_of(block, "b").cells[1] is None


def test_another_protocol_is_another_block() -> None:
    results = [make_result("a", 40), make_result("b", 60), make_result("a", 90, protocol=SAMPLED)]
    first, second = leaderboard(results).blocks
    assert models(first) == ["b", "a"]
    assert models(second) == ["a"]
    assert first.columns[0].protocol == BASE.hash
    assert "temperature 0.8" in second.settings
    assert second.differences == "decoding.temperature: 0.0 / 0.8"


def test_no_field_of_the_protocol_is_ignored() -> None:
    """A field that is part of the hash splits blocks, also one that belongs to the benchmark."""
    changed = [
        replace(BASE, problems_sha256="others"), replace(BASE, python="cpython 3.12"),
        replace(BASE, limits=replace(BASE.limits, cpu_s=3.0)), replace(BASE, tests="plus"),
        replace(BASE, judge="evalplus"), replace(BASE, data_sha256="other data"),
    ]  # fmt: skip
    results = [make_result("a", protocol=protocol) for protocol in (BASE, *changed)]
    board = leaderboard(results)
    assert len(board.blocks) == 1 + len(changed)
    hashes = {column.protocol for block in board.blocks for column in block.columns}
    assert hashes == {result.protocol.hash for result in results}


def test_a_part_of_a_benchmark_is_apart_from_the_whole() -> None:
    part = make_result("a", protocol=replace(BASE, problems=10, problems_sha256="ten"))
    part = replace(part, config=replace(part.config, problem_selection="[:10]"))
    whole, some = leaderboard([part, make_result("a"), make_result("b")]).blocks
    assert whole.columns[0].benchmark == "humaneval"
    assert some.columns[0].benchmark == "humaneval[:10]"


def test_recorded_completions_share_a_block_of_their_own() -> None:
    """Their hash has the digest of their file in it, so no two would ever be in one table."""
    files = [replace(RECORDED, origin=name) for name in ("x", "y")]
    results = [make_result("a", protocol=files[0]), make_result("b", protocol=files[1])]
    first, second = leaderboard([*results, make_result("c")]).blocks
    assert first.recorded
    assert models(first) == ["a", "b"]
    assert not second.recorded
    judged_otherwise = replace(files[0], python="cpython 3.12")
    assert len(leaderboard([*results, make_result("d", protocol=judged_otherwise)]).blocks) == 2


def test_the_newest_complete_run_stands_for_a_model_and_never_the_best() -> None:
    results = [
        make_result("a", 90, day=1),
        make_result("a", 50, day=2),
        make_result("a", 60, day=3, judged=70),
    ]
    (cell,) = only(leaderboard(results)).rows[0].cells
    assert cell is not None
    assert cell.estimate is not None
    assert (cell.estimate.value, cell.others, cell.state) == (0.5, 2, "complete")
    assert cell.timestamp.startswith("2026-01-02")


def test_an_incomplete_run_is_shown_but_neither_ranked_nor_best() -> None:
    block = only(
        leaderboard([make_result("a", 45, judged=50), make_result("b", 40), make_result("c", 30)])
    )
    assert models(block) == ["b", "c", "a"]
    (cell,) = row_of(block, "a").cells
    assert cell is not None
    assert (cell.state, cell.rank, cell.best) == ("incomplete", None, False)
    assert row_of(block, "b").cells[0].best  # type: ignore[union-attr]


def with_unscorable(result: Result, *tasks: str) -> Result:
    assert result.coverage is not None
    count = len(tasks)
    return replace(
        result,
        coverage=replace(
            result.coverage, judged_problems=PROBLEMS - count, judged_samples=PROBLEMS - count,
            unscorable_problems=count,
        ),
        results=replace(result.results, unscorable=dict.fromkeys(tasks, "it fails")),
    )  # fmt: skip


def test_results_that_lack_the_same_unscorable_problems_are_ranked() -> None:
    results = [with_unscorable(make_result("a", 45), "T/98"),
               with_unscorable(make_result("b", 40), "T/98")]  # fmt: skip
    assert [row.cells[0].rank for row in only(leaderboard(results)).rows] == [1, 2]  # type: ignore[union-attr]


def test_a_result_that_lacks_a_problem_which_others_have_is_incomplete() -> None:
    board = leaderboard(
        [with_unscorable(make_result("a", 45), "T/98", "T/99"),
         with_unscorable(make_result("b", 40), "T/98"), make_result("c", 30)]
    )  # fmt: skip
    block = only(board)
    assert models(block) == ["c", "a", "b"]
    assert [row.cells[0].state for row in block.rows] == ["complete", "incomplete", "incomplete"]  # type: ignore[union-attr]
    shown = board.render()
    assert "a on humaneval: 2 problems unscorable there, but not for others" in shown
    assert "b on humaneval: 1 problem unscorable there, but not for others" in shown


def as_unfinished(result: Result) -> RunEntry:
    return RunEntry(
        result.run, result.benchmark, result.model, result.timestamp, "", result.model_identity,
        result.protocol,
    )  # fmt: skip


def test_an_unfinished_run_is_shown_if_there_is_no_other() -> None:
    unfinished = [as_unfinished(make_result("a", day=9)), as_unfinished(make_result("b", day=9))]
    block = only(leaderboard([make_result("b")], unfinished=unfinished))
    (cell_a,), (cell_b,) = row_of(block, "a").cells, row_of(block, "b").cells
    assert cell_a is not None
    assert cell_b is not None
    assert (cell_a.state, cell_a.estimate) == ("unfinished", None)
    assert (cell_b.state, cell_b.others) == ("complete", 1)


def test_ties_share_their_mean_rank_and_are_all_best() -> None:
    block = only(leaderboard([make_result(m, n) for m, n in (("a", 9), ("b", 9), ("c", 5))]))
    assert [row.mean_rank for row in block.rows] == [1.5, 1.5, 3.0]
    assert [row.cells[0].best for row in block.rows if row.cells[0]] == [True, True, False]


@pytest.mark.parametrize("names", ["a", "ab"])
def test_there_is_no_best_without_a_difference(names: str) -> None:
    block = only(leaderboard([make_result(name, 9) for name in names]))
    assert not any(cell and cell.best for row in block.rows for cell in row.cells)


def test_the_mean_rank_needs_all_columns() -> None:
    results = [
        make_result("a", 90), make_result("a", 20, "mbpp"), make_result("b", 80),
        make_result("b", 30, "mbpp"), make_result("c", 99),
    ]  # fmt: skip
    block = only(leaderboard(results))
    found = [(row.model, row.mean_rank) for row in block.rows]
    assert found == [("a", 2.0), ("b", 2.0), ("c", None)]


def test_rows_are_sorted_by_what_is_asked_for() -> None:
    results = [
        make_result("a", 90), make_result("a", 20, "mbpp"),
        make_result("b", 80), make_result("b", 30, "mbpp"), make_result("c", 85),
    ]  # fmt: skip
    facts = {"a": ModelFacts(file_bytes=3), "b": ModelFacts(file_bytes=1)}

    def order(sort: str) -> str:
        return "".join(models(only(leaderboard(results, sort=sort, facts=facts))))

    assert order("model") == "abc"
    assert order("humaneval") == "acb"
    assert order("mbpp") == "bac"  # no value comes last
    assert order("size") == "bac"
    assert order("per-gb")[-1] == "c"


def test_wrong_names_are_refused_with_the_choices() -> None:
    with pytest.raises(UsageError, match=r"--sort humanevil: no such column.*humaneval"):
        leaderboard([make_result("a")], sort="humanevil")
    with pytest.raises(UsageError, match="--columns weight: no such column.*size"):
        leaderboard([make_result("a")], columns=["weight"])
    with pytest.raises(UsageError, match="--pareto per-gb"):
        leaderboard([make_result("a")], pareto="per-gb")


def test_models_of_one_name_have_rows_of_their_own() -> None:
    results = [
        make_result("model", 40, weights="1" * 64),
        make_result("model", 60, weights="2" * 64),
    ]
    assert models(only(leaderboard(results))) == ["model (222222222222)", "model (111111111111)"]


def test_old_and_new_names_of_one_file_share_a_row() -> None:
    """The name of the newest run stands for both. A name that a user gives makes a row."""
    old = make_result("qwen 1.8B Q4_K", 40, weights="w", day=1)
    new = make_result("qwen 1.5B Q4_K_M", 50, weights="w", day=2)
    own = make_result("second try", 60, weights="w", day=3)
    rows = leaderboard([old, new, own]).blocks[0].rows
    assert [(row.model, row.cells[0].others if row.cells[0] else 0) for row in rows] == [
        ("second try", 0), ("qwen 1.5B Q4_K_M", 1),
    ]  # fmt: skip


def test_one_file_in_two_engines_is_told_apart_by_engine_and_number_format() -> None:
    """Digests of the tokenizer, which engines compute differently, do not tell them apart."""
    by_torch = ModelIdentity(
        "qwen 1.5B Q4_K_M", "hf", "w" * 64, "chat", "1" * 64, "2" * 64, "float32"
    )
    by_llama = replace(by_torch, engine="gguf", tokenizer_sha256="3" * 64, variant="")
    results = [
        make_result("qwen 1.5B Q4_K_M", 50 - number, model_identity=identity)
        for number, identity in enumerate((by_torch, replace(by_torch, variant="bfloat16")))
    ]
    results.append(make_result("qwen 1.5B Q4_K_M", 40, model_identity=by_llama))
    assert [row.model for row in leaderboard(results).blocks[0].rows] == [
        "qwen 1.5B Q4_K_M (hf, float32)",
        "qwen 1.5B Q4_K_M (hf, bfloat16)",
        "qwen 1.5B Q4_K_M (gguf)",
    ]
    # Likewise in comparisons and on pages.
    assert name_runs([results[2], make_result("other"), results[2], results[0]]) == [
        "qwen 1.5B Q4_K_M (gguf)", "other", "qwen 1.5B Q4_K_M (gguf)", "qwen 1.5B Q4_K_M (hf)",
    ]  # fmt: skip
    lines = summarize_comparison(compare(results[2], results[0]), results[2], results[0])
    assert "  qwen 1.5B Q4_K_M (gguf) on humaneval" in lines[0]
    assert "  qwen 1.5B Q4_K_M (hf) on humaneval" in lines[1]


def test_sizes_and_speeds_are_found_by_weights_and_by_name() -> None:
    facts = {
        "weights of a": ModelFacts(2_000_000_000, 1_000_000_000, 16.0),
        "a": ModelFacts(file_bytes=7, tokens_per_s=20.0),
    }
    names = ["size", "params", "bits", "speed", "run-speed", "memory", "per-gb", "cost"]
    board = leaderboard(
        [make_result("a", 50), make_result("b", 40)],
        columns=names,
        facts=facts,
        dollars_per_hour=36,
    )
    block = only(board)
    assert board.measures == tuple(names)
    assert row_of(block, "a").measures == {
        "size": 2.0, "params": 1.0, "bits": 16.0, "speed": 20.0, "run-speed": 100.0,
        "memory": None, "per-gb": 25.0, "cost": 0.5,  # 1,000 tokens at 20 per second
    }  # fmt: skip
    assert row_of(block, "b").measures["cost"] == pytest.approx(0.1)  # 10 s, one sequence at a time


def test_the_cost_counts_a_batch_once_and_a_recorded_price_wins() -> None:
    batched = make_result("a", environment=Environment(engine={"parallel": 5}))
    priced = make_result("b", timing=Timing(tokens_generated=9, inference_s=1.0, cost=0.25))
    block = only(leaderboard([batched, priced], columns=["cost"], dollars_per_hour=36))
    assert row_of(block, "a").measures["cost"] == pytest.approx(0.02)
    assert row_of(block, "b").measures["cost"] == 0.25
    block = only(leaderboard([batched, priced], columns=["cost"]))
    assert row_of(block, "a").measures["cost"] is None


def test_the_pareto_mark_weighs_quality_against_size() -> None:
    sizes = {"large": 9, "middle": 5, "small": 1, "bad": 6, "twin": 5}
    results = [
        make_result("large", 90), make_result("middle", 70), make_result("small", 20),
        make_result("bad", 60), make_result("twin", 70), make_result("unknown", 95),
    ]  # fmt: skip
    facts = {name: ModelFacts(file_bytes=size) for name, size in sizes.items()}
    block = only(leaderboard(results, facts=facts, pareto="size"))
    assert {row.model for row in block.rows if row.pareto} == {"large", "middle", "small", "twin"}


def test_baselines_are_rows_of_their_own() -> None:
    scores = [
        Baseline("humaneval", "theirs", 0.9, "a paper"),
        Baseline("humaneval", "stage 2", 0.5, kind="target"),
        Baseline("bigcodebench", "theirs", 0.4),
    ]
    board = leaderboard([make_result("a", 40), make_result("b", 60)], baselines=scores)
    block = only(board)
    assert [(b.model, b.kind, b.scores, b.sources) for b in block.baselines] == [
        ("theirs", "baseline", (0.9,), ("a paper",)), ("stage 2", "target", (0.5,), ()),
    ]  # fmt: skip
    assert models(block) == ["b", "a"]
    assert row_of(block, "b").mean_rank == 1.0  # though theirs is better
    assert board.unused == ("bigcodebench",)


def test_letters_come_from_a_function_of_the_complete_results() -> None:
    seen = []

    def letters(results: object) -> dict[str, str]:
        assert isinstance(results, dict)
        seen.append(sorted(results))
        return {name: "ab"[name == "b"] for name in results}

    results = [make_result("a"), make_result("b", 40), make_result("c", 9, judged=50)]
    block = only(leaderboard(results, columns=["group"], group_models=letters))
    assert seen == [["a", "b"]]
    assert [row.cells[0].group for row in block.rows if row.cells[0]] == ["a", "b", ""]


@pytest.mark.parametrize("samples", [1, 4])
def test_letters_use_the_test_of_compare(samples: int) -> None:
    draw = random.Random(samples)
    results = {}
    for number in range(4):
        problems = tuple(
            ProblemResult(
                f"T/{i}", samples, sum(draw.random() < (number + 1) / 6 for _ in range(samples))
            )
            for i in range(60)
        )
        results[str(number)] = replace(make_result(str(number)), problems=problems)
    for a, b in itertools.combinations(results.values(), 2):
        letters = group_by_tests({"a": a, "b": b})
        assert set(letters["a"]).isdisjoint(letters["b"]) == (compare(a, b).p_value <= 0.05)


def test_models_with_a_clear_difference_share_no_letter() -> None:
    results = [make_result("high", 90), make_result("close", 88), make_result("low", 20)]
    block = only(leaderboard(results, columns=["group"]))
    high, close, low = (row.cells[0].group for row in block.rows if row.cells[0])
    assert (high, close, low) == ("a", "a", "b")
    many = [make_result(str(number), number) for number in range(MOST_MODELS + 1)]
    rows = only(leaderboard(many, columns=["group"])).rows
    assert {cell.group for row in rows for cell in row.cells if cell} == {""}


def test_a_score_that_is_not_a_number_has_no_rank() -> None:
    broken = make_result("a")
    estimate = replace(broken.pass_at[1], value=math.nan)
    broken = replace(broken, results=replace(broken.results, pass_at={1: estimate}))
    block = only(leaderboard([broken, make_result("b"), make_result("c", 4)]))
    assert models(block) == ["b", "c", "a"]


@pytest.mark.slow
def test_hundreds_of_models() -> None:
    results = [
        make_result(f"model {number}", number % 101, benchmark)
        for number in range(500)
        for benchmark in ("humaneval", "mbpp", "humanevalplus")
    ]
    began = time.process_time()
    block = only(leaderboard(results, pareto="run-speed"))
    assert time.process_time() - began < 5
    assert len(block.rows) == 500
    ranks = [row.mean_rank for row in block.rows]
    assert ranks == sorted(rank for rank in ranks if rank is not None)


def test_results_of_earlier_versions_have_a_place() -> None:
    """They have less in their protocol, and neither identity, coverage nor reasons."""
    protocol = RecordedProtocol(
        hash="old", benchmark="humaneval", n_samples=1, prompt_strategy="standard"
    )
    config = ConfigResult(Decoding(temperature=0.2), None, "", 1, "standard")
    old = make_result(
        "a", protocol=BASE, config=config, coverage=None, model_identity=None, publishable=False,
    )  # fmt: skip
    old = replace(old, protocol=protocol)
    first, second = leaderboard([old, make_result("a"), make_result("b")]).blocks
    assert models(first) == ["a", "b"]
    assert second.settings == "standard, temperature 0.2, n=1"
    assert second.differences == f"version: {VERSION} / 1"
    text = leaderboard([old]).render()
    assert "all scores: unrecorded" in text
    assert "unrecorded: An earlier version of assay" in text


def test_no_results_are_no_blocks() -> None:
    assert leaderboard([]).blocks == ()


@given(st.lists(st.integers(0, 5), min_size=1))
def test_ranks_add_up_and_follow_the_order(scores: list[int]) -> None:
    values: dict[tuple[str, ...], float] = {
        (str(number),): float(score) for number, score in enumerate(scores)
    }
    ranks = rank(values)
    assert sum(ranks.values()) == len(scores) * (len(scores) + 1) / 2
    for one, first in values.items():
        for other, second in values.items():
            assert (ranks[one] < ranks[other]) == (first > second)


Points = st.lists(st.none() | st.tuples(st.integers(0, 4), st.integers(0, 4)))


@given(Points)
def test_a_pareto_mark_means_that_nothing_dominates(points: list[tuple[int, int] | None]) -> None:
    marks = mark_pareto(points)
    for point, mark in zip(points, marks, strict=True):
        dominated = point is not None and any(
            other is not None and other != point and other[0] >= point[0] and other[1] >= point[1]
            for other in points
        )
        assert mark == (point is not None and not dominated)


def test_every_measure_explains_its_heading() -> None:
    for measure in MEASURES.values():
        assert measure.meaning.startswith(f"{measure.heading}: ")


def test_a_time_rule_belongs_to_its_benchmark() -> None:
    rule = replace(BASE, time_rule=TimeRule(least_s=1.0, factor=100.0))
    one = make_result("a", 5, benchmark="humaneval", protocol=rule)
    other = make_result("a", 5, benchmark="mbppplus")
    assert [column.benchmark for column in only(leaderboard([one, other])).columns] == [
        "humaneval", "mbppplus",
    ]  # fmt: skip


def test_means_pool_the_benchmarks_with_an_interval() -> None:
    """All results here have the same problems, so their half-widths are added."""
    results = [
        make_result(model, passed, benchmark)
        for model, benchmark, passed in [
            ("a", "humaneval", 40), ("a", "mbpp", 60), ("b", "humaneval", 70), ("b", "mbpp", 40),
            ("c", "humaneval", 90),
        ]
    ]  # fmt: skip
    board = leaderboard(results, columns=["mean"], sort="mean")
    rows = {row.model: row for row in board.blocks[0].rows}
    assert [row.model for row in board.blocks[0].rows] == ["b", "a", "c"]
    pooled = rows["b"].pooled
    assert pooled is not None
    halves = [
        cell.estimate.value - cell.estimate.low
        for cell in rows["b"].cells
        if cell and cell.estimate
    ]
    assert pooled.value == pytest.approx(0.55)
    assert pooled.value - pooled.low == pytest.approx(sum(halves) / 2)
    assert rows["b"].best_pooled
    assert not rows["a"].best_pooled
    assert rows["c"].pooled is None  # no result on one of the benchmarks
    shown = board.render("table")
    assert "55.0 [" in shown
    assert "each with the same weight" in shown
    written = json.loads(board.render("json"))["blocks"][0]["rows"][0]["mean"]
    assert written["method"] == "pooled-half-widths"
    lines = list(csv.DictReader(io.StringIO(board.render("csv"))))
    assert float(lines[0]["mean_low"]) == pooled.low
    assert lines[2]["mean"] == ""
