"""Draw the terminal output of a real run for the README: `python docs/make_picture.py`.

The script runs the commands below in a temporary folder, or in the folder that is given as its
argument. A finished run in that folder is reused.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).parent / "images" / "eval.svg"
COMMANDS = ("eval mini --name SmolLM2-135M-Instruct", "history")
WIDTH = 124
# The fonts of rich's template come from another site; a picture should need none.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.S)


def run(command: str, folder: Path) -> str:
    """Return what a command prints on standard output, with the home folder shortened."""
    done = subprocess.run(
        [sys.executable, "-m", "assay", *command.split()],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(WIDTH)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.replace(str(Path.home()), "~")


def draw(folder: Path) -> str:
    """Return the picture of all commands as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    for command in COMMANDS:
        console.print(Text(f"$ assay {command}", style="bold green"))
        for line in run(command, folder).splitlines():
            bold = line.lstrip().startswith("pass@")
            console.print(Text(line, style="bold" if bold else ""), soft_wrap=True)
    return console.export_svg(title="assay", theme=MONOKAI, code_format=FORMAT, unique_id="assay")


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary)
        svg = draw(folder)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text("".join(f"{line.rstrip()}\n" for line in svg.splitlines()))


if __name__ == "__main__":
    main()
