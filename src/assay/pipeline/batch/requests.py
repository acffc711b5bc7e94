"""Read a batch file: parse its lines and turn them into requests, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from assay.data import codec
from assay.data.reading import MOST_LINES, FileReader, open_bounded, parse_json
from assay.errors import UsageError
from assay.models import EngineOptions
from assay.pipeline.config import Sampling
from assay.pipeline.plan import sample_seed
from assay.pipeline.prompting import check_texts, complete_prompt, resolve_prompt_settings
from assay.protocol import TEMPLATE_VARIABLES
from assay.types import Decoding, Message, Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from assay.protocol import PromptSettings

LONGEST = 1 << 24  # bytes of a line: far beyond any context, and a bound for memory
SEEDS = 1 << 31
PROMPTS = FileReader(UsageError, "Give a file with a JSON object per line", 1 << 32)
MOST_NAMED = 5  # unknown fields in a note
# Not part of a digest unless they have an effect, so that older outputs can be resumed.
LATER_SETTINGS, NEUTRAL = ("min_p", "repetition_penalty"), Decoding()
# Settings that a line can have too.
SETTINGS = [setting.name for setting in fields(Sampling) if setting.name != "n_samples"]


@dataclass(frozen=True, slots=True)
class BatchPrompt:
    """One line: plain text or messages, and its own settings. None means the batch's setting."""

    task_id: str
    prompt: str | None = None
    messages: tuple[Message, ...] | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    unused: tuple[str, ...] = ()  # names of unknown fields


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not a prompt, and why."""

    task_id: str
    error: str
    is_object: bool  # whether the line is a JSON object


USED = {f.name for f in fields(BatchPrompt)} - {"unused"}


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the file's lines with their indices, one at a time, without blank lines.

    Only the beginning of a line that is too long is read into memory.
    """
    with PROMPTS.reporting(path), open_bounded(path, PROMPTS.most, unpack=False) as file:
        index = 0
        while line := file.readline(LONGEST + 1):
            rest = line
            while len(rest) > LONGEST and not rest.endswith(b"\n"):
                rest = file.readline(LONGEST + 1)
            if line.strip():
                yield index, line
            index += 1
            if index > MOST_LINES:
                raise ValueError(f"has more than {MOST_LINES:,} lines")


def parse(index: int, line: bytes) -> BatchPrompt | BadLine:
    """Parse a line. Its task id is its index if it has none."""
    task_id, is_object = str(index), False
    try:
        fields = _parse_object(line, first=index == 0)
        is_object = True
        task_id = _task_id(fields.get("task_id"), index)
        return _prompt(fields, task_id)
    except ValueError as error:
        return BadLine(task_id, str(error), is_object)


def _parse_object(line: bytes, *, first: bool) -> dict[str, Any]:
    if len(line) > LONGEST:
        raise ValueError(f"longer than {LONGEST >> 20} MiB")
    try:
        value = parse_json(line.decode("utf-8-sig" if first else "utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start})") from error
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object but {type(value).__name__}")
    return value


def _task_id(value: Any, index: int) -> str:
    if value is None:
        return str(index)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("task_id is neither text nor a whole number")
    return _text(str(value), "task_id")


def _prompt(fields: Mapping[str, object], task_id: str) -> BatchPrompt:
    known = {name: fields[name] for name in USED if fields.get(name) is not None}
    known["task_id"] = task_id
    if isinstance(known.get("stop"), str):
        known["stop"] = [known["stop"]]
    line = codec.from_json(BatchPrompt, {**known, "unused": sorted(fields.keys() - USED)})
    if line.prompt is not None and line.messages is not None:
        raise ValueError("both prompt and messages: give one of them")
    if line.prompt is None and not line.messages:
        raise ValueError("neither prompt nor messages")
    if line.seed is not None and not 0 <= line.seed < SEEDS:
        raise ValueError(f"seed {line.seed}: must be 0 or more and less than 2^31")
    _text(line.prompt or "", "prompt")
    for message in line.messages or ():
        _text(message.content, "messages")
    if "" in [_text(word, "stop") for word in line.stop]:
        raise ValueError("a stop word is empty")
    return line


def _text(text: str, name: str) -> str:
    """Return the same text. Raise ValueError if it cannot be sent to an engine."""
    if "\0" in text:
        raise ValueError(f"{name} contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} contains half a surrogate pair") from error
    return text


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A model and its settings. A line of a batch can override the settings."""

    model: str
    sampling: Sampling = field(default_factory=Sampling)
    system: str = ""  # message before every conversation that has none of its own
    stop: tuple[str, ...] = ()  # texts that end a completion, in addition to the line's
    chat: bool = False  # whether to send a prompt as a user message
    engine: EngineOptions = field(default_factory=EngineOptions)

    def decoding(self) -> Decoding:
        """Return the settings for lines that have none of their own."""
        check_texts(self.system, self.stop)
        return self.sampling.resolve()

    def prompt_settings(self) -> PromptSettings:
        """Return what is added to conversations."""
        return resolve_prompt_settings("chat", self.engine, self.system, self.stop)


@dataclass(frozen=True, slots=True)
class Survey:
    """The content of a batch file: number of lines, bad lines, longest requested completion."""

    prompts: int
    bad: tuple[BadLine, ...]
    longest: int
    unused: tuple[str, ...]  # names of unknown fields
    greedy: int = 0  # lines with temperature 0, which have one sample


def survey(source: Path, config: RunConfig) -> Survey:
    """Read the file once. Raise UsageError if it cannot be a batch file."""
    numbers: dict[str, int] = {}
    bad: list[BadLine] = []
    unused: set[str] = set()
    longest = greedy = 0
    for index, line in read_lines(source):
        parsed = parse(index, line)
        if (earlier := numbers.setdefault(parsed.task_id, index + 1)) != index + 1:
            raise UsageError(
                f"{source} line {index + 1}: has the same task_id {parsed.task_id!r} as line "
                f"{earlier}. Give each line its own."
            )
        requests = _build_requests(parsed, config)
        if isinstance(requests, BadLine):
            bad.append(requests)
        else:
            longest = max(longest, requests[0].decoding.max_tokens)
            greedy += isinstance(parsed, BatchPrompt) and parsed.temperature == 0
        if isinstance(parsed, BatchPrompt):
            unused.update(parsed.unused[: MOST_NAMED - len(unused)])
    if bad and len(bad) == len(numbers) and not any(line.is_object for line in bad):
        raise UsageError(
            f"{source}: not a JSONL file (line {numbers[bad[0].task_id]}: {bad[0].error}). "
            "Give a file with one JSON object per line."
        )
    return Survey(len(numbers), tuple(bad), longest, tuple(sorted(unused)), greedy)


def read_requests(source: Path, config: RunConfig) -> Iterator[Request]:
    """Yield the requests of every valid line, those of one line together."""
    for index, line in read_lines(source):
        requests = _build_requests(parse(index, line), config)
        if not isinstance(requests, BadLine):
            yield from requests


def requests_of(line: BatchPrompt, config: RunConfig) -> list[Request]:
    """Return the line's requests. Raise ValueError if a setting cannot apply.

    The line's seed is used unchanged for one sample, so that any sample can be generated again
    alone. Several samples derive their seeds from it. A line with temperature 0 has one sample.
    """
    own = {name: value for name in SETTINGS if (value := getattr(line, name)) is not None}
    decoding = replace(config.sampling, **own).settle()
    prompt = _prefill(Prompt(line.messages or (), line.prompt or "", line.stop))
    if config.chat and line.prompt is not None:
        prompt = Prompt((Message("user", line.prompt),), stop=line.stop)
    if not prompt.messages and (name := _conversation_setting(config)):
        raise ValueError(f"{name} applies only to conversations: give messages, or --chat")
    prompt = complete_prompt(prompt, config.prompt_settings())
    count = 1 if line.temperature == 0 else config.sampling.n_samples
    seeds = [sample_seed(decoding.seed, line.task_id, s) for s in range(count)]
    if line.seed is not None and len(seeds) == 1:
        seeds = [line.seed]
    return [Request(line.task_id, s, prompt, decoding, seed) for s, seed in enumerate(seeds)]


def _prefill(prompt: Prompt) -> Prompt:
    """Return a conversation that ends with an assistant's message as one with that prefill."""
    if not prompt.messages[1:] or prompt.messages[-1].role != "assistant":
        return prompt
    *before, last = prompt.messages
    return replace(prompt, messages=tuple(before), prefill=last.content)


def _conversation_setting(config: RunConfig) -> str:
    """Return the option that has no effect on plain text, if one was given."""
    if config.system:
        return "--system"
    if config.engine.thinking:
        return "--thinking"
    has_variables = bool(config.engine.template_variables)
    return f"--engine-option {TEMPLATE_VARIABLES}" if has_variables else ""


def digest(request: Request) -> str:
    """Return the digest of everything that determines the completion."""
    decoding = codec.to_json(request.decoding)
    for name in LATER_SETTINGS:
        if decoding[name] == getattr(NEUTRAL, name):
            del decoding[name]
    prompt = codec.to_json(request.prompt)
    if not request.prompt.prefill:
        del prompt["prefill"]
    return codec.digest((prompt, decoding, request.seed))[:16]


def _build_requests(line: BatchPrompt | BadLine, config: RunConfig) -> list[Request] | BadLine:
    if isinstance(line, BadLine):
        return line
    try:
        return requests_of(line, config)
    except ValueError as error:
        return BadLine(line.task_id, str(error), is_object=True)
