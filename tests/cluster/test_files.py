"""Model files reach a node by path if it has them, and otherwise by a verified copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.cluster.files import CHUNK, Shipment, describe_files, has_same, locate
from assay.errors import ModelError


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))


def read(path: str, offset: int, size: int) -> bytes:
    """Read a file of the driver, which is elsewhere for the node."""
    return Path(path.replace("/node/", "/driver/")).read_bytes()[offset : offset + size]


def on_node(shipment: Shipment) -> Shipment:
    """Return the shipment as a node sees it: at a path that it may not have."""
    return Shipment(shipment.root.replace("/driver/", "/node/"), shipment.files)


def folder(where: Path) -> Path:
    (where / "inner").mkdir(parents=True)
    (where / "config.json").write_text("{}")
    (where / "inner" / "weights").write_bytes(b"w" * 100)
    (where / ".hidden").write_text("not shipped")
    return where


def test_a_shared_path_is_used_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "driver" / "model.gguf"
    path.parent.mkdir()
    path.write_bytes(b"weights")
    assert locate(describe_files(path), None) == path
    assert not (tmp_path / "cache" / "cluster").exists()


def test_a_file_is_copied_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "driver" / "model.gguf"
    path.parent.mkdir()
    path.write_bytes(bytes(range(256)) * (CHUNK // 256) + b"rest")
    shipment = on_node(describe_files(path))
    found = locate(shipment, read)
    assert found.name == "model.gguf"
    assert found.read_bytes() == path.read_bytes()
    assert locate(shipment, None) == found  # copied once


def test_a_folder_is_copied_without_hidden_files(tmp_path: Path) -> None:
    path = folder(tmp_path / "driver" / "model")
    found = locate(on_node(describe_files(path)), read)
    copied = {str(p.relative_to(found)) for p in found.rglob("*") if p.is_file()}
    assert copied == {"config.json", "inner/weights"}


def test_another_file_at_the_same_path_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "driver" / "model.gguf"
    there = tmp_path / "node" / "model.gguf"
    for one, content in ((path, b"right"), (there, b"wrong")):
        one.parent.mkdir()
        one.write_bytes(content)
    shipment = on_node(describe_files(path))
    assert not has_same(there, shipment)
    assert locate(shipment, read).read_bytes() == b"right"
    assert there.read_bytes() == b"wrong"


def test_a_copy_that_differs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "driver" / "model.gguf"
    path.parent.mkdir()
    path.write_bytes(b"right")
    shipment = on_node(describe_files(path))
    with pytest.raises(ModelError, match="changed while it was copied"):
        locate(shipment, lambda *_: b"wrong")
    assert not list((tmp_path / "cache" / "cluster" / shipment.digest).glob("*.gguf"))


def test_without_a_source_the_error_says_what_to_do(tmp_path: Path) -> None:
    path = folder(tmp_path / "driver" / "model")
    with pytest.raises(ModelError, match="is missing or different on node .* Share the folder"):
        locate(on_node(describe_files(path)), None)
