"""Small GGUF files, made here."""

from __future__ import annotations

import struct


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def pair(key: str, value: str) -> bytes:
    return text(key) + struct.pack("<I", 8) + text(value)


def gguf(
    *, version: int = 3, template: str = "{{ messages }}", tensors: int = 1, data: int = 64
) -> bytes:
    """A header with a template, a vocabulary and ``tensors`` float32 tensors of 16 values."""
    vocabulary = struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
    scores = struct.pack("<IIQ", 9, 6, 2) + struct.pack("<ff", 0.5, 1.5)
    pairs = [
        pair("general.architecture", "llama"),
        text("llama.context_length") + struct.pack("<II", 4, 512),
        pair("tokenizer.chat_template", template),
        text("tokenizer.ggml.tokens") + vocabulary,
        text("tokenizer.ggml.scores") + scores,
    ]
    header = b"GGUF" + struct.pack("<IQQ", version, tensors, len(pairs)) + b"".join(pairs)
    for number in range(tensors):
        header += text(f"t{number}") + struct.pack("<IQIQ", 1, 16, 0, 64 * number)
    return header + b"\0" * (-len(header) % 32 + data)
