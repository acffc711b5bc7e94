"""Damaged models, and the stage of a check that must tell."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.formats.damaged import (
    WEIGHTS,
    after,
    cut,
    header,
    huge_and_empty,
    metadata,
    not_a_number,
    packed,
    pair,
    replaced,
    rewrite,
    said,
    setting,
    tensor,
    text,
    weights,
)
from tests.formats.gguf_samples import text as gguf_text

HUGE = 1 << 63
UP, DOWN = "blk.1.ffn_up.weight", "blk.1.ffn_down.weight"
HF_UP, HF_DOWN = "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.down_proj.weight"
TOKENS_KEY = gguf_text("tokenizer.ggml.tokens")
LONG_NUMBER = b'{"a": {"dtype": "U8", "shape": [%s], "data_offsets": [0, 4]}}' % (b"9" * 5000)
U32, TEXTS = 4, 8  # GGUF's numbers for types


class Case(NamedTuple):
    format: str
    damage: Callable[[Path], Any]
    stage: str  # the first that fails; none: whichever


def content(data: bytes) -> Callable[[Path], int]:
    return lambda path: path.write_bytes(data)


def magic(letters: bytes) -> Callable[[Path], None]:
    return packed("<4s", 0, letters)  # type: ignore[arg-type]


def flipped(at: int) -> Callable[[Path], None]:
    """A bit, and no sum is mended."""

    def damage(path: Path) -> None:
        def change(data: bytearray) -> None:
            data[at] ^= 1

        rewrite(weights(path), change)

    return damage


def entry(name: str, **changes: Any) -> Callable[[Path], None]:
    return header(lambda said: said[name].update(changes))


def twice(path: Path) -> None:
    """A second entry of the same name."""
    file = path / WEIGHTS
    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    repeated = data[8 : 8 + size].rstrip()[:-1] + b',"' + HF_UP.encode() + b'":'
    repeated += json.dumps(json.loads(data[8 : 8 + size])[HF_DOWN]).encode() + b"}"
    file.write_bytes(struct.pack("<Q", len(repeated)) + repeated + data[8 + size :])


def raw_header(data: bytes) -> Callable[[Path], int]:
    return lambda path: (path / WEIGHTS).write_bytes(struct.pack("<Q", len(data)) + data)


def one_byte_less(path: Path) -> None:
    """A tokenizer that has no token for the letter x."""
    file = path / "tokenizer.json"
    said = json.loads(file.read_text())
    said["model"]["vocab"]["xx"] = said["model"]["vocab"].pop("x")
    file.write_text(json.dumps(said))


def index_of_shards(files: Any) -> Callable[[Path], int]:
    return text(f"{WEIGHTS}.index.json", json.dumps({"weight_map": files}))


def short_header(*pairs: bytes, tensors: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, len(pairs)) + b"".join(pairs)


TEMPLATES = {
    "does not compile": "{% for m in messages %}",
    "has unknown words": "{% frobnicate %}",
    "refuses every chat": "{{ raise_exception('no') }}",
    "fails": "{{ messages.content.text }}",
    "says nothing of the message": "hello",
    "never ends": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "takes all memory": "{{ 'x' * 10 ** 11 }}",
}
CASES = {
    "gguf: empty": Case("gguf", content(b""), "container"),
    "gguf: three letters": Case("gguf", content(b"GGU"), "container"),
    "gguf: a zip": Case("gguf", magic(b"PK\3\4"), "container"),
    "gguf: version 99": Case("gguf", packed("<I", 4, 99), "header"),
    "gguf: the other byte order": Case("gguf", packed(">I", 4, 3), "header"),
    "gguf: 2^63 tensors": Case("gguf", packed("<Q", 8, HUGE), "header"),
    "gguf: a tensor too many": Case("gguf", packed("<Q", 8, 21), ""),
    "gguf: a tensor too few": Case("gguf", packed("<Q", 8, 19), ""),
    "gguf: 2^64 - 1 metadata": Case("gguf", packed("<Q", 16, 2 * HUGE - 1), "header"),
    "gguf: a key of 2^63 bytes": Case("gguf", packed("<Q", 24, HUGE), "header"),
    "gguf: an array of 2^62": Case("gguf", after(TOKENS_KEY, "<Q", 8, HUGE // 2), "header"),
    "gguf: an array of 2^40 numbers": Case(
        "gguf", after(TOKENS_KEY, "<IIQ", 0, 9, U32, 1 << 40), "header"
    ),
    "gguf: an array of arrays": Case("gguf", after(TOKENS_KEY, "<I", 4, 9), "header"),
    "gguf: an unknown type of metadata": Case("gguf", after(TOKENS_KEY, "<I", 0, 99), "header"),
    "gguf: a token of 2^62 bytes": Case("gguf", after(TOKENS_KEY, "<Q", 16, HUGE // 2), "header"),
    "gguf: an alignment of 0": Case(
        "gguf",
        content(short_header(gguf_text("general.alignment") + struct.pack("<II", U32, 0))),
        "header",
    ),
    "gguf: no tensors": Case("gguf", content(short_header()), "index"),
    "gguf: a key twice": Case("gguf", replaced(b"ggml.bos_token", b"ggml.eos_token"), "header"),
    "gguf: 3 GB, a key of 2": Case(
        "gguf", huge_and_empty(short_header(struct.pack("<Q", 2 << 30))), "header"
    ),
    "gguf: 3 GB, an array of 2": Case(
        "gguf",
        huge_and_empty(short_header(gguf_text("a") + struct.pack("<IIQ", 9, 0, 2 << 30))),
        "header",
    ),
    "gguf: 3 GB, an array of empty texts": Case(
        "gguf",
        huge_and_empty(short_header(gguf_text("a") + struct.pack("<IIQ", 9, TEXTS, 1 << 28))),
        "header",
    ),
    "gguf: 3 GB, tensors without names": Case(
        "gguf", huge_and_empty(short_header(tensors=1 << 17)), ""
    ),
    "gguf: 2^32 - 1 dimensions": Case("gguf", tensor(UP, "<I", 0, (1 << 32) - 1), "header"),
    "gguf: a row of 2^63": Case("gguf", tensor(UP, "<Q", 4, HUGE), "index"),
    "gguf: all dimensions 2^63": Case("gguf", tensor(UP, "<QQ", 4, HUGE, HUGE), "index"),
    "gguf: parts of blocks": Case("gguf", tensor(UP, "<QQ", 4, 128, 1024), "index"),
    "gguf: an unknown encoding": Case("gguf", tensor(UP, "<I", 20, 77), "index"),
    "gguf: another encoding": Case("gguf", tensor(UP, "<I", 20, 14), "index"),
    "gguf: an offset of 2^63": Case("gguf", tensor(UP, "<Q", 24, HUGE), "index"),
    "gguf: overlapping tensors": Case("gguf", tensor(UP, "<Q", 24, 0), "index"),
    "gguf: a name twice": Case("gguf", replaced(b"blk.0.ffn_up", b"blk.1.ffn_up"), "index"),
    "gguf: bytes at the end": Case(
        "gguf", lambda path: path.write_bytes(path.read_bytes() + bytes(99)), "index"
    ),
    "gguf: not a number": Case("gguf", not_a_number, "values"),
    "gguf: rows for columns": Case("gguf", tensor(DOWN, "<QQ", 4, 256, 512), "shapes"),
    "gguf: other heads": Case(
        "gguf", setting("llama.attention.head_count", "<II", U32, 8), "shapes"
    ),
    "gguf: no heads": Case("gguf", setting("llama.attention.head_count", "<II", U32, 0), "shapes"),
    "gguf: another width": Case(
        "gguf", setting("llama.embedding_length", "<II", U32, 512), "shapes"
    ),
    "gguf: a tensor less": Case("gguf", replaced(b"blk.1.ffn_up", b"blk.1.ffn_uq"), "layers"),
    "gguf: no embedding": Case("gguf", replaced(b"token_embd.w", b"tokem_embd.w"), "layers"),
    "gguf: a layer too few": Case("gguf", setting("llama.block_count", "<II", U32, 3), "layers"),
    "gguf: a layer too many": Case("gguf", setting("llama.block_count", "<II", U32, 1), "layers"),
    "gguf: 2^32 - 1 layers": Case(
        "gguf", setting("llama.block_count", "<II", U32, (1 << 32) - 1), "layers"
    ),
    "gguf: no tokens": Case("gguf", replaced(b"ggml.tokens", b"ggml.tokenz"), "tokenizer"),
    "gguf: no merges": Case("gguf", replaced(b"ggml.merges", b"ggml.mergez"), "tokenizer"),
    "gguf: merges of no tokens": Case("gguf", replaced(b"hell o", b"hxll o"), "tokenizer"),
    "gguf: an end that is no token": Case(
        "gguf", setting("tokenizer.ggml.eos_token_id", "<II", U32, 265), "tokenizer"
    ),
    "gguf: a template that does not compile": Case(
        "gguf", replaced(b"{% endfor %}", b"{% endfur %}"), "template"
    ),
    "gguf: a template that drops the message": Case(
        "gguf", replaced(b"m['content']", b"m['kontent']"), "template"
    ),
    "apr: an old format": Case("apr", magic(b"APR1"), "header"),
    "apr: a bit of the header": Case("apr", flipped(9), "header"),
    "apr: a bit of a weight": Case("apr", flipped(-1000), "header"),
    "apr: a bit of the sum": Case("apr", flipped(-1), "header"),
    "apr: version 3": Case("apr", packed("<B", 4, 3), "header"),
    "apr: compressed": Case("apr", packed("<H", 6, 0x401), "header"),
    "apr: 2^31 tensors": Case("apr", packed("<I", 8, 1 << 31), "header"),
    "apr: metadata of 2^32 - 1 bytes": Case("apr", packed("<I", 20, (1 << 32) - 1), "header"),
    "apr: metadata at 2^63": Case("apr", packed("<Q", 12, HUGE), "header"),
    "apr: metadata that are no JSON": Case("apr", packed("<I", 20, 5), "header"),
    "apr: an index at 2^63": Case("apr", packed("<Q", 24, HUGE), "header"),
    "apr: data at 2^63": Case("apr", packed("<Q", 32, HUGE), "header"),
    "apr: data over the header": Case("apr", packed("<Q", 32, 0), "index"),
    "apr: a tensor too many": Case("apr", packed("<I", 8, 21), "index"),
    "apr: all dimensions 2^63": Case("apr", tensor(HF_UP, "<QQ", 2, HUGE, HUGE), "index"),
    "apr: 255 dimensions": Case("apr", tensor(HF_UP, "<B", 1, 255), "index"),
    "apr: an unknown encoding": Case("apr", tensor(HF_UP, "<B", 0, 77), "index"),
    "apr: another encoding": Case("apr", tensor(HF_UP, "<B", 0, 0), "index"),
    "apr: an offset of 2^63": Case("apr", tensor(HF_UP, "<Q", 18, HUGE), "index"),
    "apr: a size of 2^63": Case("apr", tensor(HF_UP, "<Q", 26, HUGE), "index"),
    "apr: overlapping tensors": Case("apr", tensor(HF_UP, "<Q", 18, 0), "index"),
    "apr: a name twice": Case("apr", replaced(b"rs.0.mlp.up", b"rs.1.mlp.up"), "index"),
    "apr: infinity": Case("apr", not_a_number, "values"),
    "apr: rows for columns": Case("apr", tensor(HF_DOWN, "<QQ", 2, 512, 256), "shapes"),
    "apr: other heads": Case("apr", metadata(pair("llama.attention.head_count", 8)), "shapes"),
    "apr: a width that is no number": Case(
        "apr", metadata(pair("llama.embedding_length", "wide")), "shapes"
    ),
    "apr: metadata under another key": Case("apr", metadata(lambda m: m.update(assay=3)), "shapes"),
    "apr: a tensor less": Case("apr", replaced(b"rs.1.mlp.up", b"rs.1.mlp.uq"), "layers"),
    "apr: 2^62 layers": Case("apr", metadata(pair("llama.block_count", HUGE // 2)), "layers"),
    "apr: no tokens": Case(
        "apr", metadata(lambda m: m.update({"tokenizer.vocabulary": []})), "tokenizer"
    ),
    "apr: merges of no tokens": Case(
        "apr", metadata(lambda m: m.update({"tokenizer.merges": ["no pe"]})), "tokenizer"
    ),
    "folder: no config.json": Case(
        "folder", lambda path: (path / "config.json").unlink(), "container"
    ),
    "folder: no weights": Case("folder", lambda path: (path / WEIGHTS).unlink(), "container"),
    "folder: weights elsewhere": Case(
        "folder", index_of_shards({"a": "../../etc/passwd"}), "container"
    ),
    "folder: shards that are not there": Case(
        "folder", index_of_shards({"a": "model-1.safetensors"}), "container"
    ),
    "folder: an index of no names": Case("folder", index_of_shards([1]), "container"),
    "folder: config.json is no JSON": Case("folder", text("config.json", "{"), "header"),
    "folder: config.json is deep": Case("folder", text("config.json", "[" * 100_000), "header"),
    "folder: a header of 2^63 bytes": Case("folder", packed("<Q", 0, HUGE), "header"),
    "folder: no header": Case("folder", packed("<Q", 0, 0), "header"),
    "folder: a header that is a list": Case("folder", raw_header(b"[]"), "header"),
    "folder: a header that is deep": Case("folder", raw_header(b'{"a":' * 99_999), "header"),
    "folder: a header with half a letter": Case("folder", raw_header(b'{"\xff": 1}'), "header"),
    "folder: a number of 5,000 digits": Case("folder", raw_header(LONG_NUMBER), "header"),
    "folder: 10,000 dimensions": Case("folder", entry(HF_UP, shape=[2] * 10_000), "header"),
    "folder: a negative shape": Case("folder", entry(HF_UP, shape=[-1, 5]), "header"),
    "folder: half a row": Case("folder", entry(HF_UP, shape=[0.5, 2]), "header"),
    "folder: a type that is no text": Case("folder", entry(HF_UP, dtype=7), "header"),
    "folder: no offsets": Case("folder", entry(HF_UP, data_offsets=[]), "header"),
    "folder: a header without tensors": Case("folder", raw_header(b"{}"), "index"),
    "folder: an unknown encoding": Case("folder", entry(HF_UP, dtype="F17"), "index"),
    "folder: another encoding": Case("folder", entry(HF_UP, dtype="F32"), "index"),
    "folder: all dimensions 2^63": Case("folder", entry(HF_UP, shape=[HUGE, HUGE]), "index"),
    "folder: offsets of 2^63": Case("folder", entry(HF_UP, data_offsets=[0, HUGE]), "index"),
    "folder: offsets the wrong way": Case(
        "folder", entry(HF_UP, data_offsets=[262144, 0]), "index"
    ),
    "folder: overlapping tensors": Case("folder", entry(HF_UP, data_offsets=[0, 262144]), "index"),
    "folder: a hole": Case("folder", header(lambda said: said.pop(HF_UP) and None), "index"),
    "folder: a name twice": Case("folder", twice, "index"),
    "folder: bytes at the end": Case(
        "folder",
        lambda path: (path / WEIGHTS).write_bytes((path / WEIGHTS).read_bytes() + b"x"),
        "index",
    ),
    "folder: a shard without its tensor": Case("folder", index_of_shards({"a": WEIGHTS}), "index"),
    "folder: infinity": Case("folder", not_a_number, "values"),
    "folder: rows for columns": Case("folder", entry(HF_DOWN, shape=[512, 256]), "shapes"),
    "folder: many heads": Case("folder", said("config.json", num_attention_heads="many"), "shapes"),
    "folder: heads that share nothing": Case(
        "folder", said("config.json", num_key_value_heads=3), "shapes"
    ),
    "folder: no width": Case("folder", said("config.json", hidden_size=None), "shapes"),
    "folder: another vocabulary": Case("folder", said("config.json", vocab_size=7), "shapes"),
    "folder: a tensor less": Case("folder", replaced(b"rs.1.mlp.up", b"rs.1.mlp.uq"), "layers"),
    "folder: a head less": Case("folder", said("config.json", tie_word_embeddings=False), "layers"),
    "folder: 2^62 layers": Case(
        "folder", said("config.json", num_hidden_layers=HUGE // 2), "layers"
    ),
    "folder: no tokenizer": Case(
        "folder", lambda path: (path / "tokenizer.json").unlink(), "tokenizer"
    ),
    "folder: a tokenizer that is no JSON": Case("folder", text("tokenizer.json", "{"), "tokenizer"),
    "folder: a tokenizer that is none": Case("folder", text("tokenizer.json", "{}"), "tokenizer"),
    "folder: a tokenizer that loses a letter": Case("folder", one_byte_less, "tokenizer"),
    **{
        f"folder: a template that {what}": Case(
            "folder", text("chat_template.jinja", template), "template"
        )
        for what, template in TEMPLATES.items()
    },
    **{
        f"{form}: cut at {share:g}": Case(form, cut(share), "")
        for form in ("gguf", "apr", "folder")
        for share in (0.0, 1e-5, 1e-4, 0.001, 0.01, 0.02, 0.1, 0.5, 0.9, 0.999)
    },
}
