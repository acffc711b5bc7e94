"""Choices that help texts list.

The registries would import every plug-in for each command; ``tests/test_options.py`` compares these
names with them.
"""

from __future__ import annotations


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
