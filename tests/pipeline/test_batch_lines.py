"""Lines of a batch file: what each means, as requests or as a reason."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.pipeline import sample_seed
from assay.pipeline.batch import requests as batch_lines
from assay.pipeline.batch.generation import RunConfig
from assay.pipeline.batch.requests import (
    BadLine,
    BatchPrompt,
    digest,
    parse,
    read_lines,
    read_requests,
    requests_of,
    survey,
)
from assay.pipeline.config import Sampling
from assay.types import Decoding, Message, Prompt, Request

CONFIG = RunConfig("m")
TEXT = st.text().filter(lambda text: "\0" not in text)
# The first text ever drawn on a machine takes seconds, a loaded machine has no deadlines.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@unhurried
@given(st.binary(max_size=60), st.integers(0, 3))
def test_whatever_a_line_holds_it_is_a_prompt_or_a_bad_line(data: bytes, index: int) -> None:
    found = parse(index, data)
    assert isinstance(found, BatchPrompt | BadLine)


@unhurried
@given(
    st.dictionaries(
        st.sampled_from([*sorted(batch_lines.USED), "other"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    )
)
def test_whatever_an_object_holds_it_gives_requests_or_a_reason(fields: dict[str, Any]) -> None:
    found = parse(7, line(**fields))
    if isinstance(found, BadLine):
        assert found.error
        assert found.is_object or "digits" in found.error
        return
    assert (found.prompt is None) != (found.messages is None)
    try:
        (request,) = requests_of(found, CONFIG)
    except ValueError as error:
        assert str(error).split()[0] in ("max-tokens", "temperature", "top-k")
    else:
        assert request.decoding.max_tokens >= 1
        assert 0 <= request.seed < 2**31


@unhurried
@given(TEXT, TEXT)
def test_text_arrives_as_it_was_written(prompt: str, task_id: str) -> None:
    found = parse(0, line(prompt=prompt, task_id=task_id))
    assert found == BatchPrompt(task_id, prompt=prompt)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (b"{", "not valid JSON ("),
        (b"[" * 100_000, "nested more than 100 levels deep"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "has a number of 5000 digits"),
        (b'{"prompt": "a\0b"}', "not valid JSON (Invalid control character"),
        (b'{"prompt": "\xff"}', "not UTF-8 (byte 12)"),
        (b'"text"', "not a JSON object but str"),
        (line(), "neither prompt nor messages"),
        (line(prompt=None), "neither prompt nor messages"),
        (line(messages=[]), "neither prompt nor messages"),
        (line(prompt="a", messages=[{"role": "user", "content": "b"}]), "both prompt and messages"),
        (line(prompt=3), "'prompt' has an unexpected value '3'"),
        (line(messages="hello"), "'messages' has an unexpected value"),
        (line(messages=[{"role": "robot", "content": "b"}]), "'role' has an unexpected value"),
        (line(messages=[{"role": "user"}]), "'content' is missing"),
        (line(prompt="a\0b"), "prompt contains a NUL character"),
        (line(messages=[{"role": "user", "content": "\ud800"}]), "half a surrogate pair"),
        (line(prompt="a", task_id=[1]), "task_id is neither text nor a whole number"),
        (line(prompt="a", task_id="\ud800"), "task_id contains half a surrogate pair"),
        (line(prompt="a", max_tokens="9"), "'max_tokens' has an unexpected value"),
        (line(prompt="a", max_tokens=True), "'max_tokens' has an unexpected value"),
        (line(prompt="a", seed=-1), "seed -1: must be 0 or more"),
        (line(prompt="a", seed=2**31), "less than 2^31"),
        (line(prompt="a", stop=[1]), "'stop' has an unexpected value"),
        (line(prompt="a", stop=""), "a stop word is empty"),
    ],
)
def test_bad_lines_say_why(bad: bytes, error: str) -> None:
    found = parse(4, bad)
    assert isinstance(found, BadLine)
    assert found.task_id == "4"
    assert error in found.error


@pytest.mark.parametrize(
    ("own", "error"),
    [
        ({"max_tokens": 0}, "max-tokens 0: must be at least 1"),
        ({"temperature": -1}, "temperature -1.0: must be 0 or more"),
        ({"temperature": float("nan")}, "temperature nan: must be 0 or more"),
        ({"top_k": -1}, "top-k -1: must be 0"),
    ],
)
def test_settings_without_meaning_make_a_bad_line(
    own: dict[str, float], error: str, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(line(prompt="a", task_id="x", **own))
    (bad,) = survey(path, CONFIG).bad
    assert (bad.task_id, bad.is_object) == ("x", True)
    assert error in bad.error
    assert list(read_requests(path, CONFIG)) == []


def test_a_line_without_task_id_is_named_by_its_index(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    lines = [line(prompt="a"), b"\n", line(prompt="b", task_id=17), line(prompt="c", task_id=None)]
    path.write_bytes(b"".join(lines)[:-1])  # the last line end may be missing
    assert [r.task_id for r in read_requests(path, CONFIG)] == ["0", "17", "3"]


def test_a_byte_order_mark_is_nothing() -> None:
    assert parse(0, b"\xef\xbb\xbf" + line(prompt="a")) == BatchPrompt("0", prompt="a")
    assert isinstance(parse(1, b"\xef\xbb\xbf" + line(prompt="a")), BadLine)


def test_of_a_line_without_end_only_the_beginning_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_lines, "LONGEST", 1 << 20)
    path = tmp_path / "in.jsonl"
    with path.open("wb") as file:
        file.write(line(prompt="a"))
        for _ in range(40):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + line(prompt="b"))
    tracemalloc.start()
    try:
        surveyed = survey(path, CONFIG)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(bad.task_id, bad.error) for bad in surveyed.bad] == [("1", "longer than 1 MiB")]
    assert [index for index, _ in read_lines(path)] == [0, 1, 2]
    assert peak < 8 << 20


def test_plain_text_is_continued_and_chat_is_asked() -> None:
    plain = BatchPrompt("t", prompt="p", stop=("s",))
    chat = BatchPrompt("t", messages=(Message("system", "be short"), Message("user", "p")))
    asking = dataclasses.replace(CONFIG, chat=True)
    assert requests_of(plain, CONFIG)[0].prompt == Prompt(text="p", stop=("s",))
    assert requests_of(plain, asking)[0].prompt == Prompt((Message("user", "p"),), stop=("s",))
    assert requests_of(chat, CONFIG)[0].prompt == requests_of(chat, asking)[0].prompt
    assert requests_of(chat, CONFIG)[0].prompt == Prompt(chat.messages or ())


def test_a_lines_own_settings_beat_the_batchs() -> None:
    config = dataclasses.replace(CONFIG, sampling=Sampling(temperature=0.5, top_k=7, seed=3))
    own = BatchPrompt("t", prompt="p", max_tokens=9, temperature=1.0, top_k=0)
    assert requests_of(own, config)[0].decoding == Decoding(9, 1.0, 0, seed=3)
    assert requests_of(BatchPrompt("t", prompt="p"), config)[0].decoding.top_k == 7
    warm = BatchPrompt("t", prompt="p", temperature=1.0)
    assert requests_of(warm, CONFIG)[0].decoding == Decoding(512, 1.0, 40)
    cold = BatchPrompt("t", prompt="p", temperature=0.0)
    assert requests_of(cold, config)[0].decoding == Decoding(512)


def test_any_sample_can_be_made_again_alone() -> None:
    config = dataclasses.replace(CONFIG, sampling=Sampling(4, temperature=0.8, seed=5))
    prompt = BatchPrompt("t", prompt="p")
    samples = requests_of(prompt, config)
    assert [r.seed for r in samples] == [sample_seed(5, "t", s) for s in range(4)]
    alone = dataclasses.replace(prompt, seed=samples[2].seed)
    (again,) = requests_of(
        alone, dataclasses.replace(CONFIG, sampling=Sampling(temperature=0.8, seed=5))
    )
    assert again.seed == samples[2].seed
    several = requests_of(alone, config)
    assert len({r.seed for r in several}) == 4


def test_temperature_means_top_k_40_unless_given() -> None:
    warm = Sampling(temperature=0.8, max_tokens=9, seed=1)
    assert warm.settle() == Decoding(9, 0.8, 40, seed=1)
    assert dataclasses.replace(warm, top_k=0).settle() == Decoding(9, 0.8, 0, seed=1)
    assert Sampling(max_tokens=9, top_k=5, seed=1).settle() == Decoding(9)


def test_a_last_message_of_the_assistant_is_continued() -> None:
    """By every engine, and the digests of other conversations are those of earlier versions."""
    user, begun = Message("user", "p"), Message("assistant", "def f(")
    both = BatchPrompt("t", messages=(user, begun))
    (found,) = requests_of(both, CONFIG)
    assert found.prompt == Prompt((user,), prefill="def f(")
    (alone,) = requests_of(BatchPrompt("t", messages=(begun,)), CONFIG)
    assert alone.prompt == Prompt((begun,))
    plain = Request("t", 0, Prompt((user,)), Decoding(), 0)
    assert digest(plain) == "aeaf499ea0815a48"
    assert digest(dataclasses.replace(plain, prompt=found.prompt)) != digest(plain)
