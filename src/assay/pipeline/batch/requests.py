"""What a batch asks for: its lines and its settings as requests, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from assay import codec
from assay.errors import UsageError
from assay.models import EngineOptions
from assay.models.settings import template_variables
from assay.pipeline.asking import check_texts, complete_prompt, resolve_asking
from assay.pipeline.batch.lines import BadLine, BatchPrompt, parse, read_lines
from assay.pipeline.config import Sampling
from assay.pipeline.run import sample_seed
from assay.protocol import TEMPLATE_VARIABLES
from assay.types import Decoding, Message, Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.protocol import Asking

TOLD = 5  # names of fields without a meaning
# Not part of a digest unless they change something: outputs of earlier versions can be continued.
LATER_SETTINGS, NEUTRAL = ("min_p", "repetition_penalty"), Decoding()
# Those that a line may have too.
SETTINGS = [setting.name for setting in fields(Sampling) if setting.name != "n_samples"]


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A model to be asked, and how; a line of a batch may say otherwise for itself."""

    model: str
    sampling: Sampling = field(default_factory=Sampling)
    system: str = ""  # message before every conversation that has none of its own
    stop: tuple[str, ...] = ()  # texts that end a completion, besides the line's
    chat: bool = False  # a prompt is sent as a user's message, not continued
    engine: EngineOptions = field(default_factory=EngineOptions)

    def decoding(self) -> Decoding:
        """The settings in force where a line has none of its own."""
        check_texts(self.system, self.stop)
        return self.sampling.resolve()

    def asking(self) -> Asking:
        """Return what is added to conversations; plain text is refused where that is needed."""
        return resolve_asking("chat", self.engine, self.system, self.stop)


@dataclass(frozen=True, slots=True)
class Survey:
    """What a batch file holds: how many lines, the bad ones, the longest completion asked for."""

    prompts: int
    bad: tuple[BadLine, ...]
    longest: int
    unused: tuple[str, ...]  # names of fields without a meaning


def survey(source: Path, config: RunConfig) -> Survey:
    """Read the file once; what makes all of it doubtful is refused here."""
    numbers: dict[str, int] = {}
    bad: list[BadLine] = []
    unused: set[str] = set()
    longest = 0
    for index, line in read_lines(source):
        found = parse(index, line)
        if (earlier := numbers.setdefault(found.task_id, index + 1)) != index + 1:
            raise UsageError(
                f"{source} line {index + 1}: task_id {found.task_id!r} is that of line {earlier} "
                "too: give each line its own"
            )
        asked = _asked(found, config)
        if isinstance(asked, BadLine):
            bad.append(asked)
        else:
            longest = max(longest, asked[0].decoding.max_tokens)
        if isinstance(found, BatchPrompt):
            unused.update(found.unused[: TOLD - len(unused)])
    if bad and len(bad) == len(numbers) and not any(line.is_object for line in bad):
        raise UsageError(
            f"{source} is no JSONL file (line {numbers[bad[0].task_id]}: {bad[0].error}): give a "
            "file with a JSON object a line"
        )
    return Survey(len(numbers), tuple(bad), longest, tuple(sorted(unused)))


def read_requests(source: Path, config: RunConfig) -> Iterator[Request]:
    """The samples of every good line, those of a line together."""
    for index, line in read_lines(source):
        asked = _asked(parse(index, line), config)
        if not isinstance(asked, BadLine):
            yield from asked


def requests_of(line: BatchPrompt, config: RunConfig) -> list[Request]:
    """The line's samples; ValueError where it asks for what has no meaning.

    A seed of its own is used as it is, so that any sample can be made again alone; several samples
    get theirs from it.
    """
    own = {name: value for name in SETTINGS if (value := getattr(line, name)) is not None}
    decoding = replace(config.sampling, **own).settle()
    prompt = Prompt(line.messages or (), line.prompt or "", line.stop)
    if config.chat and line.prompt is not None:
        prompt = Prompt((Message("user", line.prompt),), stop=line.stop)
    if not prompt.messages and (name := _conversation_setting(config)):
        raise ValueError(f"{name} is for conversations: give messages, or --chat")
    prompt = complete_prompt(prompt, config.asking())
    seeds = [sample_seed(decoding.seed, line.task_id, s) for s in range(config.sampling.n_samples)]
    if line.seed is not None and len(seeds) == 1:
        seeds = [line.seed]
    return [Request(line.task_id, s, prompt, decoding, seed) for s, seed in enumerate(seeds)]


def _conversation_setting(config: RunConfig) -> str:
    """Return the option that has no effect on plain text, if one was given."""
    if config.system:
        return "--system"
    if config.engine.thinking:
        return "--thinking"
    has_variables = bool(template_variables(config.engine))
    return f"--engine-option {TEMPLATE_VARIABLES}" if has_variables else ""


def digest(request: Request) -> str:
    """Of what decides the completion."""
    decoding = codec.to_json(request.decoding)
    for name in LATER_SETTINGS:
        if decoding[name] == getattr(NEUTRAL, name):
            del decoding[name]
    return codec.digest((codec.to_json(request.prompt), decoding, request.seed))[:16]


def _asked(found: BatchPrompt | BadLine, config: RunConfig) -> list[Request] | BadLine:
    if isinstance(found, BadLine):
        return found
    try:
        return requests_of(found, config)
    except ValueError as error:
        return BadLine(found.task_id, str(error), is_object=True)
