"""Perplexity: its definition, and its value against computations of another kind."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.datasets import packaged_file
from assay.errors import ModelError, UsageError
from assay.models import DEFAULT_WEIGHTS, EngineOptions, convert, open_model
from assay.models.scoring import open_scorer
from assay.quality.perplexity import load_text, measure, summary, windows
from assay.types import Decoding, Prompt, Request
from tests.conftest import Cli
from tests.models.torch_models import save_model

TEXT = "".join(f"def f{n}(x):\n    return x + {n * n}  # the {n}th of them\n" for n in range(12))


@given(
    tokens=st.integers(0, 300),
    window=st.integers(2, 40),
    stride=st.integers(1, 39),
)
def test_every_token_but_the_first_is_asked_about_once(
    tokens: int, window: int, stride: int
) -> None:
    if stride >= window:
        with pytest.raises(UsageError, match="--stride: .* is out of range"):
            list(windows(tokens, window, stride))
        return
    plan = list(windows(tokens, window, stride))
    asked = [place for one in plan for place in range(one.predicted_from, one.end)]
    assert asked == list(range(1, tokens))
    for one in plan:
        assert one.end - one.start <= window
        assert one.start < one.predicted_from < one.end  # there is something before what is asked
        # As much as fits is seen: all, or all but what the stride has left behind.
        assert one.start == 0 or one.predicted_from - one.start >= window - stride


@given(
    losses=st.lists(st.floats(0.01, 500), min_size=2, max_size=20),
    count=st.integers(1, 300),
    size=st.integers(1, 10_000),
)
def test_the_figures_are_one_sum_in_several_units(
    losses: list[float], count: int, size: int
) -> None:
    found = summary(losses, [count] * len(losses), size, 8, 4)
    total = math.fsum(losses)
    assert found.cross_entropy == pytest.approx(total / (count * len(losses)))
    assert found.perplexity == pytest.approx(math.exp(found.cross_entropy))
    assert found.perplexity > 1
    assert found.bits_per_byte * size * math.log(2) == pytest.approx(total)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.perplexity <= found.high


def test_one_window_tells_no_interval() -> None:
    found = summary([3.0], [3], 10, 8, 4)
    assert (found.standard_error, found.low, found.high) == (None, None, None)
    json.loads(json.dumps(found.perplexity), parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers", reason="needs the hf extra")
    return save_model(tmp_path_factory.mktemp("ppl") / "model")


@pytest.mark.torch
@pytest.mark.parametrize(("window", "stride"), [(64, 16), (100, 99), (512, 256)])
def test_torch_s_own_loss_is_the_same(folder: Path, window: int, stride: int) -> None:
    """Computed once more with transformers alone, token by token of the definition."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = AutoTokenizer.from_pretrained(folder).encode(TEXT)
    total, start = 0.0, 0
    asked = 1
    while asked < len(ids):
        end = min(start + window, len(ids))
        with torch.no_grad():
            logits = model(torch.tensor([ids[start:end]])).logits[0].double()
        for place in range(asked, end):
            row = logits[place - 1 - start]
            total -= float(row[ids[place]] - torch.logsumexp(row, 0))
        start, asked = start + stride, end
    with open_scorer(open_model(str(folder))) as scorer:
        found = measure(scorer, TEXT, window, stride)
    assert found.tokens == len(ids) - 1
    assert found.cross_entropy == pytest.approx(total / (len(ids) - 1), rel=1e-5)
    assert found.bits_per_byte == pytest.approx(total / math.log(2) / (len(TEXT) - 1), rel=1e-5)


@pytest.mark.torch
def test_a_model_whose_every_token_is_as_likely(tmp_path: Path) -> None:
    """Its perplexity is the size of its vocabulary."""
    transformers = pytest.importorskip("transformers", reason="needs the hf extra")
    even = save_model(tmp_path / "even")
    model = transformers.AutoModelForCausalLM.from_pretrained(even)
    model.lm_head.weight.data.zero_()
    model.save_pretrained(even)
    with open_scorer(open_model(str(even))) as scorer:
        size = scorer.logits([1, 2]).shape[1]
        assert measure(scorer, TEXT).perplexity == pytest.approx(size, rel=1e-5)


@pytest.mark.torch
@pytest.mark.whole
def test_an_apr_file_has_the_perplexity_of_the_folder_it_was_made_of(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.apr"
    convert(folder, path)
    found = []
    for spec in (folder, path):
        with open_scorer(open_model(str(spec))) as scorer:
            found.append(measure(scorer, TEXT, 64))
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.model
def test_llama_cpp_s_server_tells_the_same_probability() -> None:
    """Logits come from its C interface, completions from its server: one and the same model."""
    prompts = [
        "def add(a, b):\n    return a +",
        "The capital of France is",
        "for number in range(10):\n    if number % 2 == 0:\n        print(",
    ]
    model = open_model("default", EngineOptions(logprobs=True, prompt_form="text"))
    asked = [
        Request(str(n), 0, Prompt(text=text), Decoding(max_tokens=1), 0)
        for n, text in enumerate(prompts)
    ]
    told = {c.task_id: c for c in model.generate(asked)}
    with open_scorer(model) as scorer:
        for number, text in enumerate(prompts):
            row = scorer.logits(scorer.tokenize(text).ids)[-1].astype("float64")
            best = row.max() - (math.log(sum(math.exp(v - row.max()) for v in row)) + row.max())
            assert told[str(number)].logprob == pytest.approx(best, abs=0.05)


@pytest.mark.torch
@pytest.mark.model
@pytest.mark.slow
def test_both_engines_agree_on_the_default_model() -> None:
    pytest.importorskip("transformers", reason="needs the hf extra")
    text = load_text("built-in", 3000).content
    found = []
    path = packaged_file(DEFAULT_WEIGHTS)
    for spec in (str(path), f"hf:{path}"):
        with open_scorer(open_model(spec)) as scorer:
            found.append(measure(scorer, text, 256))
    assert found[0].tokens == found[1].tokens
    assert 1 < found[0].perplexity < 20
    assert found[0].perplexity == pytest.approx(found[1].perplexity, rel=0.02)


@pytest.mark.torch
def test_the_command_and_its_json(assay: Cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(TEXT)
    asked = ("perplexity", folder, "--dataset", "mine.txt", "--window", "64")
    told = json.loads(assay(*asked, "--json").stdout)
    assert told["dataset"]["name"] == "mine.txt"
    assert told["results"]["tokens"] > 100
    assert told["results"]["stride"] == 32
    assert math.log(told["results"]["perplexity"]) == pytest.approx(
        told["results"]["cross_entropy"]
    )
    assert told["model"]["engine"] == "hf"
    shown = assay(*asked)
    assert f"{told['results']['perplexity']:.3f}" in shown.stdout
    part = json.loads(assay(*asked, "--bytes", "200", "--json").stdout)
    assert part["dataset"]["bytes"] <= 200
    assert part["results"]["tokens"] < told["results"]["tokens"]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--dataset", "nothing.txt"),
            "nothing.txt: no such file. Give a UTF-8 text file, or one of",
        ),
        (
            ("--dataset", "built-in", "--window", "64", "--stride", "64"),
            "--stride: 64 is out of range",
        ),
        (("--dataset", "built-in", "--window", "99999"), "exceeds the model's context"),
        (("--dataset", "built-in", "--bytes", "-1"), "--bytes: -1 is negative"),
    ],
)
def test_bad_input_is_one_line(
    assay: Cli, folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = assay("perplexity", folder, *arguments)
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_recorded_completions_have_no_perplexity(tmp_path: Path) -> None:
    recorded = tmp_path / "s.jsonl"
    recorded.write_text('{"task_id": "a", "completion": "b"}\n')
    with pytest.raises(ModelError, match="Use gguf, hf or apr"):
        open_scorer(open_model(f"replay:{recorded}"))
