"""GGUF headers, whole and damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from assay.errors import ModelError
from assay.formats.gguf.file import GgufHeader, read_header
from tests.formats.gguf_samples import gguf


def read(tmp_path: Path, content: bytes) -> GgufHeader:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    return read_header(path)


def test_reads_what_identifies_a_model(tmp_path: Path) -> None:
    header = read(tmp_path, gguf())
    assert header.chat_template == "{{ messages }}"
    assert header.context_length == 512


def test_the_template_is_not_part_of_the_tokenizers_digest(tmp_path: Path) -> None:
    one, other = read(tmp_path, gguf()), read(tmp_path, gguf(template="{{ other }}"))
    assert one.tokenizer_sha256 == other.tokenizer_sha256


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    whole = gguf(tensors=2, data=128)
    for size in range(4, len(whole)):
        with pytest.raises(ModelError, match="is cut off .*Download it again"):
            read(tmp_path, whole[:size])


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\3\4" * 9, b"{}"])
def test_another_format_is_not_a_gguf(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ModelError, match="not a GGUF"):
        read(tmp_path, content)


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="version 99"):
        read(tmp_path, gguf(version=99))


@pytest.mark.slow
def test_flipped_bits_give_a_header_or_one_clear_error(tmp_path: Path) -> None:
    whole = bytearray(gguf())
    draw = random.Random(1)
    for _ in range(2000):
        damaged = bytearray(whole)
        damaged[draw.randrange(4, len(damaged))] ^= 1 << draw.randrange(8)
        try:
            read(tmp_path, bytes(damaged))
        except ModelError as error:
            assert "Download it again" in str(error)
