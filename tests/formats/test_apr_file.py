"""The .apr container: what is read, and every way in which it can be broken."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import ModelError
from assay.formats.apr.apr_file import AprFile, AprMetadata, check_sum, is_apr, read_apr, write_apr
from assay.formats.tensors import Tensor
from assay.models import open_model
from tests.formats.apr_samples import AprSample, with_footer


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "model.apr"
    path.write_bytes(content)
    return path


def read(tmp_path: Path, content: bytes) -> AprFile:
    file = read_apr(written(tmp_path, content))
    check_sum(file.path)
    return file


def test_reads_what_the_description_says(tmp_path: Path) -> None:
    stored = struct.pack("<6f", *range(6))
    sample = AprSample(tensors=[("b.weight", 0, (2, 3), stored), ("a", 7, (3,), b"xyz")])
    file = read(tmp_path, sample.build())
    assert file.metadata.content == {"architecture": "llama"}
    assert [(t.name, t.encoding, t.shape, bytes(t.read())) for t in file.unread()] == [
        ("a", "U8", (3,), b"xyz"),
        ("b.weight", "F32", (2, 3), stored),
    ]


def test_what_is_written_is_what_the_description_says() -> None:
    sample = AprSample(metadata={"architecture": "llama", "ä": 1})
    sample.tensors.append(("v", 30, (2,), b"\1\2\3\4"))
    made = io.BytesIO()
    tensors = [
        Tensor("v", "BF16", (2,), 4, lambda: b"\1\2\3\4"),
        Tensor("w", "F32", (2, 3), 24, lambda: struct.pack("<6f", *range(6))),
    ]
    write_apr(made, AprMetadata(sample.metadata), tensors, lambda _: None)
    sample.metadata = '{"architecture":"llama","ä":1}'.encode()
    assert made.getvalue() == sample.build()


def test_data_keep_their_order_though_the_index_is_sorted(tmp_path: Path) -> None:
    made = io.BytesIO()
    tensors = [Tensor(name, "U8", (1,), 1, name.encode) for name in ("z", "a", "m")]
    write_apr(made, AprMetadata({}), tensors, lambda _: None)
    file = read(tmp_path, made.getvalue())
    assert [bytes(tensor.read()) for tensor in file.unread()] == [b"z", b"a", b"m"]
    at = [made.getvalue().index(b"\1\0" + name) for name in (b"a", b"m", b"z")]
    assert at == sorted(at)


@pytest.mark.parametrize(
    ("number", "size", "encoding"),
    [
        (8, 36, "APR_Q4"),
        (128, 36, "APR_Q4"),
        (8, 68, "Q8_0"),
        (9, 68, "APR_Q8"),
        (129, 68, "APR_Q8"),
        (2, 128, "BF16"),
        (30, 128, "BF16"),
        (2, 36, "Q4_0"),
    ],
)
def test_a_tensors_size_tells_what_a_number_means(
    tmp_path: Path, number: int, size: int, encoding: str
) -> None:
    sample = AprSample(tensors=[("w", number, (2, 32), bytes(size))])
    assert read(tmp_path, sample.build()).tensors[0].encoding == encoding


@pytest.mark.parametrize("size", [4 * 144, 3 * 144])
def test_rows_may_be_padded_to_whole_blocks_or_not(tmp_path: Path, size: int) -> None:
    file = read(tmp_path, AprSample(tensors=[("w", 12, (2, 300), bytes(size))]).build())
    assert file.tensors[0].encoding == "Q4_K"


@pytest.mark.parametrize("magic", [b"APR1", b"APRN", b"APR2"])
def test_old_formats_are_named(tmp_path: Path, magic: bytes) -> None:
    path = written(tmp_path, magic + bytes(60))
    with pytest.raises(
        ModelError, match=f"old format \\({magic.decode()}\\).*Convert the original"
    ):
        read_apr(path)
    assert is_apr(path)
    with pytest.raises(ModelError, match="old format"):
        open_model(str(path))


@pytest.mark.parametrize(
    ("flag", "meaning"),
    [
        (0x1, "LZ4"),
        (0x2, "Zstandard"),
        (0x4, "encrypted"),
        (0x8, "signed"),
        (0x10, "shards"),
        (0x800, "column by column"),
        (0x1000, "unknown flag 0x1000"),
    ],
)
def test_flags_that_cannot_be_honoured(tmp_path: Path, flag: int, meaning: str) -> None:
    with pytest.raises(
        ModelError, match=f"model.apr: .*{meaning}.*Convert the original model again"
    ):
        read(tmp_path, AprSample(flags=0x400 | flag).build())


HUGE = 1 << 62


@pytest.mark.parametrize(
    ("sample", "complaint"),
    [
        (AprSample(version=(3, 1)), "version 3.1"),
        (AprSample(metadata=b"{"), "damaged"),
        (AprSample(metadata=b"[1]"), "not a JSON object"),
        (AprSample(metadata=b"\xff\xfe{}"), "damaged"),
        (AprSample(metadata=b"[" * 100_000), "damaged"),
        (AprSample(metadata_size=17 << 20), "the limit is 16 MiB"),
        (AprSample(metadata_size=1 << 20), "cut off"),
        (AprSample(count=1 << 31), "an index of 2,147,483,648 tensors"),
        (AprSample(count=2), "damaged|cut off"),
        (AprSample(index_offset=HUGE), "an index of 1 tensors"),
        (AprSample(data_offset=HUGE), "cut off"),
        (AprSample(data_offset=1 << 20), "cut off"),
        (AprSample(tensors=[("w", 0, (2, HUGE), bytes(24))]), "which do not fit its shape"),
        (
            AprSample(tensors=[("w", 0, (2, 3), bytes(20))]),
            "has 20 bytes, which do not fit its shape",
        ),
        (AprSample(tensors=[("w", 77, (2, 3), bytes(24))]), "unknown type 77"),
        (AprSample(tensors=[("w", 0, (1,) * 9, bytes(4))]), "9 dimensions"),
        (
            AprSample(tensors=[("w", 7, (1,), b"a"), ("w", 7, (1,), b"b")]),
            "two tensors with the same name",
        ),
    ],
)
def test_what_cannot_be_is_not_believed(tmp_path: Path, sample: AprSample, complaint: str) -> None:
    with pytest.raises(ModelError, match=f"model.apr: .*({complaint}).* again") as caught:
        read(tmp_path, sample.build())
    assert "\n" not in str(caught.value)


def test_a_wrong_header_sum(tmp_path: Path) -> None:
    content = bytearray(AprSample().build())
    content[50] ^= 1
    with pytest.raises(ModelError, match="header's CRC is wrong"):
        read_apr(written(tmp_path, with_footer(bytes(content[:-4]))))


def test_a_wrong_file_sum_is_found_when_the_weights_are_wanted(tmp_path: Path) -> None:
    content = bytearray(AprSample().build())
    content[-20] ^= 1
    file = read_apr(written(tmp_path, bytes(content)))
    with pytest.raises(ModelError, match="its CRC is wrong.*Download or convert it again"):
        check_sum(file.path)


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    whole = AprSample().build()
    for size in range(4, len(whole)):
        with pytest.raises(ModelError, match="again"):
            read(tmp_path, whole[:size])


@pytest.mark.parametrize("content", [b"", b"AP", b"GGUF" + bytes(100)])
def test_another_format_is_not_an_apr(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ModelError, match="not an .apr file"):
        read_apr(written(tmp_path, content))


@settings(
    max_examples=3 * settings().max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_damage_gives_one_clear_error(tmp_path: Path, data: st.DataObject) -> None:
    """Bits flipped, bytes cut off or put in anywhere, with the sums right again or not."""
    content = bytearray(
        AprSample(tensors=[("a", 12, (1, 256), bytes(144)), ("b", 1, (2, 2), bytes(8))]).build()
    )
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    content = content[: data.draw(st.integers(len(content) - 200, len(content)))]
    if data.draw(st.booleans()):
        content += bytes(data.draw(st.integers(0, 100)))
    if len(content) >= 68 and data.draw(st.booleans()):
        content[40:44] = struct.pack("<I", zlib.crc32(content[:40] + content[44:64]))
        content[-4:] = struct.pack("<I", zlib.crc32(content[:-4]))
    tracemalloc.start()
    try:
        file = read(tmp_path, bytes(content))
        assert sum(tensor.size for tensor in file.tensors) <= 2 * len(content)
    except ModelError as error:
        assert "model.apr" in str(error)
        assert "again" in str(error)
        assert "\n" not in str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 10_000_000
