"""Results files: every key has a field, files of other versions are read and lose nothing."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from assay.data import codec
from assay.errors import RunError
from assay.protocol import VERSION, PromptSettings, RecordedProtocol
from assay.runs import compare, read_result, render_result, write_result
from assay.runs.about import Environment, read_about, write_about
from assay.runs.batch_output import BatchOutput
from assay.runs.result import (
    ConfigResult,
    CrossCheck,
    Dependence,
    Disagreement,
    GroupResult,
    LeftOutResult,
    ProblemResult,
    Result,
    ScoreResult,
    Timing,
)
from assay.scoring import BestOfN, Coverage
from assay.types import Decoding, ModelIdentity
from tests.runs.consistent import make_consistent, rehash
from tests.runs.test_batch_output import SETTINGS
from tests.runs.test_folder import MODEL

DOCS = Path(__file__).parents[2] / "docs" / "results.md"
GOLDEN = Path(__file__).parent / "golden"
CODE = re.compile("`([^`]+)`")
UNKNOWN = {"future": {"a": [1, 2]}}


def content_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"result_{name}.json").read_text())
    found |= {"run": "mini_20260101_000000", "timestamp": "2026-01-01T00:00:00+00:00"}
    if found["environment"]["cpus"] == "<int>":  # a placeholder
        found |= {name: content_of("all")[name] for name in ("environment", "timing")}
    return make_consistent(found)


def read(content: dict[str, Any], folder: Path) -> Result:
    path = folder / "mini_20260101_000000.json"
    path.write_text(json.dumps(content))
    return read_result(path)


@pytest.mark.parametrize("name", ["a", "b", "all"])
def test_a_file_is_written_as_it_was_read(name: str, tmp_path: Path) -> None:
    content = content_of(name)
    result = read(content, tmp_path)
    assert render_result(result) == content
    write_result(result)
    assert json.loads(result.path.read_text()) == content
    assert read_result(result.path) == result


def objects(content: Any, place: str = "") -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield every object in a results file whose keys are ours, with its place."""
    free = {"engine", "chosen", "reasons", "integrity", "unscorable", "unsupported", "flaky"}
    if isinstance(content, dict):
        yield place, content
        for name, value in content.items():
            if name not in free:
                yield from objects(value, f"{place}.{name}")
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from objects(value, f"{place}[{number}]")


@pytest.mark.parametrize("name", ["a", "all"])
def test_keys_of_a_newer_version_survive_wherever_they_are(name: str, tmp_path: Path) -> None:
    content = content_of(name)
    places = [place for place, _ in objects(content)]
    assert len(places) > 25
    for place in places:
        newer = copy.deepcopy(content)
        if place in (".results.intervals", ".results.groups") or place.endswith(".intervals"):
            continue  # their keys are names of scores and groups
        dict(objects(newer))[place] |= UNKNOWN
        newer["protocol"] = rehash(newer["protocol"])
        result = read(newer, tmp_path)
        assert render_result(result) == newer, place
        # A change of what is known here does not undo that.
        changed = render_result(replace(result, flaky={"a#0": ("pass", "fail")}))
        assert changed["flaky"] == {"a#0": ["pass", "fail"]}
        assert dict(objects(changed))[place]["future"] == UNKNOWN["future"]


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """The first version had no coverage, tests' seed, asking, groups, or level of an interval."""
    content = content_of("all")
    for name in (
        "coverage", "tests_seed", "publishable", "not_publishable", "marks", "continued_in",
        "timing", "environment", "model_identity",
    ):  # fmt: skip
        del content[name]
    for name in ("left_out_as_failed", "groups", "best_of_n", "integrity", "truncated", "samples"):
        del content["results"][name]
    for name in ("level", "method", "version"):
        del content["results"]["intervals"]["pass_at_1"][name]
    for name in (*(f.name for f in fields(PromptSettings)), "min_p", "repetition_penalty"):
        del content["config"][name]
    for name in ("version", "asking", "prompt_imports", "environment"):
        del content["protocol"][name]
    content["protocol"] = rehash(content["protocol"])
    result = read(content, tmp_path)
    assert (result.protocol.asking, result.config.asking) == (None, None)
    assert result.pass_at[1].level == 0.95
    assert result.complete
    assert render_result(result) == content


def test_a_result_of_version_2_is_read_and_compared_with_its_own_kind(tmp_path: Path) -> None:
    """The file was written by the last version of assay that had version 2 of the protocol."""
    content = json.loads((GOLDEN / "version_2.json").read_text())
    result = read(content, tmp_path)
    assert render_result(result) == content
    fields_hashed = {name: v for name, v in content["protocol"].items() if name != "hash"}
    assert result.protocol_hash == codec.digest(fields_hashed)
    assert compare(result, result).protocol_differences == ()
    newer = replace(result, protocol=replace(result.protocol, version=VERSION, python="other"))
    assert compare(result, newer).protocol_differences == (("version", 2, VERSION),)


@pytest.mark.parametrize(
    "wrong",
    [
        {"flaky": {"a": 5}},
        {"extraction": [5]},
        {"cross_check": {"engine": 5, "samples": 1, "disagreements": []}},
        {"environment": {"cpus": "two"}},
        {"environment": [5]},
        {"timing": {"cost": "dear"}},
        {"continued_in": [5]},
        {"config": {"temperature": "hot"}},
    ],
)
def test_mistyped_fields_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a results file of assay"):
        read(content_of("all") | wrong, tmp_path)


def names(*kinds: type[Any]) -> set[str]:
    return {field.name for kind in kinds for field in fields(kind)}


def documented() -> dict[str, set[str]]:
    """Return the keys of docs/results.md, each with the names in its row."""
    text = DOCS.read_text()
    section = text.partition("## The result")[2].partition("\n### ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    return {
        key: set(CODE.findall("|".join(row[2:]))) for row in rows for key in CODE.findall(row[1])
    }


def test_the_docs_list_exactly_the_keys_of_the_type() -> None:
    keys = documented()
    outer = {key.partition(".")[0].removesuffix("[]") for key in keys if not key.startswith("pass")}
    assert outer == (names(Result) - {"path", "rest"}) | {"marks"}  # which follow from others
    inner = {key.split(".")[1] for key in keys if key.startswith("results.")}
    assert inner - {"pass_at_1", "intervals"} == names(ScoreResult) - {"pass_at"}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("coverage", names(Coverage) | {"complete"}),
        ("config", names(Decoding, PromptSettings, ConfigResult) - {"decoding", "asking"}),
        ("problems[]", names(ProblemResult)),
        ("model_identity", names(ModelIdentity)),
        ("timing", names(Timing)),
        ("results.left_out_as_failed", names(LeftOutResult) - {"pass_at"} | {"pass_at_k"}),
        ("results.groups.<name>", names(GroupResult) - {"pass_at"} | {"pass_at_k"}),
        ("extraction", names(Dependence) - {"rule"}),
        ("cross_check", names(CrossCheck, Disagreement)),
    ],
)
def test_the_docs_name_the_fields_of_each_part(key: str, expected: set[str]) -> None:
    assert expected <= documented()[key]


def test_the_docs_name_the_fields_of_best_of_n() -> None:
    section = DOCS.read_text().partition("### best_of_n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    keys = {key for row in rows for key in CODE.findall(row)}
    assert keys == names(BestOfN) - {"estimate"} | {"value", "interval"}


def test_a_recorded_protocol_has_the_fields_of_a_protocol() -> None:
    from assay.protocol import Protocol

    assert names(RecordedProtocol) == names(Protocol) | {"hash"}


def test_what_a_newer_version_says_of_a_run_survives(tmp_path: Path) -> None:
    content = {
        "key": "k", "created": "2026-01-01T00:00:00+00:00",
        "model": {**vars_of(MODEL), "shards": 4}, "environments": [{"python": "3", "gpus": 2}],
        "host": "h",
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(content))
    about = read_about(tmp_path)
    assert (about.tests_seed, about.environments[0].python) == ("", "3")
    later = (*about.environments, Environment(python="4"))
    write_about(tmp_path, replace(about, environments=later))
    written = json.loads((tmp_path / "run.json").read_text())
    assert written["model"]["shards"] == 4
    assert written["environments"][0] == {"python": "3", "gpus": 2}
    assert (written["host"], "tests_seed" in written) == ("h", False)


def vars_of(model: ModelIdentity) -> dict[str, Any]:
    return {field.name: getattr(model, field.name) for field in fields(model)}


def test_what_a_newer_version_says_of_a_batch_survives(tmp_path: Path) -> None:
    output = BatchOutput(tmp_path / "out.jsonl", SETTINGS, fresh=False)
    output.close()
    (tmp_path / "out.jsonl").write_text("")
    about = tmp_path / "out.jsonl.run.json"
    answer = {
        "task_id": "a", "text": "t", "tokens_generated": 2, "tok_per_sec": 5.0,
        "inference_ms": 4.0, "used_gpu": False, "finish_reason": "stop", "seed": 1,
        "prompt_tokens": 3, "request_digest": "0",
    }  # fmt: skip
    (tmp_path / "out.jsonl").write_text(json.dumps(answer) + "\n")
    about.write_text(json.dumps(json.loads(about.read_text()) | {"host": "h"}))
    output = BatchOutput(tmp_path / "out.jsonl", SETTINGS, fresh=False)
    output.add_environment(Environment(python="4"))
    output.close()
    written = json.loads(about.read_text())
    assert (written["host"], written["environments"][0]["python"]) == ("h", "4")
