"""Runs with odd numbers and odd names: browsers can read their data, and their pages exist."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

from assay.report.pages import ReportSite, open_sources
from assay.report.pages.document import encode
from assay.report.pages.markup import join_key
from assay.report.pages.site import build_report
from assay.runs import list_runs
from tests.report.run_folders import toy_samples, write_run

BLOCK = re.compile(r'data-block="([^"]*)">([^<]*)<')


def refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON for a browser")


def read_blocks(document: str) -> dict[str, object]:
    return {
        name: json.loads(gzip.decompress(base64.b64decode(data)), parse_constant=refuse)
        for name, data in BLOCK.findall(document)
    }


def test_numbers_that_are_not_finite_are_unknown(tmp_path: Path) -> None:
    values = (float("nan"), float("inf"), float("-inf"), -0.25)
    samples = [
        (replace(completion, logprob=value), program, verdict)
        for (completion, program, verdict), value in zip(toy_samples(), values, strict=False)
    ]
    result = write_run(tmp_path, samples)
    assert result is not None
    path = result.folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "time_limits": {"toy/0": 1e400}}))
    blocks = read_blocks(build_report([], results_dir=tmp_path))
    texts = blocks[f"run/{result.run}/texts/0"]
    assert isinstance(texts, dict)
    found = [task["samples"][0]["logprob"] for task in texts.values()]
    assert found == [None, None, None, -0.25]


def test_data_is_encoded_as_it_is() -> None:
    content = {"a": [1, 2.5, None, True, "\ud800"], "b": {"c": (float("nan"), 1)}}
    expected = {"a": [1, 2.5, None, True, "\ud800"], "b": {"c": [None, 1]}}
    assert json.loads(encode(content)) == expected
    assert b"NaN" not in encode(content)


def test_runs_in_folders_with_odd_names_have_pages(tmp_path: Path) -> None:
    names = ("tab\there", "bidi\u202e", "quo\"te'<b>", "b\udcff", "b\udcfe", "x" * 255, "a (copy)")
    for name in names:
        write_run(tmp_path, toy_samples(), model=f"in {name!r}", finished=False)
        (folder,) = (path for path in tmp_path.glob("toy_*") if path.is_dir())
        folder.rename(tmp_path / name)
    site = ReportSite(open_sources([], tmp_path))
    keys = {run.key for run in site.sources.runs}
    assert len(keys) == len(list_runs(tmp_path)) == len(names)
    for key in keys:
        section = site.section(join_key("run", key))
        assert f'data-run="{key}"' in section.html
        assert section.blocks == (join_key("run", key),)
        assert site.block(section.blocks[0])["counts"] == [1] * 6
    build_report([], results_dir=tmp_path).encode()


def test_a_link_among_results_is_not_followed(tmp_path: Path) -> None:
    write_run(tmp_path / "results", toy_samples())
    elsewhere = tmp_path / "check.json"
    elsewhere.write_text('{"model": "secret", "sound": true, "stages": []}')
    (tmp_path / "results" / "check.json").symlink_to(elsewhere)
    assert open_sources([], tmp_path / "results").measurements == ()
    assert len(open_sources([str(elsewhere)], tmp_path / "results").measurements) == 1
