"""``assay view``."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from assay.cli._options import data_dir, option
from assay.cli._output import echo, note
from assay.progress import Silent
from assay.report.view import HOST, PORT, ViewServer, read_token


class Notes(Silent):
    """Print notes, and no progress."""

    def note(self, text: str) -> None:
        """Print one line on stderr."""
        note(text)


@click.command()
@click.argument(
    "results", type=click.Path(path_type=Path, file_okay=False), default="results",
)  # fmt: skip
@option(
    "--port", type=click.IntRange(0, 65_535), default=PORT, envvar="ASSAY_VIEW_PORT",
    help="Port to listen on; 0 chooses a free one.",
)  # fmt: skip
@option(
    "--host", default=HOST, envvar="ASSAY_VIEW_HOST",
    help="Address to listen on. An address that other machines can reach needs --token-file.",
)  # fmt: skip
@option("--open", "opens", is_flag=True, envvar="ASSAY_VIEW_OPEN", help="Open a browser.")
@option(
    "--token-file", type=click.Path(path_type=Path, dir_okay=False), envvar="ASSAY_VIEW_TOKEN_FILE",
    help="File with the token that clients must send. If the file does not exist, it is created "
    "with a random token.",
)  # fmt: skip
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
