"""Pictures for the docs: pages of real runs, judged from recorded completions.

`make screenshots` keeps them in docs/images.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from tests.browser.conftest import OpenPage
from tests.browser.reports import write_report
from tests.browser.test_report import find_key, open_at
from tests.conftest import write_completions
from tests.skips import SHARED_DATA

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]
RECORDED = Path("completions") / "humaneval_poe_ollama.jsonl.gz"
MODELS = {
    "codellama:7b (ollama)": "codellama-7b",
    "codegemma:7b (ollama)": "codegemma-7b",
    "deepseek-coder:6.7b (ollama)": "deepseek-coder-6.7b",
    "qwen2.5-coder:7b (ollama)": "qwen2.5-coder-7b",
}
LARGEST = 400_000  # bytes of a picture
Take = Callable[["Page", str], Path]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, _environment: None) -> Path:
    """Return the report of four models on all of HumanEval."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the development data folder ../shared/data, or ASSAY_DATA_DIR")
    folder = tmp_path_factory.mktemp("real")
    with gzip.open(SHARED_DATA / RECORDED, "rt") as lines:
        records = [json.loads(line) for line in lines]
    for recorded, name in MODELS.items():
        texts = [(r["task_id"], r["raw"]) for r in records if r["model"] == recorded]
        path = write_completions(folder / f"{name}.jsonl", texts)
        config = ScoreConfig(
            benchmark="humaneval", results_dir=folder / "results", samples_file=str(path),
            model_name=name,
        )  # fmt: skip
        score(config, Silent())
    return write_report(folder / "results", folder / "report.html")


def test_pictures_of_real_runs(open_page: OpenPage, real: Path, take_picture: Take) -> None:
    run = find_key(real, "run/", "deepseek")
    pair = find_key(real, "compare/", "qwen2.5-coder-7b against deepseek")
    views = {
        "report-run": (run, ".page:not([hidden]) .grid-row", 860),
        "report-sample": (f"{run}/HumanEval%2F6/0", ".texts .line", 860),
        "report-compare": (f"{pair}/HumanEval%2F147", ".side-by-side", 1340),
        "report-board": ("board", ".page:not([hidden]) svg.assay-plot", 1080),
    }
    for name, (key, part, height) in views.items():
        size = {"width": 1280, "height": height}
        page = open_at(open_page, real, key, dark=name == "report-sample", viewport=size)
        page.locator(part).first.wait_for()
        page.wait_for_timeout(300)
        picture = take_picture(page, name)
        assert 20_000 < picture.stat().st_size < LARGEST
