"""Show the viewer inside a notebook."""

from __future__ import annotations

from html import escape
from pathlib import Path

from assay.progress import Reporter, Silent
from assay.report.pages.markup import join_key
from assay.report.view.server import ViewServer
from assay.runs import Result

SILENT = Silent()
HEIGHT = 800  # pixels


class View:
    """A running viewer. A notebook shows it inline; elsewhere, open its ``url``."""

    def __init__(self, server: ViewServer, page: str = "", height: int = HEIGHT) -> None:
        self._server, self._page, self._height = server, page, height
        server.start()

    @property
    def url(self) -> str:
        """The address to open in a browser on this machine."""
        return f"{self._server.url}{f'#{self._page}' * bool(self._page)}"

    def close(self) -> None:
        """End the server."""
        self._server.end()

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{escape(self.url)}" title="assay" width="100%" '
            f'height="{self._height}" loading="lazy" referrerpolicy="no-referrer" '
            'style="border:1px solid #8c959f;border-radius:6px"></iframe>'
        )

    def __repr__(self) -> str:
        return f"View({self.url!r})"

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_view(
    results: str | Path | Result = "results",
    *,
    port: int = 0,
    height: int = HEIGHT,
    data_dir: str | Path | None = None,
    reporter: Reporter = SILENT,
) -> View:
    """Serve a results folder on this machine, and return a view that notebooks show inline.

    Given a result, its run is shown first. Port 0 is any free one. ``height`` is in pixels.
    """
    page = ""
    if isinstance(results, Result):
        page, results = join_key("run", results.run), results.path.parent
    server = ViewServer(
        Path(results), port=port, in_notebook=True, reporter=reporter,
        data_dir=Path(data_dir) if data_dir else None,
    )  # fmt: skip
    return View(server, page, height)
