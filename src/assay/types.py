"""The words of assay: what travels from a benchmark to a score, and nothing else."""

from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["pass", "fail", "invalid"]
PromptForm = Literal["chat", "text"]
PromptImports = Literal["prepended", "none"]  # where programs are judged
Integrity = Literal["separated", "shared"]
SampleKey = tuple[str, int]  # task id, sample number


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use while it is judged."""

    cpu_s: float = 10.0
    call_cpu_s: float = 0.0  # for one case, at least; 0: no limit
    wall_s: float = 30.0  # generous: it only ends sleepers, work is counted in CPU seconds
    memory_mb: int = 512
    processes: int = 64
    output_bytes: int = 1 << 20
    files_mb: int = 64


@dataclass(frozen=True, slots=True)
class Cases:
    """Tests as ``plain`` data, by group: arguments, and what is expected for them."""

    inputs: dict[str, list[Any]]
    expected: dict[str, list[Any]]  # empty in a benchmark: what the reference returns
    digest: str  # of all this
    slowest_s: float = 0.0  # time of the reference's slowest call


@dataclass(frozen=True, slots=True)
class Tests:
    """Code that runs after a program in its namespace or, ``separated``, apart: it can call it."""

    entry_point: str
    code: str
    preamble: str = ""  # stands before the program and before the tests
    integrity: Integrity = "shared"
    cases: Cases | None = None  # compared by what the code's ``matcher()`` gives for a group
    prompt_code: str = ""  # the end of the preamble, if it is taken from the prompt


@dataclass(frozen=True, slots=True)
class Problem:
    """One task of a benchmark; ``reference`` is a whole program."""

    task_id: str
    prompt: str
    reference: str
    tests: Tests
    without_rules: tuple[str, ...] = ()  # extraction rules that its programs are found without


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A named, pinned set of problems."""

    name: str
    version: str
    data_sha256: str
    problems: tuple[Problem, ...]
    limits: Limits = Limits()
    imports: tuple[str, ...] = ()  # what most programs import: worth having loaded
    environment: str = ""  # of Python packages; none: the standard library alone


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is sent: chat messages, or plain text where there are none."""

    messages: tuple[Message, ...] = ()
    text: str = ""
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decoding:
    """How tokens are chosen. Temperature 0 is greedy; top_k 0 means no cut."""

    max_tokens: int = 512
    temperature: float = 0.0
    top_k: int = 1
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Which of a problem's samples something is about."""

    task_id: str
    sample: int

    @property
    def key(self) -> SampleKey:
        return self.task_id, self.sample


@dataclass(frozen=True, slots=True)
class Request(Sample):
    """One completion to be made. ``seed`` is this sample's own."""

    prompt: Prompt
    decoding: Decoding
    seed: int


@dataclass(frozen=True, slots=True)
class Completion(Sample):
    """What came back for one request; ``error`` is set when nothing did."""

    text: str
    finish_reason: Literal["stop", "length", "prompt-too-long", "error"]
    prompt_tokens: int
    tokens_generated: int
    inference_ms: float
    seed: int
    used_gpu: bool
    logprob: float | None = None  # mean of the generated tokens', where the engine tells
    error: str | None = None
    retries: int = 0  # requests sent again until it came


@dataclass(frozen=True, slots=True)
class Program:
    """Code taken out of a completion, and the rule that found it ("none": no code)."""

    code: str
    rule: str


@dataclass(frozen=True, slots=True)
class Job(Sample):
    """One program to be judged."""

    program: Program
    tests: Tests
    limits: Limits = Limits()
    imports: tuple[str, ...] = ()
    environment: str = ""
    seed: str = ""  # of inputs that tests draw; none: a secret of the sandbox


@dataclass(frozen=True, slots=True)
class Verdict(Sample):
    """How one program did. ``invalid`` is the harness's failure, never the model's."""

    status: Status
    reason: str
    detail: str = ""
    failing_test: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_mb: float = 0.0
    integrity: Literal[Integrity, "not-run"] = "not-run"  # that: no program was judged
    rule: str = ""
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of cases: right ones, all


@dataclass(frozen=True, slots=True)
class Estimate:
    """pass@k over ``problems`` problems, with its interval."""

    k: int
    value: float
    low: float
    high: float
    problems: int
    level: float = 0.95  # of the interval
    method: str = "wilson-clustered"  # by which it was computed

    @property
    def interval(self) -> tuple[float, float]:
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What makes two models the same one."""

    name: str
    engine: str
    weights_sha256: str
    prompt_form: PromptForm
    tokenizer_sha256: str = ""
    template_sha256: str = ""
    variant: str = ""  # of the weights' use: number format, adapter
    path: str = ""  # where it was found; no part of the identity


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a sandbox promises on this machine, and what it does not."""

    kind: str
    tier: str
    python: str
    guarantees: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    files: bool = True  # whether programs have a folder to write into
    refused: tuple[str, ...] = ()  # stronger tiers that were tried first, and why they do not work
    image: str = ""  # digest of what programs run in, where that is not this machine's own Python
