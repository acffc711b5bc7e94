"""``assay view``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from assay.cli._options import data_dir, option, server_options
from assay.cli._output import echo, note
from assay.data.guard import read_token
from assay.progress import Silent
from assay.report.view import PORT, ViewServer

host, port, token_file = server_options("view", PORT)


class Notes(Silent):
    """Print notes, and no progress."""

    def note(self, text: str) -> None:
        """Print one line on stderr."""
        note(text)


@click.command()
@click.argument(
    "results", type=click.Path(path_type=Path, file_okay=False), default="results",
)  # fmt: skip
@port
@host
@option("--open", "opens", is_flag=True, envvar="ASSAY_VIEW_OPEN", help="Open a browser.")
@token_file
@data_dir
def view(
    results: Path, port: int, host: str, opens: bool, token_file: Path | None, data_dir: Path | None
) -> None:
    """Serve the report pages of a results folder, updated while runs are in progress.

    RESULTS is a results folder, `results` by default. The server only reads it. Press Ctrl-C to
    stop.

    \b
    Examples:
      assay view --open
      assay view overnight --port 0
      assay view --host 0.0.0.0 --token-file ~/.config/assay/view.token
    """
    token = read_token(token_file) if token_file else ""
    server = ViewServer(
        results, host=host, port=port, token=token, reporter=Notes(), data_dir=data_dir
    )
    echo(f"{results}: {server.url}  (press Ctrl-C to stop)")
    if opens:
        webbrowser.open(server.url)
    try:
        server.serve()
    except KeyboardInterrupt:
        note("Stopped.")
