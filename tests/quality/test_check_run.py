"""``checking`` with the engines that run models: small ones, made here, and the default one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError
from assay.formats.huggingface.safetensors import read_index
from assay.formats.vocabulary import CONTROL, NORMAL, UNKNOWN
from assay.models import Rendered, convert
from assay.quality.check import with_engine as check_run
from assay.quality.check.stages import STAGES, CheckStage, check
from assay.types import Prompt
from tests.models.small_models import np, write_small

pytest.importorskip("xllamacpp", reason="needs llama.cpp: pip install 'assay-eval[gguf]'")


BYTE = 6  # a kind of token


def found(path: Path | str) -> dict[str, CheckStage]:
    return {stage.name: stage for stage in check(str(path))}


def statuses(stages: dict[str, CheckStage]) -> list[str]:
    return [stages[name].status for name in STAGES]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("small") / "small.gguf", ("Q4_K",))


def test_a_gguf_by_llama_cpp(small: Path) -> None:
    stages = found(small)
    assert statuses(stages) == ["pass"] * 10
    assert "the model continues" in stages["sample"].reason


def test_a_tokenizer_and_a_template_by_llama_cpp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pre-tokenizer is not known here, and jinja2 is not installed."""
    path = write_small(tmp_path / "x.gguf", ("Q4_K",), pre="deepseek-coder")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "jinja2.py").write_text("raise ImportError('gone', name='jinja2')")
    here = Path(__file__).parents[2] / "src"
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'hidden'}:{here}")
    stages = {stage.name: stage for stage in check(str(path), run=False)}
    assert "only llama.cpp has the pre-tokenizer 'deepseek-coder'" in stages["tokenizer"].reason
    assert stages["template"].reason == "needs jinja2: pip install 'assay-eval[hf]'"
    monkeypatch.setattr(check_run, "TEXTS", ("def f(x):\n\treturn x", "naïve 中文 🙂"))
    stages = found(path)
    assert stages["tokenizer"].reason.startswith("2 texts survive a round trip")
    assert stages["template"].reason.startswith("a message of 16 characters renders to 38")


def test_sentencepiece_by_llama_cpp(tmp_path: Path) -> None:
    """It puts a mark and a space before the text, and writes letters that it lacks as bytes."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256]
    letters = ["▁", *map(chr, range(33, 127)), "▁a", "re", "▁re"]
    path = write_small(
        tmp_path / "x.gguf",
        ("Q4_K",),
        model="llama",
        tokens=tokens + letters,
        types=types + [NORMAL] * len(letters),
        merges=[],
        token_scores=[-float(number) for number in range(len(tokens + letters))],
    )
    stages = found(path)
    assert statuses(stages) == ["pass"] * 10
    assert stages["tokenizer"].reason.startswith("4 texts survive a round trip")


class Rendering:
    """A model that gives a text back in these pieces."""

    def __init__(self, *pieces: str) -> None:
        self._pieces = pieces

    def render(self, _: Prompt) -> Rendered:
        return Rendered("", tuple(range(len(self._pieces))), self._pieces)


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        (["def f():", " ", "ï\n", "x = 1"], ""),
        (["<s>", " def f():", " \ufffd", "\ufffd\n", "x = 1"], ""),
        (["def f():", " ", "i\n", "x = 1"], "f(): ï\\nx = 1' comes back as "),
        (["def f():", " ", "ï\n", "x = "], "ï\\nx = 1' comes back as ': ï\\nx = '"),
        (["def f():", "\ufffd", "x = 2"], "comes back as"),
        (["ef f():", " ", "ï\n", "x = 1"], "comes back as 'ef f():"),
        ([], "comes back as ''"),
    ],
)
def test_what_comes_back_from_an_engine(
    monkeypatch: pytest.MonkeyPatch, pieces: list[str], why: str
) -> None:
    monkeypatch.setattr(check_run, "TEXTS", ("def f(): ï", "x = 1"))
    model: Any = Rendering(*pieces)
    if not why:
        assert "2 texts survive a round trip" in check_run.round_trip(model)
        return
    with pytest.raises(ModelError) as caught:
        check_run.round_trip(model)
    assert why in str(caught.value)


@pytest.mark.torch
@pytest.mark.slow
def test_weights_that_overflow_are_found_by_running(small: Path, tmp_path: Path) -> None:
    """Every weight is finite, but not what the last norm makes of them."""
    pytest.importorskip("torch", reason="needs torch: pip install 'assay-eval[hf]'")
    convert(small, tmp_path / "x", dtype="float32")
    file = tmp_path / "x" / "model.safetensors"
    (norm,) = [e for e in read_index(file).entries if e.name == "model.norm.weight"]
    content = bytearray(file.read_bytes())
    content[norm.start : norm.end] = np.full(norm.shape, 3e38, np.float32).tobytes()
    file.write_bytes(content)
    stages = found(tmp_path / "x")
    assert statuses(stages) == ["pass"] * 8 + ["fail", "skipped"]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("form", [pytest.param("apr", marks=pytest.mark.whole), "folder"])
def test_the_same_model_by_torch(small: Path, tmp_path: Path, form: str) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'assay-eval[hf]'")
    target = tmp_path / ("x.apr" if form == "apr" else "x")
    convert(small, target)
    assert statuses(found(target)) == ["pass"] * 10


@pytest.mark.torch
@pytest.mark.slow
def test_a_family_that_torch_does_not_know(small: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'assay-eval[hf]'")
    convert(small, tmp_path / "x")
    (tmp_path / "x" / "config.json").write_text(json.dumps({"model_type": "brand-new"}))
    stages = found(tmp_path / "x")
    assert stages["forward"].status == "skipped"
    assert "does not know this kind of model" in stages["forward"].reason


def test_a_file_that_only_the_engine_finds_wrong(tmp_path: Path) -> None:
    """llama.cpp has no family of this name."""
    stages = found(write_small(tmp_path / "x.gguf", ("Q4_K",), architecture="gemma9"))
    assert statuses(stages)[4:] == ["skipped", "skipped", "pass", "pass", "fail", "skipped"]
    assert "llama.cpp cannot load" in stages["forward"].reason
    assert stages["sample"].reason == "forward did not pass"


@pytest.mark.slow
@pytest.mark.model
def test_the_default_model() -> None:
    stages = found("default")
    assert statuses(stages) == ["pass"] * 10
    assert "30 layers of 576, 9 heads of 64 (3 for keys)" in stages["shapes"].reason
    assert "with ' a + b" in stages["sample"].reason
