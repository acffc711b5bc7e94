"""Conversion: what goes over bit by bit, what changes, and what is left when it fails."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from assay.errors import ModelError, UsageError
from assay.formats.apr.apr_file import read_apr
from assay.formats.format import read_checkpoint
from assay.formats.huggingface.safetensors import write_safetensors
from assay.models import DEFAULT_WEIGHTS, convert
from tests.conftest import Cli
from tests.formats.damaged import in_memory
from tests.models.small_models import gguf, np, same_tensors, write_small

HF_FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.mark.parametrize(
    "encodings", [("Q4_K", "Q6_K"), ("F32",), ("F16",), ("BF16",), ("Q6_K", "F16", "Q4_K", "BF16")]
)
def test_gguf_to_apr_and_back_is_the_same_file(tmp_path: Path, encodings: tuple[str, ...]) -> None:
    path = write_small(tmp_path / "x.gguf", encodings, add_bos_token=True, pad_token_id=0)
    done = convert(path, tmp_path / "x.apr")
    assert done.changed == {}
    assert {t.encoding for t in read_apr(tmp_path / "x.apr").tensors} == {*encodings, "F32"}
    convert(tmp_path / "x.apr", tmp_path / "back.gguf")
    assert (tmp_path / "back.gguf").read_bytes() == path.read_bytes()


def test_what_apr_cannot_hold_becomes_float32_exactly(tmp_path: Path) -> None:
    path = write_small(tmp_path / "x.gguf", ("Q4_1", "Q8_0", "Q5_K"))
    done = convert(path, tmp_path / "x.apr")
    assert set(done.changed) == {"Q4_1 to F32", "Q8_0 to F32", "Q5_K to F32"}
    convert(tmp_path / "x.apr", tmp_path / "back.gguf")
    ours, theirs = (
        {t.name: t for t in gguf.GGUFReader(p).tensors} for p in (path, tmp_path / "back.gguf")
    )
    for name, tensor in ours.items():
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(theirs[name].data, expected)
    fields = gguf.GGUFReader(tmp_path / "back.gguf").fields
    assert fields["general.file_type"].contents() == 0  # all F32 now
    assert fields["general.languages"].contents() == ["en", "de"]


@pytest.mark.parametrize("encoding", ["F32", "F16", "BF16"])
def test_folder_to_apr_and_back_is_the_same_folder(tmp_path: Path, encoding: str) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    convert(write_small(tmp_path / "x.gguf", (encoding,)), one)
    config = json.loads((one / "config.json").read_text())
    (one / "config.json").write_text(json.dumps({**config, "a_key_of": {"its": "own"}}))
    convert(one, tmp_path / "x.apr")
    convert(tmp_path / "x.apr", other)
    assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
    for name in HF_FILES:
        assert json.loads((one / name).read_text()) == json.loads((other / name).read_text())


def test_a_folder_of_any_family_survives_in_an_apr(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    convert(write_small(tmp_path / "x.gguf"), one)
    (one / "config.json").write_text(json.dumps({"model_type": "brand-new"}))
    tokenizer = {"model": {"type": "Unigram", "vocab": [["a", -1.5]]}, "normalizer": None}
    (one / "tokenizer.json").write_text(json.dumps(tokenizer))
    convert(one, tmp_path / "x.apr")
    convert(tmp_path / "x.apr", other)
    assert json.loads((other / "tokenizer.json").read_text()) == tokenizer
    with pytest.raises(ModelError, match="family 'brand-new'"):
        convert(one, tmp_path / "x.gguf", force=True)


def test_a_folder_keeps_a_head_that_repeats_its_embedding(tmp_path: Path) -> None:
    one = tmp_path / "one"
    convert(write_small(tmp_path / "x.gguf"), one)
    tensors = read_checkpoint(one).stored()
    (embedding,) = [t for t in tensors if "embed_tokens" in t.name]
    repeated = [*tensors, dataclasses.replace(embedding, name="lm_head.weight")]
    again = [in_memory(tensor) for tensor in repeated]
    with (one / "model.safetensors").open("wb") as file:
        write_safetensors(file, again, lambda _: None)
    convert(one, tmp_path / "x.apr")
    convert(tmp_path / "x.apr", tmp_path / "other")
    one_bytes, other = ((tmp_path / f / "model.safetensors").read_bytes() for f in ("one", "other"))
    assert one_bytes == other
    convert(one, tmp_path / "y.gguf")
    assert "output.weight" not in {t.name for t in gguf.GGUFReader(tmp_path / "y.gguf").tensors}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"limit": float("inf")}, "cannot be stored in an .apr file"),
        ({"padding": "x" * (17 << 20)}, "holds at most 16 MiB of them"),
    ],
)
def test_settings_that_an_apr_cannot_hold(
    tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    one = tmp_path / "one"
    convert(write_small(tmp_path / "x.gguf"), one)
    config = json.loads((one / "config.json").read_text())
    (one / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ModelError, match=complaint):
        convert(one, tmp_path / "x.apr")
    assert not list(tmp_path.glob("x.apr*"))


def test_gguf_to_folder_and_back_keeps_every_weight(tmp_path: Path) -> None:
    path = write_small(tmp_path / "x.gguf", ("F16", "BF16", "F32"))
    convert(path, tmp_path / "folder")
    convert(tmp_path / "folder", tmp_path / "back.gguf")
    one, other = read_checkpoint(path), read_checkpoint(tmp_path / "back.gguf")
    assert other.config == one.config
    assert other.tokenizer_json == one.tokenizer_json
    assert other.tokenizer_config == one.tokenizer_config
    ours, theirs = (
        {t.name: (t.encoding, bytes(t.read())) for t in c.stored()} for c in (one, other)
    )
    assert ours == theirs


@pytest.mark.parametrize(("dtype", "encoding"), [("float16", "F16"), ("bfloat16", "BF16")])
@pytest.mark.parametrize("target", ["y.gguf", "y.apr", "y"])
def test_a_number_format_for_all(tmp_path: Path, dtype: str, encoding: str, target: str) -> None:
    convert(write_small(tmp_path / "x.gguf", ("Q4_K",)), tmp_path / target, dtype=dtype)
    for tensor in read_checkpoint(tmp_path / target).stored():
        norm = len(tensor.shape) == 1 and target == "y.gguf"
        assert tensor.encoding == ("F32" if norm else encoding)


def test_a_target_that_is_there_is_kept(tmp_path: Path) -> None:
    path = write_small(tmp_path / "x.gguf")
    (tmp_path / "y.apr").write_text("mine")
    with pytest.raises(UsageError, match="y.apr: exists already.*--force"):
        convert(path, tmp_path / "y.apr")
    assert (tmp_path / "y.apr").read_text() == "mine"
    for _ in range(2):
        convert(path, tmp_path / "y.apr", force=True)
        convert(path, tmp_path / "folder", force=True)
    assert read_apr(tmp_path / "y.apr").tensors
    assert read_checkpoint(tmp_path / "folder").config
    assert {p.name for p in tmp_path.iterdir()} == {"x.gguf", "y.apr", "folder"}


def test_no_folder_is_ever_deleted_that_is_no_model(tmp_path: Path) -> None:
    path = write_small(tmp_path / "x.gguf")
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_text("dear")
    for target in (home, home / "letter"):
        with pytest.raises(UsageError, match="is not a model of this format"):
            convert(path, target, force=True)
    assert (home / "letter").read_text() == "dear"


def test_nothing_is_left_of_what_fails(tmp_path: Path) -> None:
    path = write_small(tmp_path / "x.gguf")
    convert(path, tmp_path / "x.apr")
    content = bytearray((tmp_path / "x.apr").read_bytes())
    content[-100] ^= 1
    (tmp_path / "x.apr").write_bytes(content)
    for target in ("y.gguf", "folder"):
        with pytest.raises(ModelError, match="CRC is wrong"):
            convert(tmp_path / "x.apr", tmp_path / target)

        def stop(*_: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            convert(path, tmp_path / target, progress=stop)
    assert {p.name for p in tmp_path.iterdir()} == {"x.gguf", "x.apr"}


def test_progress_counts_all_bytes(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    convert(
        write_small(tmp_path / "x.gguf"), tmp_path / "y", progress=lambda *told: seen.append(told)
    )
    assert seen[-1][0] == seen[-1][1] > 1_000_000
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_the_command(tmp_path: Path, assay: Cli) -> None:
    write_small(tmp_path / "x.gguf", ("Q4_1", "Q4_K"))
    done = assay("convert", "x.gguf", "x.apr")
    assert done.returncode == 0, done.stderr
    assert "apr, 20 tensors" in done.stdout
    assert "Q4_1 to F32, exactly: " in done.stdout
    again = assay("convert", "x.gguf", "x.apr")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.count("\n") == 1
    told = assay("convert", "x.apr", "folder", "--dtype", "float16", "--json")
    assert json.loads(told.stdout)["format"] == "hf"
    missing = assay("convert", "none.gguf", "y.apr")
    assert missing.returncode == 2
    assert "none.gguf: is not on this machine" in missing.stderr


@pytest.mark.model
@pytest.mark.slow
def test_the_default_model_there_and_back(tmp_path: Path) -> None:
    from assay.datasets import packaged_file

    path = packaged_file(DEFAULT_WEIGHTS)
    convert(path, tmp_path / "copy.gguf")
    assert (tmp_path / "copy.gguf").read_bytes() == path.read_bytes()
    done = convert(path, tmp_path / "x.apr")
    assert done.changed == {"Q4_1 to F32": 210, "Q8_0 to F32": 1}
    convert(tmp_path / "x.apr", tmp_path / "back.gguf")
    convert(tmp_path / "back.gguf", tmp_path / "again.apr")
    convert(tmp_path / "again.apr", tmp_path / "again.gguf")
    same_tensors(tmp_path / "back.gguf", tmp_path / "again.gguf")
    assert (tmp_path / "back.gguf").read_bytes() == (tmp_path / "again.gguf").read_bytes()
    ours, theirs = (
        {t.name: t for t in gguf.GGUFReader(p).tensors} for p in (path, tmp_path / "back.gguf")
    )
    for name, tensor in ours.items():
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(theirs[name].data, expected), name
    one, other = (gguf.GGUFReader(p).fields for p in (path, tmp_path / "back.gguf"))
    different = {key for key in one if one[key].contents() != other[key].contents()}
    assert list(one) == list(other)
    assert different == {"general.file_type"}
