"""One registry of formats: files are recognised by content, targets by their ending."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from assay.errors import ModelError
from assay.formats.format import (
    bits_per_weight,
    find_format,
    formats,
    read_checkpoint,
    target_format,
)
from assay.formats.stored import StoredSize
from assay.models import convert
from tests.models.small_models import write_small


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same model in every format, under names that say nothing."""
    folder = tmp_path_factory.mktemp("formats")
    first = write_small(folder / "model.gguf")
    for name in ("model.apr", "model"):
        convert(first, folder / name)
    found = {"gguf": folder / "one", "apr": folder / "two", "hf": folder / "model"}
    first.rename(found["gguf"])
    (folder / "model.apr").rename(found["apr"])
    return found


def test_every_format_knows_its_own_files(models: dict[str, Path]) -> None:
    assert formats.names() == sorted(models)
    assert {find_format(path): path for path in models.values()} == models
    assert {bits_per_weight(path) for path in models.values()} == {32.0}
    names = [
        {tensor.name for tensor in read_checkpoint(path).hf_tensors()} for path in models.values()
    ]
    assert names[0] == names[1] == names[2]


@pytest.mark.parametrize(
    ("path", "name"), [("a.gguf", "gguf"), ("a.GGUF", "gguf"), ("a.apr", "apr"), ("a.b/c", "hf")]
)
def test_an_ending_says_what_is_written(path: str, name: str) -> None:
    assert target_format(Path(path)) == name


def test_other_files_have_no_format(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("GG")
    assert find_format(tmp_path / "notes") == ""
    with pytest.raises(ModelError, match="is not a model that can be read"):
        read_checkpoint(tmp_path / "notes")


def test_a_format_more_is_one_registration(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.toy").write_text("TOY")
    toy = dataclasses.replace(
        formats.get("gguf"),
        recognises=lambda path: path.is_file() and path.read_bytes()[:3] == b"TOY",
        read=lambda _: read_checkpoint(models["gguf"]),
        sizes=lambda _: [StoredSize(bytes=1, numbers=2)],
        suffix=".toy",
    )
    monkeypatch.setitem(formats._items, "toy", toy)
    assert find_format(tmp_path / "model.toy") == "toy"
    assert bits_per_weight(tmp_path / "model.toy") == 4.0
    assert convert(tmp_path / "model.toy", tmp_path / "copy.apr").format == "apr"
    assert convert(models["apr"], tmp_path / "new.toy").format == "toy"
