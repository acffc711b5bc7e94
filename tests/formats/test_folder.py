"""Model folders: what makes two of them the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from assay.errors import ModelError
from assay.formats.huggingface.folder import (
    adapter_setting,
    chat_template,
    model_folder,
    read_config,
    tokenizer_digest,
    weights_digest,
)
from assay.models import EngineOptions
from assay.models.names import folder_identity


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "model")


def fill(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_a_copy_elsewhere_is_the_same(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert weights_digest(copy) == weights_digest(folder)
    assert tokenizer_digest(copy) == tokenizer_digest(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "generation_config.json"])
def test_other_weights_or_settings_are_another_model(folder: Path, name: str) -> None:
    before = weights_digest(folder)
    (folder / name).write_bytes(b"{ }")
    assert weights_digest(folder) != before


def test_a_renamed_shard_is_another_model(folder: Path) -> None:
    before = weights_digest(folder)
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    assert weights_digest(folder) != before


def test_what_is_not_loaded_does_not_count(folder: Path) -> None:
    before = weights_digest(folder), tokenizer_digest(folder)
    for name in ("README.md", "optimizer.bin", "training_args.bin"):
        (folder / name).write_text("x")
    assert (weights_digest(folder), tokenizer_digest(folder)) == before


def test_another_tokenizer_leaves_the_weights_alone(folder: Path) -> None:
    before = weights_digest(folder), tokenizer_digest(folder)
    (folder / "tokenizer.json").write_text("{ }")
    assert weights_digest(folder) == before[0]
    assert tokenizer_digest(folder) != before[1]


def test_older_weights_count_where_there_are_no_others(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="no weights"):
        weights_digest(folder)
    (folder / "pytorch_model.bin").write_bytes(b"w")
    assert len(weights_digest(folder)) == 64


def test_a_template_from_its_own_file_or_the_tokenizers(folder: Path) -> None:
    config = folder / "tokenizer_config.json"
    assert chat_template(folder) == ""
    config.write_text("{}")
    assert chat_template(folder) == ""
    several = [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
    for given, wanted in ((several, "d"), ("one", "one"), (None, "")):
        config.write_text(json.dumps({"chat_template": given}))
        assert chat_template(folder) == wanted
    (folder / "chat_template.jinja").write_text("own")
    assert chat_template(folder) == "own"
    (folder / "chat_template.jinja").unlink()
    config.write_text("[]")
    with pytest.raises(ModelError, match="damaged"):
        chat_template(folder)


def test_wrong_folders_say_what_they_are(folder: Path, tmp_path: Path) -> None:
    assert model_folder(str(folder)) == folder
    with pytest.raises(ModelError, match="no config.json"):
        model_folder(str(tmp_path))
    with pytest.raises(ModelError, match="is a file"):
        model_folder(str(folder / "config.json"))
    with pytest.raises(ModelError, match="is not a model folder"):
        model_folder(str(tmp_path / "none"))


def test_a_hub_id_is_found_in_the_hubs_own_cache(tmp_path: Path) -> None:
    constants = pytest.importorskip("huggingface_hub.constants", reason="needs huggingface_hub")
    kept = tmp_path / "models--owner--name"
    snapshot = fill(kept / "snapshots" / ("0" * 40))
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0" * 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        patch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        assert model_folder("owner/name") == snapshot
        other = fill(kept / "snapshots" / ("1" * 40))
        (other / "model.safetensors").write_bytes(b"other weights")
        (kept / "refs" / "v2").write_text("1" * 40)
        assert model_folder("owner/name", "v2") == other
        assert model_folder("owner/name", "1" * 40) == other
        with pytest.raises(ModelError, match="Check the name and --revision"):
            model_folder("owner/name", "v3")
        identities = [
            folder_identity(
                "hf", "owner/name", model_folder("owner/name", revision), None, "float32",
                EngineOptions(revision=revision),
            )
            for revision in ("", "v2")
        ]  # fmt: skip
        assert [identity.name for identity in identities] == ["owner/name", "owner/name@v2"]
        assert identities[0].weights_sha256 != identities[1].weights_sha256
        with pytest.raises(ModelError, match="the hub cannot provide it"):
            model_folder("owner/other")


def test_a_hub_id_without_the_hubs_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(ModelError, match="pip install huggingface_hub"):
        model_folder("owner/name")


DEEP = "[" * 50_000 + "]" * 50_000


@pytest.mark.parametrize("content", [DEEP, f'{{"chat_template": {DEEP}}}', "[1]", "\udcff", "{"])
def test_hostile_settings_are_an_error_of_one_line(folder: Path, content: str) -> None:
    for name in ("config.json", "tokenizer_config.json", "adapter_config.json"):
        (folder / name).write_text(content, errors="surrogateescape")
    for read in (read_config, chat_template, lambda path: adapter_setting(path, "r", int)):
        with pytest.raises(ModelError) as found:
            read(folder)
        assert "\n" not in str(found.value)


def test_settings_that_are_not_a_file_are_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("/dev/zero")
    with pytest.raises(ModelError, match="is a device, not a file"):
        read_config(folder)
