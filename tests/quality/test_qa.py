"""``assay qa``: questions, decisions, evidence."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from assay.types import Benchmark
from tests.conftest import Cli
from tests.models.torch_models import save_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="needs the hf extra")
    return save_model(tmp_path_factory.mktemp("qa") / "model")


def policy(path: Path, tier: str) -> Path:
    path.write_text(f"tiers:\n  mine: {tier}\n")
    return path


def asked(assay: Cli, folder: Path, tmp_path: Path, tier: str) -> tuple[int, dict[str, Any]]:
    chosen = policy(tmp_path / "policy.yaml", tier)
    done = assay("qa", folder, "--tier", "mine", "--policy", chosen, "--json")
    return done.returncode, json.loads(done.stdout)


def decisions(told: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["decision"] for item in told["items"]}


@pytest.mark.torch
def test_an_untrained_model_is_not_let_pass(assay: Cli, folder: Path, tmp_path: Path) -> None:
    """Random weights: a sound file, and far too much perplexity."""
    code, told = asked(
        assay, folder, tmp_path,
        "{check: true, perplexity_max: 50, text: built-in, text_bytes: 2000, "
        "tokens_per_second_min: 0.01, parity: true}",
    )  # fmt: skip
    assert code == 1
    assert told["decision"] == "NO-GO"
    assert decisions(told) == {
        "check": "GO", "perplexity": "NO-GO", "throughput": "GO", "parity": "GO",
    }  # fmt: skip


@pytest.mark.torch
def test_what_is_not_known_does_not_go(assay: Cli, folder: Path, tmp_path: Path) -> None:
    code, told = asked(assay, folder, tmp_path, "{check: true, scores: {mini: {pass_at_1: 0.5}}}")
    assert code == 3
    assert decisions(told) == {"check": "GO", "mini pass_at_1": "INCONCLUSIVE"}


@pytest.mark.torch
def test_scores_of_results_that_are_there(
    assay: Cli, folder: Path, tmp_path: Path, mini: Benchmark
) -> None:
    made = assay("eval", "mini", "--model", folder, "--max-tokens", "4", "--json")
    result = json.loads(made.stdout)
    assert result["results"]["pass_at_1"] == 0.0
    high = result["results"]["intervals"]["pass_at_1"]["high"]
    for least, code, decision in (
        (0.0, 0, "GO"), (high / 2, 3, "INCONCLUSIVE"), (high + 0.01, 1, "NO-GO"),
    ):  # fmt: skip
        tier = f"{{scores: {{mini: {{pass_at_1: {least}}}}}}}"
        found, told = asked(assay, folder, tmp_path, tier)
        assert (found, told["decision"]) == (code, decision)
    digests = told["sha256"]
    assert isinstance(digests, dict)
    path = tmp_path / "results" / f"{result['run']}.json"
    assert digests[f"result {result['run']}"] == hashlib.sha256(path.read_bytes()).hexdigest()
    other = save_model(tmp_path / "other", seed=5)
    assert asked(assay, other, tmp_path, "{scores: {mini: {pass_at_1: 0}}}")[0] == 3
    assert len(mini.problems) == result["results"]["total"]


@pytest.mark.torch
def test_evidence_is_written_and_no_run(assay: Cli, folder: Path, tmp_path: Path) -> None:
    chosen = policy(tmp_path / "policy.yaml", "{check: true}")
    done = assay("qa", folder, "--tier", "mine", "--policy", chosen, "--verbose")
    assert done.returncode == 0, done.stderr
    assert "GO            check: 10 stages pass" in done.stdout
    assert "header:" in done.stdout
    (path,) = (tmp_path / "results").glob("qa_*.json")
    evidence = json.loads(path.read_text())
    assert evidence["decision"] == "GO"
    assert len(evidence["model"]["weights_sha256"]) == 64
    assert len(evidence["sha256"]["policy"]) == 64
    assert str(path.name) in done.stdout
    assert path.stem not in assay("history").stdout


@pytest.mark.torch
def test_a_damaged_file_is_asked_nothing_more(assay: Cli, folder: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    cut.mkdir()
    for source in folder.iterdir():
        content = source.read_bytes()
        whole = source.suffix != ".safetensors"
        (cut / source.name).write_bytes(content if whole else content[: len(content) // 2])
    done = assay("qa", cut, "--json")
    assert done.returncode == 1
    assert decisions(json.loads(done.stdout)) == {"check": "NO-GO"}


@pytest.mark.torch
def test_an_unknown_tier_is_one_line(assay: Cli, folder: Path) -> None:
    done = assay("qa", folder, "--tier", "gold")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "assay: tier gold: not in the policy. Choose smoke, release."
    )


@pytest.mark.torch
def test_a_part_of_a_benchmark_decides_nothing(assay: Cli, folder: Path, tmp_path: Path) -> None:
    """A newer result of the same weights does not count if it covers only a part."""
    assay("eval", "mini", "--model", folder, "--max-tokens", "4", "--problems", "2")
    code, told = asked(assay, folder, tmp_path, "{scores: {mini: {pass_at_1: 0}}}")
    assert code == 3
    (item,) = told["items"]
    assert item["reason"].startswith(
        "no result of this model for the whole benchmark (1 incomplete or for selected problems)"
    )


@pytest.mark.torch
def test_a_result_with_engine_options_is_another_models(
    assay: Cli, folder: Path, tmp_path: Path
) -> None:
    """They change what the weights compute: another base of the positions, say."""
    asked_for = ("eval", "mini", "--model", folder, "--max-tokens", "4")
    done = assay(*asked_for, "--engine-option", "rms_norm_eps=0.5")
    assert done.returncode == 0, done.stderr
    code, told = asked(assay, folder, tmp_path, "{scores: {mini: {pass_at_1: 0}}}")
    assert code == 3
    (item,) = told["items"]
    assert item["reason"].startswith("no result of this model for the whole benchmark; ")


@pytest.mark.torch
def test_a_result_of_another_model_or_way_of_asking_decides_nothing(
    assay: Cli, folder: Path, tmp_path: Path
) -> None:
    """An adapter's run has the same weights, and must not count for the base model."""
    made = assay("eval", "mini", "--model", folder, "--max-tokens", "4", "--json")
    path = tmp_path / "results" / f"{json.loads(made.stdout)['run']}.json"
    original = path.read_text()
    tier = "{scores: {mini: {pass_at_1: 0}}}"
    assert asked(assay, folder, tmp_path, tier)[0] == 0
    for where, name, value in (
        (("model_identity",), "variant", "float32 adapter 0123456789ab"),
        (("model_identity",), "prompt_form", "text"),
        (("protocol", "asking"), "system", "Be brief."),
        (("protocol",), "judge", "evalplus"),
    ):
        result = inner = json.loads(original)
        for key in where:
            inner = inner[key]
        assert inner.get(name) != value
        inner[name] = value
        path.write_text(json.dumps(result))
        code, told = asked(assay, folder, tmp_path, tier)
        assert (code, told["decision"]) == (3, "INCONCLUSIVE"), name
