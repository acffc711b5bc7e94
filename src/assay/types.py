"""The words of assay: what travels from a benchmark to a score, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Status = Literal["pass", "fail", "invalid"]
PromptForm = Literal["chat", "text", "infill"]  # infill: prefix and suffix
PromptImports = Literal["prepended", "none"]  # where programs are judged
Integrity = Literal["separated", "shared"]
TextStyle = Literal["stdin", "calls"]
SampleKey = tuple[str, int]  # task id, sample number
ADAPTED = "__adapted__"  # the function that an adapter defines


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources that one program may use while it is judged."""

    cpu_s: float = 10.0
    call_cpu_s: float = 0.0  # lower bound of the limit for one case; 0: no limit
    wall_s: float = 30.0  # generous: it only stops sleeping programs; CPU time limits work
    memory_mb: int = 512
    processes: int = 64
    output_bytes: int = 1 << 20
    files_mb: int = 64


@dataclass(frozen=True, slots=True)
class TimeRule:
    """A CPU limit of ``factor`` times the reference's time, from ``least_s`` to the fixed limit."""

    least_s: float
    factor: float
    exempt: tuple[str, ...] = ()  # tasks with the fixed limit, since right programs may be slow


@dataclass(frozen=True, slots=True)
class Cases:
    """Tests as ``plain`` data, by group: arguments and expected values."""

    inputs: dict[str, list[Any]]
    expected: dict[str, list[Any]]  # empty in a benchmark that uses the reference's outputs
    digest: str  # of inputs and expected values
    slowest_s: float = 0.0  # time of the reference's slowest call


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is not a program. ``kind`` names how it is found and checked."""

    kind: str
    function: str = ""  # of the benchmark's code, which the answer is about


@dataclass(frozen=True, slots=True)
class TextCases:
    """Tests as pairs of texts: an input, and the expected output.

    A case is a run of the program with the input as its standard input (``stdin``), or a call with
    arguments in JSON, one per line (``calls``). Cases can be large, so they stay packed until a
    sandbox needs them (``assay.data.text_cases``).
    """

    packed: tuple[bytes, ...]
    digest: str
    style: TextStyle = "stdin"
    comparison: str = "livecodebench"  # of outputs, for ``stdin``
    run_all: bool = False  # after a failed case too, to count how many are right


@dataclass(frozen=True, slots=True)
class Tests:
    """Test code for a program, run in its namespace (``shared``) or apart (``separated``)."""

    entry_point: str
    code: str
    preamble: str = ""  # code before the program and before the tests
    integrity: Integrity = "shared"
    cases: Cases | None = None  # compared by the matcher that ``matcher()`` in the code returns
    prompt_code: str = ""  # the end of the preamble, if it is taken from the prompt
    answer: Answer | None = None  # none: the answer is a program
    texts: TextCases | None = None
    adapter: str = ""  # code after the program, in its process: defines the function ADAPTED

    @property
    def is_script(self) -> bool:
        """Return whether the program reads standard input, so that it has no entry point."""
        return self.texts is not None and self.texts.style == "stdin"

    @property
    def called(self) -> str:
        """Return the function that separated tests call."""
        return ADAPTED if self.adapter else self.entry_point


@dataclass(frozen=True, slots=True)
class Problem:
    """One task of a benchmark. ``reference`` is a whole program."""

    task_id: str
    prompt: str
    reference: str
    tests: Tests
    without_rules: tuple[str, ...] = ()  # extraction rules that are not used for it
    cluster: str | None = None  # the original problem that it derives from; none: it is one
    date: str | None = None  # when it was published, as YYYY-MM-DD; none: not known
    labels: Mapping[str, str] = field(default_factory=dict)  # by which scores are broken down
    system: str = ""  # the benchmark's own system message
    begun: str = ""  # code that a base model continues; none: the prompt
    only_rule: str = ""  # the only extraction rule that is used for it; none: all
    suffix: str | None = None  # code after the answer, which then is what is missing between


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A named, pinned set of problems."""

    name: str
    version: str
    data_sha256: str
    problems: tuple[Problem, ...]
    limits: Limits = Limits()
    imports: tuple[str, ...] = ()  # modules that most programs import; loaded in advance
    environment: str = ""  # set of Python packages; none: only the standard library
    time_rule: TimeRule | None = None  # none: the CPU limit of ``limits`` for every problem
    cpu_s: Mapping[str, float] = field(default_factory=dict)  # by task, from the time rule
    strategies: Mapping[str, Strategy] = field(default_factory=dict)  # its own, by name
    only_own_strategies: bool = False  # the general ones do not fit its problems
    default_strategy: str = "standard"  # reproduces published scores
    prompt_form: PromptForm | None = None  # the only one that fits; none: the model's own
    max_tokens: int = 512  # default of a completion: upstream's where 512 would cut answers off
    measures: tuple[Measure, ...] = ()  # of programs that passed, beside their score
    timed: frozenset[str] = frozenset()  # tasks whose tests measure wall time; judged alone

    def form_for(self, model_form: PromptForm) -> PromptForm:
        """Return the form of its prompts for a model that is usually prompted in ``model_form``."""
        return self.prompt_form or model_form

    def limits_of(self, task_id: str) -> Limits:
        """Return the limits of a problem. Without its own CPU limit, the fixed one applies."""
        cpu_s = self.cpu_s.get(task_id)
        return self.limits if cpu_s is None else replace(self.limits, cpu_s=cpu_s)


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """Chat messages for a model, or plain text. With a suffix, the text is the prefix."""

    messages: tuple[Message, ...] = ()
    text: str = ""
    stop: tuple[str, ...] = ()
    suffix: str | None = None
    prefill: str = ""  # what the answer begins with, in the completion's text too


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to ask. Its version is part of the protocol: raise it with every change of wording."""

    name: str
    version: int
    build: Callable[[Problem, PromptForm], Prompt]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number for each program that passed, beside its verdict.

    ``probe`` returns what a sandbox executes to get it: a program, and tests with cases that have
    no expected values. ``read`` makes the number from the outputs, if it can.
    """

    name: str
    version: int
    probe: Callable[[Problem, str], tuple[str, Tests]]
    read: Callable[[Cases], float | None]
    imports: tuple[str, ...] = ()  # modules that it needs; loaded in advance


@dataclass(frozen=True, slots=True)
class Decoding:
    """The way tokens are chosen. Temperature 0 is greedy; top_k 0 means no limit."""

    max_tokens: int = 512
    temperature: float = 0.0
    top_k: int = 1
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """The task and number of a sample."""

    task_id: str
    sample: int

    @property
    def key(self) -> SampleKey:
        return self.task_id, self.sample


@dataclass(frozen=True, slots=True)
class Request(Sample):
    """A request for one completion. ``seed`` is this sample's own."""

    prompt: Prompt
    decoding: Decoding
    seed: int


@dataclass(frozen=True, slots=True)
class Completion(Sample):
    """The answer to one request. ``error`` is set if there was none."""

    text: str
    finish_reason: Literal["stop", "length", "prompt-too-long", "error"]
    prompt_tokens: int
    tokens_generated: int
    inference_ms: float
    seed: int
    used_gpu: bool
    logprob: float | None = None  # mean over the generated tokens, if the engine reports it
    error: str | None = None
    retries: int = 0  # number of times that the request was repeated
    reused: bool = False  # generated before, for the same request; the counts are of then


@dataclass(frozen=True, slots=True)
class Program:
    """Code extracted from a completion, and the extraction rule ("none": no code)."""

    code: str
    rule: str


@dataclass(frozen=True, slots=True)
class Job(Sample):
    """One program to judge."""

    program: Program
    tests: Tests
    limits: Limits = Limits()
    imports: tuple[str, ...] = ()
    environment: str = ""
    seed: str = ""  # for tests with random inputs; none: a secret of the sandbox
    alone: bool = False  # while no other program runs in the sandbox


@dataclass(frozen=True, slots=True)
class Verdict(Sample):
    """The outcome of one program. ``invalid`` means a failure of the harness, not the model."""

    status: Status
    reason: str
    detail: str = ""
    failing_test: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_mb: float = 0.0
    integrity: Literal[Integrity, "not-run"] = "not-run"  # not-run: no program was judged
    rule: str = ""
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)  # passed and all cases
    output: str = ""  # the end of what a failed program printed
    # What failed, as far as the tests know it. In place of a long text's middle is " … ".
    call: str | None = None
    expected: str | None = None
    actual: str | None = None  # what the call returned, or what a program on stdin printed
    difference: str | None = None  # between the two, if their texts do not show it
    input: str | None = None  # of a program on stdin


@dataclass(frozen=True, slots=True)
class Estimate:
    """pass@k over ``problems`` problems, with its interval."""

    k: int
    value: float
    low: float
    high: float
    problems: int
    level: float = 0.95  # of the interval
    method: str = "wilson-clustered"  # how the interval was computed
    version: int = 1  # of the method

    @property
    def interval(self) -> tuple[float, float]:
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """The properties that identify a model."""

    name: str
    engine: str
    weights_sha256: str
    prompt_form: PromptForm
    tokenizer_sha256: str = ""
    template_sha256: str = ""
    variant: str = ""  # of the weights' use: data type, adapter
    path: str = ""  # where it was found; not part of the identity


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The guarantees of a sandbox on this machine, and its gaps."""

    kind: str
    tier: str
    python: str
    guarantees: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    files: bool = True  # whether programs have a folder to write into
    refused: tuple[str, ...] = ()  # stronger tiers that do not work here, and why
    image: str = ""  # digest of the image that programs run in, if there is one
    interpreter: str = ""  # path of the Python that judges, if it is on this machine
