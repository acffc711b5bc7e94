"""Options that say how a model runs, and the settings that users name in them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from assay.data.arguments import check_fields, show
from assay.errors import UsageError
from assay.formats.marks import thought_tags
from assay.protocol import TEMPLATE_VARIABLES
from assay.types import PromptForm

if TYPE_CHECKING:
    from collections.abc import Mapping


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
ON, OFF = "on", "off"
# Templates use one of these names for the switch.
SWITCHES = ("enable_thinking", "thinking")
FLAGS = {"engine_options": "--engine-option"}  # flags whose name is not that of the field
BUDGET = re.compile("[1-9][0-9]{0,8}")  # tokens, in one spelling


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A name, and a value as the JSON text that is passed on."""

    name: str
    json: str

    @property
    def value(self) -> Any:
        return json.loads(self.json)


def by_name(values: Iterable[NamedValue]) -> dict[str, Any]:
    """Return the values by name, for a library or a JSON file."""
    return {one.name: one.value for one in values}


BatchMode = Literal["auto", "on", "off"]


Device = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Settings of how a model runs. An engine lists what it accepts; empty means its choice."""

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
        if self.thinking not in ("", ON, OFF) and not BUDGET.fullmatch(self.thinking):
            raise UsageError(
                f"--thinking {self.thinking!r}: is not valid. Use on, off or a number of tokens."
            )
        chosen = {variable.name for variable in self._chosen_variables}
        if self.thinking and (switch := next((one for one in SWITCHES if one in chosen), "")):
            raise UsageError(
                f"--engine-option {TEMPLATE_VARIABLES}: {switch} contradicts --thinking "
                f"{self.thinking}. Drop one."
            )

    @property
    def batch_size(self) -> int:
        """Return the number of sequences at a time; 0 if the engine chooses."""
        return 1 if self.batch_mode == "off" else self.parallel

    @property
    def thinking_budget(self) -> int | None:
        """Return the largest number of tokens of a thought, or None without a limit."""
        return int(self.thinking) if self.thinking.isdigit() else None

    @property
    def own_options(self) -> tuple[NamedValue, ...]:
        """Return the engine's own options, without those of its chat template."""
        parsed = parse_engine_options(self.engine_options)
        return tuple(option for option in parsed if option.name != TEMPLATE_VARIABLES)

    @property
    def template_variables(self) -> tuple[NamedValue, ...]:
        """Return the variables of a chat template besides the messages."""
        switch = thinking_variables(self.thinking != OFF) if self.thinking else ()
        return (*switch, *self._chosen_variables)

    @property
    def _chosen_variables(self) -> tuple[NamedValue, ...]:
        parsed = by_name(parse_engine_options(self.engine_options)).get(TEMPLATE_VARIABLES, {})
        return tuple(NamedValue(name, _text(value)) for name, value in parsed.items())


def prompt_form(options: EngineOptions, template: str, model: str) -> PromptForm:
    """Return the user's choice, or chat for a model that has a template."""
    if options.prompt_form == "auto":
        return "chat" if template else "text"
    if options.prompt_form == "chat" and not template:
        raise UsageError(f"{model}: has no chat template. Use --prompt-form text.")
    return options.prompt_form


def parse_engine_options(texts: Iterable[str]) -> tuple[NamedValue, ...]:
    """Parse ``key=value`` texts. Return the values by name: JSON, or otherwise text."""
    values: dict[str, NamedValue] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--engine-option {text}: is not key=value. Give a name and a value.")
        if (name := name.strip()) in values:
            raise UsageError(f"--engine-option {name}: is given twice. Drop one.")
        values[name] = _parse_value(name, value)
    if TEMPLATE_VARIABLES in values and not isinstance(values[TEMPLATE_VARIABLES].value, dict):
        raise UsageError(
            f"--engine-option {TEMPLATE_VARIABLES}: is not a JSON object. Give one such as "
            f'{TEMPLATE_VARIABLES}=\'{{"reasoning_effort": "low"}}\'.'
        )
    return tuple(values.values())


def canonical_engine_options(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the options as they are recorded: sorted, with values as JSON."""
    options = sorted(parse_engine_options(texts), key=lambda option: option.name)
    return tuple(f"{option.name}={_canonical(option.value)}" for option in options)


def thinking_variables(on: bool) -> tuple[NamedValue, ...]:
    """Return the template variables that turn thinking on or off."""
    return tuple(NamedValue(name, json.dumps(on)) for name in SWITCHES)


def list_given(options: EngineOptions) -> list[str]:
    """Return the names of the options that do not have their default."""
    defaults = type(options)()
    names = [field.name for field in dataclasses.fields(options)]
    return [name for name in names if getattr(options, name) != getattr(defaults, name)]


def flags_of(names: Iterable[str]) -> str:
    """Return options as users write them."""
    return ", ".join(FLAGS.get(name, "--" + name.replace("_", "-")) for name in names)


def check_chat_settings(options: EngineOptions, form: str, template: str, model: str) -> None:
    """Raise UsageError if the model cannot think as the options demand."""
    if form != "chat" and options.template_variables:
        setting = f"--thinking {options.thinking}" if options.thinking else TEMPLATE_VARIABLES
        raise UsageError(
            f"{setting}: {model} is prompted with plain text, without a chat template. Use "
            "--prompt-form chat, or drop it."
        )
    if options.thinking_budget is not None and thought_tags(template) is None:
        raise UsageError(
            f"--thinking {options.thinking}: the chat template of {model} does not mark reasoning, "
            "so its tokens cannot be counted. Use --thinking on or off."
        )
    # As far as the text shows. llama.cpp also switches templates that only mark thoughts. The
    # loaded engine renders a template both ways to be sure.
    may_switch = any(name in template for name in SWITCHES) or thought_tags(template) is not None
    if options.thinking and template and not may_switch:
        raise UsageError(
            f"--thinking {options.thinking}: the chat template of {model} has no switch for "
            f"thinking ({' or '.join(SWITCHES)}). Drop --thinking."
        )


def refuse_reserved(options: Iterable[NamedValue], flags: Mapping[str, str]) -> None:
    """Raise UsageError for an engine's option that another option of assay sets."""
    for name in (option.name for option in options if option.name in flags):
        instead = f"Use {flags[name]}." if flags[name] else "Drop it."
        raise UsageError(f"--engine-option {name}: is set by other options. {instead}")


def _parse_value(name: str, text: str) -> NamedValue:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    try:
        _canonical(value)
        text.encode()
    except (ValueError, UnicodeEncodeError) as error:
        raise UsageError(
            f"--engine-option {name}: is not valid JSON ({error}). Give another."
        ) from error
    return NamedValue(name, _text(value))


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
