"""``assay convert`` on a folder whose files were made to harm: an error of one line, at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError
from assay.models import convert
from tests.formats.damaged import copy, write_bases

HUGE = 10**4000  # has more digits than any number of a model, and fits into no float
# The file, the place of a value in it, and the value. Unchecked, most are a traceback or never end.
VALUES: dict[str, tuple[str, tuple[str | int, ...], Any]] = {
    "a base of thousands of digits": ("config.json", ("rope_theta",), HUGE),
    "a base that is a list": ("config.json", ("rope_parameters",), [1]),
    "a base without an end": ("config.json", ("rope_theta",), float("inf")),
    "a vocabulary of thousands of digits": ("config.json", ("vocab_size",), HUGE),
    "heads of thousands of digits": ("config.json", ("num_attention_heads",), HUGE),
    "heads that are true": ("config.json", ("num_attention_heads",), True),
    "heads of a negative size": ("config.json", ("head_dim",), -1),
    "a type of thousands of digits": ("config.json", ("model_type",), HUGE),
    "a number of a token that is infinite":
        ("tokenizer.json", ("added_tokens", 0, "id"), float("inf")),
    "a number of a token that is a list": ("tokenizer.json", ("added_tokens", 0, "id"), [1]),
    "a number of a token above all": ("tokenizer.json", ("added_tokens", 0, "id"), 2**40),
    "a token that is a list": ("tokenizer.json", ("added_tokens", 0, "content"), [1]),
    "half a character": ("tokenizer.json", ("added_tokens", 0, "content"), "\ud800"),
    "a normalizer that is a number": ("tokenizer.json", ("normalizer",), 1.5),
    "a splitter that is a number": ("tokenizer.json", ("pre_tokenizer", "pretokenizers"), 1.5),
    "a processor that is a number": ("tokenizer.json", ("post_processor",), 1.5),
    "merges that are numbers": ("tokenizer.json", ("model", "merges"), [1, 2]),
}  # fmt: skip
IN_PLACE: dict[str, Callable[[Path], Any]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bases")
    write_bases(folder)
    return folder / "folder"


def refusal(folder: Path) -> str:
    """The error of converting a folder into a file."""
    with pytest.raises(ModelError) as raised:
        convert(folder, folder.parent / "x.gguf", dtype="float16")
    return str(raised.value)


@pytest.mark.parametrize("case", VALUES)
def test_hostile_values_are_errors_of_one_line(case: str, base: Path, tmp_path: Path) -> None:
    name, place, value = VALUES[case]
    folder = copy(base, tmp_path / "model")
    content = json.loads((folder / name).read_text())
    inner = content
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    (folder / name).write_text(json.dumps(content))
    error = refusal(folder)
    assert "\n" not in error
    assert len(error) < 1000


@pytest.mark.parametrize("kind", IN_PLACE)
def test_what_is_not_a_file_is_an_error_of_one_line(kind: str, base: Path, tmp_path: Path) -> None:
    folder = copy(base, tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    IN_PLACE[kind](folder / "tokenizer.json")
    assert "tokenizer.json: " in refusal(folder)
