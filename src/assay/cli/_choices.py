"""Choices that help texts list, and the options that say where programs are executed.

The registries would import every plug-in for each command; ``tests/cli/test_options.py`` compares
these names with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.cli._groups import JUDGING, add_options, in_group, option

if TYPE_CHECKING:
    from collections.abc import Callable


def list_choices(names: tuple[str, ...]) -> str:
    """Return names as ``a, b or c``."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


AUTO = "auto"
SANDBOXES = ("process", "docker", "wasm")
TIERS = ("auto", "root", "user", "landlock")
SELECTIONS = ("first", "logprob", "examples", "agreement")
STRATEGIES = ("standard", "cgo", "few-shot", "scot")
JUDGES = ("assay", "evalplus")
ENGINES = ("apr", "apr-cli", "gguf", "hf", "openai", "replay", "vllm")
SANDBOX_HELP = f"Sandbox kind: {list_choices(SANDBOXES)}; or remote:URL of a judge service."
TIER_HELP = f"Isolation tier: {list_choices(TIERS)}. auto uses the strongest available."
MODEL_HELP = (
    "Model file, Hugging Face folder, ENGINE:REFERENCE such as hf:OWNER/NAME, or default for the "
    f"built-in model. Engines: {', '.join(ENGINES)}."
)
python = option(
    "--python",
    group=JUDGING,
    default="",
    metavar="VERSION|PATH",
    help="Python that judges programs: a version such as 3.12, found on PATH, by uv, pyenv or "
    "conda, or a path. Default: 3.11 if it is found, else the Python that runs assay.",
)
# How programs are executed, in every command that does.
sandbox_options = in_group(
    JUDGING,
    option("--sandbox", default="process", help=SANDBOX_HELP),
    option("--sandbox-tier", default="auto", help=TIER_HELP),
    python,
    option(
        "--workers",
        type=int,
        default=0,
        help="Number of programs to judge at a time; 0 uses one per core.",
    ),
)


def add_sandbox_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where programs are executed."""
    return add_options(command, *sandbox_options)
