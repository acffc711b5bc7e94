"""Models fill in code with their own tokens: from GGUF keys, from names, with real engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay import benchmarks
from assay.datasets import packaged_file
from assay.errors import ModelError
from assay.formats.gguf.checkpoint import KEYS, gap_of
from assay.formats.huggingface import folder as huggingface
from assay.formats.marks import FORMS, GapTokens, find_gap
from assay.models import Model, check_infilling, open_model
from assay.models.opening import DEFAULT_WEIGHTS
from assay.types import Decoding, Prompt, Request
from tests.conftest import Cli
from tests.formats.gap_models import DEEPSEEK, QWEN, SPARE, rename_in_gguf

PREFIX, SUFFIX = "def double(x):\n    return", "\n\n\nprint(double(3))\n"
GAP = Prompt(text=PREFIX, suffix=SUFFIX)
NEW, OLD = ([names[age].removeprefix("tokenizer.ggml.") for names in KEYS] for age in (0, 1))


def metadata(tokens: list[str], **numbers: int) -> dict[str, object]:
    return {
        "tokenizer.ggml.tokens": tokens,
        **{f"tokenizer.ggml.{key}": number for key, number in numbers.items()},
    }


@pytest.mark.parametrize("form", FORMS)
def test_every_known_form_is_found_by_its_names(form: GapTokens) -> None:
    tokens = ["a", *form, "b", "<EOT>"]
    in_gguf = gap_of(metadata(tokens))  # type: ignore[arg-type]
    in_folder = huggingface.gap_of({"model": {"vocab": {t: n for n, t in enumerate(tokens)}}})
    assert in_gguf is not None
    assert in_gguf == in_folder
    assert (in_gguf.tokens, in_gguf.ids) == (form, (1, 2, 3))
    assert set(in_gguf.ends) >= {1, 2, 3, 5}


@pytest.mark.parametrize("keys", [NEW, OLD])
def test_keys_of_a_file_name_the_tokens(keys: list[str]) -> None:
    tokens = ["<gap>", "<before>", "<after>", *QWEN]
    found = gap_of(metadata(tokens, **dict(zip(keys, (1, 2, 0), strict=True))))  # type: ignore[arg-type]
    assert found is not None
    assert found.ids == (1, 2, 0)
    assert found.tokens == GapTokens("<before>", "<after>", "<gap>")


def test_keys_that_point_nowhere_are_ignored() -> None:
    wrong = dict(zip(NEW, (7, -1, 2), strict=True))
    assert gap_of(metadata(["a", "b", "c"], **wrong)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", range(3))
def test_a_form_needs_all_three_tokens(missing: int) -> None:
    assert find_gap({t: n for n, t in enumerate(QWEN) if n != missing}) is None


def test_added_tokens_of_a_folder_are_found_in_any_of_its_files(tmp_path: Path) -> None:
    import json

    added = [{"id": 9 + n, "content": token} for n, token in enumerate(DEEPSEEK)]
    files = {
        "tokenizer.json": {"model": {"vocab": [["a", 0.5]]}, "added_tokens": added},
        "added_tokens.json": {one["content"]: one["id"] for one in added},
        "tokenizer_config.json": {
            "added_tokens_decoder": {str(one["id"]): {"content": one["content"]} for one in added}
        },
    }
    for name, content in files.items():
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text(json.dumps(content))
        found = huggingface.read_gap(folder)
        assert found is not None
        assert (found.tokens, found.ids) == (DEEPSEEK, (9, 10, 11))
    assert huggingface.read_gap(tmp_path) is None


def test_an_engine_without_gaps_is_refused() -> None:
    class Plain:
        class identity:  # noqa: N801 - a property elsewhere
            name, engine = "toy", "apr-cli"

    with pytest.raises(ModelError, match="toy: the apr-cli engine cannot fill in code"):
        check_infilling(Plain())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def gap_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default model, with three of its special tokens named as Qwen's."""
    pytest.importorskip("xllamacpp", reason="needs the gguf extra")
    return rename_in_gguf(default_file(), tmp_path_factory.mktemp("gap") / "gap.gguf")


@pytest.fixture(scope="module")
def gap_model(gap_file: Path) -> Iterator[Model]:
    model = open_model(str(gap_file))
    with model.keep_loaded():
        yield model
    model.close()


def default_file() -> Path:
    return packaged_file(DEFAULT_WEIGHTS, lambda _: None)


def complete(model: Model, prompt: Prompt = GAP, count: int = 1, max_tokens: int = 8) -> list[str]:
    decoding = Decoding(max_tokens=max_tokens)
    requests = [Request("t", n, prompt, decoding, n) for n in range(count)]
    found = sorted(model.generate(requests), key=lambda one: one.sample)
    assert [one.error for one in found] == [None] * count
    return [one.text for one in found]


@pytest.mark.model
def test_llamacpp_gets_the_tokens_of_prefix_and_suffix(gap_model: Model) -> None:
    plain = gap_model.render(
        Prompt(text=f"{QWEN.prefix}{PREFIX}{QWEN.suffix}{SUFFIX}{QWEN.middle}")
    )
    found = gap_model.render(GAP)
    assert found.tokens == plain.tokens
    assert found.text == plain.text == "".join(found.pieces)
    assert found.tokens[0] == 11
    assert found.tokens[-1] == 13
    # The same tokens give the same text, however the request was made.
    first, second = complete(gap_model, count=2)
    assert [first] == [second] == complete(gap_model, Prompt(text=plain.text))


@pytest.mark.model
def test_llamacpp_ends_at_a_mark(gap_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word of the text stands for a mark, since no model here writes marks after its middle."""
    (text,) = complete(gap_model, max_tokens=12)
    word = text.strip()[-1:]
    assert word
    marked = replace(gap_model.gap, end_texts=(word,))  # type: ignore[attr-defined]
    monkeypatch.setitem(gap_model.__dict__, "gap", marked)
    (cut,) = complete(gap_model, max_tokens=12)
    assert cut == text[: text.index(word)]


@pytest.mark.slow
@pytest.mark.model
def test_keys_in_a_real_file_override_names(tmp_path: Path) -> None:
    other = GapTokens("<x>", "<y>", "<z>")
    path = rename_in_gguf(default_file(), tmp_path / "m.gguf", other, tuple(OLD))
    assert str(other) in check_infilling(open_model(str(path)))
    path = rename_in_gguf(default_file(), tmp_path / "m.gguf", other)
    with pytest.raises(ModelError, match=r"m.*: has no fill-in-the-middle tokens"):
        check_infilling(open_model(str(path)))


@pytest.mark.slow
@pytest.mark.model
def test_a_model_is_evaluated_from_prompt_to_score(gap_file: Path, assay: Cli) -> None:
    benchmarks.load("humaneval-infilling-single-line")
    done = assay(
        "eval", "humaneval-infilling-single-line", "--model", gap_file, "--problems", "2",
        "--max-tokens", "24",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (
        "prompt form infill: prefix, suffix and middle are marked by <|fim_prefix|>" in done.stderr
    )
    assert "· infill · greedy" in done.stdout
    assert "  exact " in done.stdout
    assert "  similar " in done.stdout


def test_the_spare_tokens_are_special_in_the_default_model() -> None:
    from assay.formats.gguf.file import read_header

    pairs = read_header(default_file(), arrays=True).metadata
    tokens, types = pairs["tokenizer.ggml.tokens"], pairs["tokenizer.ggml.token_type"]
    assert isinstance(tokens, list)
    assert isinstance(types, list)
    assert {types[tokens.index(token)] for token in SPARE} == {3}
