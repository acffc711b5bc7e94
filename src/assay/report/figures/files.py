"""Write a plot to a file: SVG, or PNG if a converter is installed."""

from __future__ import annotations

from pathlib import Path

from assay.data.writing import write_whole
from assay.errors import RunError, UsageError, install_hint
from assay.report.plots import Drawing
from assay.report.plots.svg import FONT

SVG, PNG = ".svg", ".png"
ZOOM = 2  # pixels per unit, for screens of high resolution
PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'


def check_plot_file(path: Path) -> None:
    """Raise an error for a file that cannot be written as a plot. Call it before long work."""
    if path.suffix.lower() not in (SVG, PNG):
        raise UsageError(f"{path}: is not a plot file. Give a name that ends with .svg or .png.")
    if path.suffix.lower() == PNG:
        _render(PROBE.format(""))
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent}: is not a folder. Create it, or choose another place.")


def write_plot(path: Path, drawing: Drawing) -> None:
    """Write a plot in the format that the file's name ends with."""
    check_plot_file(path)
    if path.suffix.lower() == SVG:
        write_whole(path, drawing.standalone())
        return
    _check_fonts()
    write_whole(path, _render(drawing.flatten()))


def _render(svg: str) -> bytes:
    try:
        import resvg_py
    except ImportError as error:
        raise UsageError(
            "--plot: PNG files need the package resvg-py. "
            f"Install it with {install_hint('report')}, or write an .svg file."
        ) from error
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM))


def _check_fonts() -> None:
    """Raise RunError if texts would be missing, as on a machine without fonts."""
    word = f'<text y="15" font-family="{FONT}">x</text>'
    if _render(PROBE.format(word)) == _render(PROBE.format("")):
        raise RunError(
            "--plot: this machine has no fonts for PNG files. Install some, such as the package "
            "fonts-dejavu-core, or write an .svg file."
        )
