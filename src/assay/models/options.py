"""Options that say how a model runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.data.arguments import check_fields, show
from assay.errors import UsageError
from assay.models.settings import check_switches, check_thinking
from assay.types import PromptForm

if TYPE_CHECKING:
    pass


BatchMode = Literal["auto", "on", "off"]


Device = Literal["auto", "cpu", "cuda"]
# Number formats unless the user names one. They are part of the identity, so engines do not choose.
DTYPES = {"cpu": "float32", "cuda": "bfloat16"}


LONGEST_TIMEOUT_S = 86_400


MOST_THREADS = 512  # as llama.cpp allows


# What engines that run on this machine have in common.
LOCAL_OPTIONS = frozenset({
    "batch_mode", "parallel", "threads", "device", "prompt_form", "logprobs", "thinking",
    "engine_options",
})  # fmt: skip


COUNTS = ("parallel", "requests_per_minute", "tokens_per_minute", "price_in", "price_out")


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Set how a model runs. An engine lists what it accepts; empty means its own choice."""

    batch_mode: BatchMode = "auto"  # off: one prompt at a time; on: an error if it cannot batch
    parallel: int = 0  # batch size; 0: automatic
    threads: int = 0  # that compute on a CPU; 0: one per usable core
    device: Device = "auto"
    devices: str = ""  # numbers of GPUs, or cpu: one process each; vLLM splits the model instead
    dtype: str = ""  # float32, bfloat16, float16
    adapter: str = ""  # LoRA weights, a folder
    prompt_form: PromptForm | Literal["auto"] = "auto"  # auto: chat if the model has a template
    base_url: str = ""  # of a server
    logprobs: bool = False  # report each completion's mean log-probability
    timeout: float = 300.0  # read timeout in seconds
    answer_timeout: float = 0.0  # seconds for a server's answer; 0: by timeout, max_tokens
    requests_per_minute: int = 0  # sent to a server, evenly spread; 0: no limit
    tokens_per_minute: int = 0
    price_in: float = 0.0  # of a million prompt tokens
    price_out: float = 0.0  # of a million generated ones
    name: str = ""  # of the model in results; empty: one that identifies it
    longest: int = 0  # max_tokens of the longest request; 0: as the first request's
    thinking: str = ""  # on, off, or the largest number of tokens; empty: the model's own
    revision: str = ""  # branch, tag or commit of a hub id
    engine_options: tuple[str, ...] = ()  # key=value: settings that only this engine has

    def __post_init__(self) -> None:
        check_fields(self, has_ranges=True)
        if not 0 < self.timeout <= LONGEST_TIMEOUT_S:
            raise UsageError(
                f"--timeout {show(self.timeout)}: must be above 0 and at most "
                f"{LONGEST_TIMEOUT_S} seconds."
            )
        if not 0 <= self.answer_timeout <= LONGEST_TIMEOUT_S:
            raise UsageError(
                f"--answer-timeout {show(self.answer_timeout)}: must be 0 to "
                f"{LONGEST_TIMEOUT_S} seconds."
            )
        for name in COUNTS:
            if not 0 <= getattr(self, name) < float("inf"):
                flag = name.replace("_", "-")
                raise UsageError(f"--{flag} {show(getattr(self, name))}: must be 0 or more.")
        if not 0 <= self.threads <= MOST_THREADS:
            raise UsageError(
                f"--threads {show(self.threads)}: must be 0 (automatic) to {MOST_THREADS}."
            )
        mode, parallel = self.batch_mode, self.parallel
        if (mode == "off" and parallel > 1) or (mode == "on" and parallel == 1):
            raise UsageError(f"--batch-mode {mode}: contradicts --parallel {parallel}. Drop one.")
        check_thinking(self.thinking)
        check_switches(self)


def prompt_form(options: EngineOptions, template: str, model: str) -> PromptForm:
    """Return the user's choice, or chat for a model that has a template."""
    if options.prompt_form == "auto":
        return "chat" if template else "text"
    if options.prompt_form == "chat" and not template:
        raise UsageError(f"{model}: has no chat template. Use --prompt-form text.")
    return options.prompt_form
