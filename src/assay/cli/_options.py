"""Options that several commands share; each has an environment variable ``ASSAY_*``."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from assay.cli._groups import (
    ACCESS,
    CLUSTER,
    DATA,
    GPU_CHECKS,
    JUDGING,
    MEASUREMENT,
    OUTPUT,
    Decorator,
    add_options,
    option,
    switch,
)
from assay.cli._progress import ProgressDisplay
from assay.pipeline.site import THIS_MACHINE, Site
from assay.types import PromptImports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from assay.report.plots import Drawing

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
ANY_PATH = click.Path(path_type=Path)


def list_choices(names: tuple[str, ...]) -> str:
    """Return names as ``a, b or c``."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


# Choices that help texts list. The registries would import every plug-in for each command;
# ``tests/cli/test_options.py`` compares these names with them.
AUTO = "auto"
SANDBOXES = ("process", "docker", "wasm")
TIERS = ("auto", "root", "user", "landlock")
SELECTIONS = ("first", "logprob", "examples", "agreement")
STRATEGIES = ("standard", "cgo", "few-shot", "scot")
JUDGES = ("assay", "evalplus")
ENGINES = ("apr", "apr-cli", "gguf", "hf", "openai", "replay", "vllm")
TIER_HELP = f"Isolation tier: {list_choices(TIERS)}. auto uses the strongest available."

results_dir = option(
    "--results-dir", "Folder for runs and results files.", group=OUTPUT, type=FOLDER,
    default="results",
)  # fmt: skip
data_dir = option(
    "--data", "Folder with benchmark data files, searched before the cache.", "data_dir",
    group=DATA, type=click.Path(path_type=Path, file_okay=False, exists=True),
    envvar="ASSAY_DATA_DIR",
)  # fmt: skip
resume = option(
    "--resume/--fresh", "Resume the newest run with the same settings, or start a new run.",
    "resume", group=OUTPUT, default=True,
)  # fmt: skip
text_limit = option(
    "--bytes", "Use only the first lines of the text, up to this many bytes; 0 uses all.", "limit",
    group=MEASUREMENT, default=0,
)  # fmt: skip
parity_gate = option(
    "--parity-gate/--no-parity-gate",
    "Whether to compare GPU and CPU logits first, once per model and device.", "parity_gate",
    group=GPU_CHECKS, default=True,
)  # fmt: skip
no_cache = switch("--no-cache", "Ignore cached verdicts and completions.", group=JUDGING)
as_json = switch("--json", "Print the output as JSON.", "as_json", group=OUTPUT)
prompt_imports = option(
    "--prompt-imports",
    "prepended: put the prompt's imports and helpers before every program; none: run "
    "programs without them, as EvalPlus does.",
    group=JUDGING, type=click.Choice(get_args(PromptImports)), default="prepended",
)  # fmt: skip


class NumberRange(click.FloatRange):
    """A number in a range. FloatRange alone lets NaN pass, which is in every range and in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


margin = option(
    "--margin", "Largest difference in points that counts as equivalent.", group=MEASUREMENT,
    type=NumberRange(min=0, max=100, min_open=True), default=2.0,
)  # fmt: skip
sandbox = option(
    "--sandbox", f"Sandbox kind: {list_choices(SANDBOXES)}; or remote:URL of a judge service.",
    group=JUDGING, default="process",
)  # fmt: skip
sandbox_tier = option("--sandbox-tier", TIER_HELP, group=JUDGING, default=AUTO)
python = option(
    "--python",
    "Python that judges programs: a version such as 3.12, found on PATH, by uv, pyenv or "
    "conda, or a path. Default: 3.11 if it is found, else the Python that runs assay.",
    group=JUDGING, default="", metavar="VERSION|PATH",
)  # fmt: skip
workers = option(
    "--workers", "Number of programs to judge at a time; 0 uses one per core.", group=JUDGING,
    default=0,
)  # fmt: skip
# How programs are executed, in every command that does.
sandbox_options = add_options(sandbox, sandbox_tier, python, workers)


def device_option(default: str, text: str) -> Decorator:
    """Return the option for the device of a model."""
    return option("--device", text, type=click.Choice(["auto", "cpu", "cuda"]), default=default)


def address_options(command: str, host: str, port: int) -> tuple[Decorator, Decorator, Decorator]:
    """Return the options of a server: its address, its port, and who may send requests."""
    return (
        option(
            "--host",
            "Address to listen on. An address that other machines can reach needs --token-file.",
            group=ACCESS, of=command, default=host,
        ),
        option(
            "--port", "Port to listen on; 0 chooses a free one.", group=ACCESS, of=command,
            type=click.IntRange(0, 65_535), default=port,
        ),
        option(
            "--token-file",
            "File with the token that clients must send. If the file does not exist, it is created "
            "with a random token.",
            group=ACCESS, of=command, type=FILE,
        ),
    )  # fmt: skip


def plot_option(content: str) -> Decorator:
    """Return the option of a command whose plot has this content."""
    return option(
        "--plot", f"SVG or PNG file to write with {content}. PNG needs the report extra.",
        "plot_path", group=OUTPUT, callback=_check_plot, type=FILE,
    )  # fmt: skip


def _check_plot(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    if value is not None:
        from assay.report.figures import check_plot_file  # costs time, and is rarely needed

        check_plot_file(value)
    return value


def save_plot(path: Path | None, draw: Callable[[], Drawing]) -> None:
    """Draw and write a plot if the user wants one."""
    if path is not None:
        from assay.report.figures import write_plot

        write_plot(path, draw())


LOCAL = "local"  # what --ray means without an address
ray = option(
    "--ray",
    "Generate and judge on the nodes of a Ray cluster: HOST:PORT, or auto for the running "
    "cluster of this machine. Without an address, start a cluster on this machine. Default: no "
    "cluster.",
    group=CLUSTER, is_flag=False, flag_value=LOCAL, default="", metavar="[ADDRESS]",
)  # fmt: skip


@contextlib.contextmanager
def open_site(title: str, address: str, *, quiet: bool) -> Iterator[tuple[ProgressDisplay, Site]]:
    """Yield a display, and where the work is done: a cluster if ``--ray`` has an address."""
    with ProgressDisplay(title, quiet=quiet) as display:
        if not address:
            yield display, THIS_MACHINE
            return
        from assay.cluster import open_cluster

        with open_cluster(address, display.note) as site:
            yield display, site
