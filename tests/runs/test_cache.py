"""The cache: a folder of the user alone, and entries that only this user's key can have made."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from assay.data import codec
from assay.datasets import cache_dir, look_up_sha256, read_sealed, seal, write_sealed
from assay.errors import DataError
from assay.runs import KeptData, VerdictCache
from assay.types import Job, Program, Tests, Verdict

KEY = "ab" + "0" * 62


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "cache"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "assay" / "seal.key"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_is_created_for_the_user_alone(cache: Path) -> None:
    """With umask 002, which many distributions set, others could write there."""
    before = os.umask(0o002)
    try:
        assert cache_dir() == cache
    finally:
        os.umask(before)
    assert mode(cache) == 0o700


@pytest.mark.parametrize("open_to", [0o755, 0o750, 0o711])
def test_a_folder_of_ours_that_others_can_read_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_to: int
) -> None:
    monkeypatch.delenv("ASSAY_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ours = tmp_path / "assay"
    ours.mkdir()
    ours.chmod(open_to)
    assert cache_dir() == ours
    assert mode(ours) == 0o700


def test_a_folder_that_the_user_names_keeps_its_mode(cache: Path) -> None:
    """It may be /var/cache, which others have to read."""
    cache.mkdir()
    cache.chmod(0o755)
    assert cache_dir() == cache
    assert mode(cache) == 0o755


@pytest.mark.parametrize("open_to", [0o770, 0o707, 0o1777, 0o720])
def test_a_folder_that_others_can_write_is_refused(cache: Path, open_to: int) -> None:
    """Every program of another user could plant verdicts there."""
    cache.mkdir()
    cache.chmod(open_to)
    with pytest.raises(DataError, match=r"can be written by other users\. .* chmod 700 "):
        cache_dir()
    assert mode(cache) == open_to


def test_a_link_or_a_file_in_its_place_is_refused(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    cache.symlink_to(tmp_path / "other")
    with pytest.raises(DataError, match=r"is a symbolic link\. .*ASSAY_CACHE_DIR to .*other"):
        cache_dir()
    cache.unlink()
    cache.touch()
    with pytest.raises(DataError, match=r"is not a folder\. .*ASSAY_CACHE_DIR"):
        cache_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(cache: Path) -> None:
    cache.mkdir(mode=0o700)
    os.chown(cache, 12345, 12345)
    with pytest.raises(DataError, match="belongs to another user"):
        cache_dir()


def test_what_was_stored_is_found(cache: Path) -> None:
    kept = KeptData(cache / "verdicts")
    kept.put(KEY, {"a": [1, None, "é"]})
    assert kept.get(KEY) == {"a": [1, None, "é"]}
    assert kept.get("cd" + KEY[2:]) is None


def test_an_entry_without_our_seal_counts_as_none(cache: Path) -> None:
    """A plain sha256 needs no secret: whoever knows the format could plant a verdict."""
    path = cache / "verdicts" / KEY[:2] / f"{KEY[2:]}.json"
    path.parent.mkdir(parents=True)
    data = {"status": "pass"}
    path.write_text(codec.dumps({"sha256": codec.digest([KEY, data]), "data": data}))
    assert KeptData(cache / "verdicts").get(KEY) is None


def test_a_verdict_that_others_planted_is_not_taken(cache: Path) -> None:
    job = Job("t", 0, Program("wrong", "x"), Tests("f", "assert False"))
    verdicts = VerdictCache(cache / "verdicts", "process")
    key = verdicts.key(job)
    planted = codec.to_json(Verdict("", 0, "pass", "passed"))
    path = cache / "verdicts" / key[:2] / f"{key[2:]}.json"
    path.parent.mkdir(parents=True)
    path.write_text(codec.dumps({"sha256": codec.digest([key, planted]), "data": planted}))
    assert verdicts.get(key, job) is None
    verdicts.put(key, Verdict("t", 0, "fail", "wrong-answer"))
    found = verdicts.get(key, job)
    assert found is not None
    assert found.status == "fail"


def test_entries_cannot_be_moved_copied_or_changed(cache: Path) -> None:
    kept, other = KeptData(cache / "verdicts"), KeptData(cache / "gate")
    kept.put(KEY, "data")
    (path,) = (path for path in cache.rglob("*.json"))
    whole = path.read_bytes()
    for moved in (cache / "gate" / KEY[:2] / path.name, path.with_name(f"1{path.name[1:]}")):
        moved.parent.mkdir(parents=True, exist_ok=True)
        moved.write_bytes(whole)
    assert other.get(KEY) is None
    assert kept.get(f"{KEY[:2]}1{KEY[3:]}") is None
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert kept.get(KEY) is None
        path.write_bytes(whole[:position])
        assert kept.get(KEY) is None
    path.write_bytes(whole)
    assert kept.get(KEY) == "data"
    path.unlink()
    os.mkfifo(path)
    assert kept.get(KEY) is None


def test_a_cache_of_another_user_has_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied as a whole, as one would carry a cache to another machine."""
    KeptData(cache / "verdicts").put(KEY, "data")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    assert KeptData(cache / "verdicts").get(KEY) is None


def test_digests_of_weights_are_sealed_too(cache: Path, tmp_path: Path) -> None:
    """A planted digest would have given one model's verdicts and gate to another."""
    weights = tmp_path / "weights"
    weights.write_bytes(bytes(1 << 20))
    right = look_up_sha256(weights)
    (note,) = (cache / "digests").iterdir()
    note.write_text("0" * 64)
    assert look_up_sha256(weights) == right


def test_the_key_is_created_once_and_for_the_user_alone(key_file: Path, tmp_path: Path) -> None:
    write_sealed(tmp_path / "entry", "x", b"content")
    assert mode(key_file) == 0o600
    assert len(key_file.read_bytes()) == 32
    assert [path.name for path in key_file.parent.iterdir()] == ["seal.key"]
    before = key_file.read_bytes()
    seal._key.cache_clear()  # as the next process
    assert read_sealed(tmp_path / "entry", "x") == b"content"
    assert key_file.read_bytes() == before


@pytest.mark.parametrize("spoil", ["open", "short", "empty"])
def test_a_key_that_is_none_is_refused(key_file: Path, tmp_path: Path, spoil: str) -> None:
    key_file.parent.mkdir(parents=True)
    key_file.write_bytes({"open": bytes(32), "short": bytes(31), "empty": b""}[spoil])
    key_file.chmod(0o644 if spoil == "open" else 0o600)
    (tmp_path / "entry").write_bytes(b"seal\ncontent")
    with pytest.raises(DataError, match=r"seal\.key: is not a key .* Delete it"):
        read_sealed(tmp_path / "entry", "x")


def test_without_a_place_for_a_key_nothing_is_found_again(key_file: Path, tmp_path: Path) -> None:
    key_file.parent.parent.touch()  # a file where the folder would be
    write_sealed(tmp_path / "entry", "x", b"content")
    assert read_sealed(tmp_path / "entry", "x") == b"content"
    seal._key.cache_clear()
    assert read_sealed(tmp_path / "entry", "x") is None


def test_big_numbers_and_deep_data_survive(cache: Path) -> None:
    """Expected outputs of references: whatever they return."""
    kept = KeptData(cache / "references")
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    data = [10**1000, deep, float("inf")]
    kept.put(KEY, data)
    assert kept.get(KEY) == json.loads(json.dumps(data))


def test_a_read_only_folder_stays_read_only(cache: Path) -> None:
    """Preparing the cache must not make a read-only folder writable."""
    cache.mkdir()
    cache.chmod(0o555)
    assert cache_dir() == cache
    assert mode(cache) == 0o555
