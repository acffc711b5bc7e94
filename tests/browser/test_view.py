"""``assay view`` in a real browser, while a real model is evaluated."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import assay
from assay.pipeline import ScoreConfig, score
from assay.progress import Silent
from assay.report.view import ViewServer
from tests.browser.conftest import OpenPage
from tests.conftest import ASSAY, write_completions
from tests.report.view.conftest import results, scored
from tests.report.view.test_live import append, unfinish

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["results", "scored"]  # fixtures
pytestmark = pytest.mark.browser
SOON_MS = 15_000
RUN_MS = 400_000
TOKEN = "a-token-of-some-length"


@contextlib.contextmanager
def served(folder: Path, **options: str) -> Iterator[ViewServer]:
    with ViewServer(folder, port=0, **options) as server:  # type: ignore[arg-type]
        yield server


@contextlib.contextmanager
def evaluating(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Evaluate the default model on some problems, as a user does in another terminal."""
    process = subprocess.Popen(
        [*ASSAY, "eval", "mini", "--problems", "6", "--max-tokens", "48", "--parallel", "1",
         "--results-dir", str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.model
@pytest.mark.slow
def test_pages_follow_a_real_run(open_page: OpenPage, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    with served(folder) as server, evaluating(folder) as process:
        page = open_page(server.url)
        assert page.locator("#overview").get_by_text("There are no runs").is_visible()
        link = page.locator("#overview table.runs a")
        link.wait_for(timeout=RUN_MS)  # without a reload
        page.locator("#overview").get_by_text("of 6 judged").wait_for(timeout=RUN_MS)
        link.click()
        counts = [judged_so_far(page)]
        while process.poll() is None and len(counts) < 3:
            page.wait_for_timeout(300)
            if (now := judged_so_far(page)) != counts[-1]:
                counts.append(now)
        assert counts == sorted(counts)
        assert len(counts) >= 2, counts
        page.locator(".page:not([hidden]) .hero").get_by_text("pass@1").wait_for(timeout=RUN_MS)
        assert process.wait(60) == 0
        page.locator(".grid-row").nth(6).wait_for(timeout=SOON_MS)
        assert page.evaluate("performance.getEntriesByType('navigation').length") == 1


def judged_so_far(page: Page) -> int:
    """Return the number of judged samples that the run's page shows; 6 at the end."""
    page.locator(".page:not([hidden]) .hero").wait_for(timeout=SOON_MS)
    found = re.search(r"of ([\d,]+) samples? judged", page.locator("main").inner_text())
    return int(found[1]) if found else 6


def test_a_table_stays_where_it_is_when_samples_arrive(
    open_page: OpenPage, results: Path, scored: assay.Result
) -> None:
    verdicts, rest = unfinish(results, scored.run, 3)
    with served(results) as server:
        page = open_page(f"{server.url}#run/{scored.run}")
        body = page.locator(".grid-body")
        page.locator(".grid-row").nth(10).wait_for(timeout=SOON_MS)
        body.evaluate("element => { element.scrollTop = 25; element.dataset.here = 'still'; }")
        page.locator("details.protocol > summary").click()
        page.get_by_text("of 3 samples judged").wait_for(timeout=SOON_MS)
        append(verdicts, rest[:4])
        page.get_by_text("of 7 samples judged").wait_for(timeout=SOON_MS)
        page.locator(".toggle", has_text="not-judged 13").wait_for(timeout=SOON_MS)
        here = body.evaluate("element => [element.scrollTop, element.dataset.here]")
        assert here == [25, "still"]
        assert page.locator("details.protocol").get_attribute("open") is not None
        page.locator("footer", has_text="up to date").wait_for(timeout=SOON_MS)


def test_runs_are_searched_and_the_search_survives_a_change(
    open_page: OpenPage, results: Path, scored: assay.Result,
    check_accessibility: Callable[[Page], None],
) -> None:  # fmt: skip
    with served(results) as server:
        page = open_page(server.url)
        field = page.get_by_label("Search runs")
        page.keyboard.press("/")
        field.press_sequentially("nothing like it")
        assert page.locator("table.runs tbody tr:visible").count() == 0
        assert page.get_by_text("0 of 1 runs").is_visible()
        field.fill("ANSWERS mini")
        assert page.locator("table.runs tbody tr:visible").count() == 1
        shutil.copytree(results / scored.run, results / "mini_20300101_000000")
        page.get_by_text("2 of 2 runs").wait_for(timeout=SOON_MS)
        page.keyboard.type(" 2030")
        assert page.evaluate("document.activeElement.value") == "ANSWERS mini 2030"
        assert "q=ANSWERS" in page.url
        check_accessibility(page)


def test_the_end_of_the_server_is_said(open_page: OpenPage, results: Path) -> None:
    server = ViewServer(results, port=0)
    server.start()
    page = open_page(server.url, allowed=("ERR_", "Failed to load resource"))
    page.locator("footer", has_text="up to date").wait_for(timeout=SOON_MS)
    server.end()
    page.locator("footer", has_text="does not answer").wait_for(timeout=SOON_MS)


def test_a_token_leaves_the_address(open_page: OpenPage, results: Path) -> None:
    with served(results, token=TOKEN) as server:
        page = open_page(server.url)
        page.locator("table.runs a").wait_for(timeout=SOON_MS)
        assert TOKEN not in page.url
        page.locator("table.runs a").click()
        page.locator(".page:not([hidden]) .hero").wait_for(timeout=SOON_MS)


RECORDED = Path("completions") / "humaneval_poe_ollama.jsonl.gz"
MODELS = ("codegemma:7b (ollama)", "qwen2.5-coder:7b (ollama)", "deepseek-coder:6.7b (ollama)")


def score_recorded(path: Path, model: str, folder: Path) -> assay.Result:
    """Judge a model's recorded answers to HumanEval."""
    with gzip.open(path, "rt") as file:
        answers = [one for one in map(json.loads, file) if one["model"] == model]
    samples = write_completions(
        folder / "samples.jsonl", [(one["task_id"], one["raw"]) for one in answers]
    )
    name = model.removesuffix(" (ollama)")
    config = ScoreConfig(
        "humaneval", folder / "results", samples_file=str(samples), model_name=name
    )
    return score(config, Silent())


@pytest.mark.slow
def test_a_folder_of_real_runs(
    open_page: OpenPage, shared_data: Path, tmp_path: Path,
    take_picture: Callable[[Page, str], Path],
) -> None:  # fmt: skip
    if not (shared_data / RECORDED).is_file():
        pytest.skip(f"{shared_data} has no {RECORDED}")
    found = [score_recorded(shared_data / RECORDED, model, tmp_path) for model in MODELS]
    last = found[-1]
    shutil.copy(last.path, tmp_path / "kept.json")
    verdicts, rest = unfinish(last.path.parent, last.run, 87)
    with served(last.path.parent) as server:
        page = open_page(server.url, viewport={"width": 1200, "height": 500})
        page.get_by_text("87 of 164 judged").wait_for(timeout=SOON_MS)
        take_picture(page, "view")
        append(verdicts, rest)
        page.get_by_text("164 of 164 judged").wait_for(timeout=SOON_MS)
        shutil.copy(tmp_path / "kept.json", last.path)
        shown = f"{100 * last.pass_at[1].value:.1f}"
        page.locator("table.runs").get_by_text(shown, exact=True).wait_for(timeout=SOON_MS)


@contextlib.contextmanager
def notebook(content: str) -> Iterator[str]:
    """Serve a page as a notebook on another port does."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f'<!doctype html><link rel="icon" href="data:,">{content}'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def test_a_notebook_shows_a_run_inline(
    open_page: OpenPage, results: Path, scored: assay.Result
) -> None:
    result = assay.load_run(results / f"{scored.run}.json")
    with assay.view(result) as view, notebook(view._repr_html_()) as url:
        page = open_page(url, allowed=(f"outgoing request: {view.url.partition('#')[0]}",))
        frame = page.frame_locator("iframe")
        frame.locator(".page:not([hidden]) .hero").get_by_text("pass@1").wait_for(timeout=SOON_MS)
        frame.locator(".grid-row").nth(3).wait_for(timeout=SOON_MS)


def test_another_page_cannot_frame_the_viewer(open_page: OpenPage, results: Path) -> None:
    with served(results) as server, notebook(f'<iframe src="{server.url}"></iframe>') as url:
        page = open_page(url, allowed=("outgoing request", "frame-ancestors", "ERR_BLOCKED"))
        page.wait_for_timeout(500)
        assert page.frame_locator("iframe").locator("#overview").count() == 0
