"""``assay view``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from assay.cli._groups import switch
from assay.cli._options import FOLDER, address_options, data_dir
from assay.cli._output import Notes, echo, note
from assay.report.view import HOST, PORT, ViewServer, read_token

host, port, token_file = address_options("view", HOST, PORT)


@click.command()
@click.argument("results", type=FOLDER, default="results")
@port
@host
@switch("--open", "Open a browser.", "opens", of="view")
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
