"""``checking`` on damaged models: the stage that tells, in little time and memory."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from assay.formats.apr.apr_file import read_apr
from assay.formats.gguf.file import read_header
from assay.quality.check.stages import STAGES, CheckStage, check
from tests.formats.damaged import FORMATS, WEIGHTS, copy, rewrite, weights, with_sums, write_bases
from tests.formats.damaged_cases import CASES

for package in ("tokenizers", "jinja2"):
    pytest.importorskip(package, reason=f"needs {package}: pip install 'assay-eval[hf]'")

STATIC = STAGES.index("tokenizer")  # the stages before it need no other process
PEAK = 250 << 20
FLIPS = 200


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bases")
    (folder / "damaged").mkdir()
    write_bases(folder)
    return folder


@pytest.fixture(scope="module")
def checked(bases: Path) -> dict[str, Any]:
    """All cases, by one process that may not have much memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.quality.check_under_limit", str(bases)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_damage_is_told_by_its_stage(checked: dict[str, Any], name: str) -> None:
    found = checked["cases"][name]
    failed = [stage for stage in found["stages"] if stage["status"] == "fail"]
    assert failed, found["stages"]
    if CASES[name].stage:
        assert failed[0]["name"] == CASES[name].stage
    for stage in found["stages"]:
        assert stage["reason"]
        assert stage["reason"].isprintable()
    assert found["seconds"] < 3


@pytest.mark.slow
def test_no_damage_takes_much_memory(checked: dict[str, Any]) -> None:
    assert checked["peak"] < PEAK


@pytest.mark.parametrize("form", FORMATS)
def test_the_models_were_sound_before(bases: Path, form: str) -> None:
    stages = list(check(str(bases / form), run=False))
    assert [stage.name for stage in stages] == list(STAGES)
    assert [stage.status for stage in stages] == ["pass"] * 8 + ["skipped"] * 2
    assert stages[-1].reason == "not requested"


def static(path: Path) -> list[CheckStage]:
    stages = list(islice(check(str(path), run=False), STATIC))
    assert all(stage.reason.isprintable() for stage in stages)
    return stages


def fails(path: Path) -> bool:
    return any(stage.status == "fail" for stage in static(path))


def flip(at: int, bit: int) -> Callable[[bytearray], None]:
    def change(content: bytearray) -> None:
        content[at] ^= 1 << bit

    return change


def test_bits_of_a_ggufs_metadata(bases: Path) -> None:
    """Some say nothing of the weights, such as a name; none leads anywhere else than to stages."""
    end = bases.joinpath("gguf").read_bytes().index(b"token_embd.weight")
    draw = random.Random(2)
    found = []
    for _ in range(FLIPS):
        path = copy(bases / "gguf", bases / "flipped")
        rewrite(path, flip(draw.randrange(end), draw.randrange(8)))
        found.append(fails(path))
    assert 0 < sum(found) < FLIPS


def test_every_bit_of_a_ggufs_index_matters(bases: Path) -> None:
    whole = bases.joinpath("gguf").read_bytes()
    names = [tensor.name for tensor in read_header(bases / "gguf").tensors]
    start = whole.index(struct.pack("<Q", len(names[0])) + names[0].encode())
    end = whole.index(names[-1].encode()) + len(names[-1]) + 4 + 16 + 4 + 8
    draw = random.Random(3)
    for _ in range(FLIPS):
        at, bit = draw.randrange(start, end), draw.randrange(8)
        path = copy(bases / "gguf", bases / "flipped")
        rewrite(path, flip(at, bit))
        assert fails(path), (at - start, bit)


@pytest.mark.slow
def test_every_bit_of_an_apr_matters(bases: Path) -> None:
    size = (bases / "apr").stat().st_size
    draw = random.Random(4)
    for number in range(FLIPS):
        at = draw.randrange(64 if number % 2 else size)
        path = copy(bases / "apr", bases / "flipped")
        rewrite(path, flip(at, draw.randrange(8)))
        assert fails(path), at


@pytest.mark.slow
def test_bits_of_an_apr_whose_sums_are_right(bases: Path) -> None:
    """As a careless writer would make it: its index is told to be wrong all the same."""
    file = read_apr(bases / "apr")
    draw = random.Random(5)
    for number in range(FLIPS):
        entries = range(file.head.index_at, file.index_end)
        at = draw.choice(entries if number % 2 else range(file.head.index_at))
        path = copy(bases / "apr", bases / "flipped")
        rewrite(path, flip(at, draw.randrange(8)))
        if path.read_bytes()[:4] == b"APR\0":
            with_sums(path)
        assert fails(path) or at not in entries, at


def test_every_bit_of_a_safetensors_header_matters(bases: Path) -> None:
    content = (bases / "folder" / WEIGHTS).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    # What is said of the file's maker decides nothing.
    free = range(content.index(b'"format"'), content.index(b"}"))
    draw = random.Random(6)
    for _ in range(FLIPS):
        at, bit = draw.randrange(8 + size), draw.randrange(8)
        path = copy(bases / "folder", bases / "damaged" / "folder")
        rewrite(weights(path), flip(at, bit))
        assert fails(path) or at in free, (at, bit)


def test_what_follows_a_failure_is_skipped_with_the_reason(bases: Path) -> None:
    path = copy(bases / "gguf", bases / "flipped")
    path.write_bytes(path.read_bytes()[:-1000])
    stages = {stage.name: stage for stage in check(str(path))}
    assert stages["index"].status == "fail"
    for name in ("values", "shapes", "layers", "forward", "sample"):
        assert (stages[name].status, stages[name].reason) == ("skipped", "index did not pass")
    assert stages["tokenizer"].status == stages["template"].status == "pass"
    path.write_bytes(b"GGUF")
    assert [stage.status for stage in check(str(path))] == ["pass", "fail", *["skipped"] * 8]
