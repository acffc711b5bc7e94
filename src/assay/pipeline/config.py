"""Settings of an evaluation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay import models, selection
from assay.errors import UsageError
from assay.models import EngineOptions
from assay.pipeline.problems import ProblemSelection
from assay.pipeline.prompting import check_texts
from assay.pipeline.site import THIS_MACHINE, Site
from assay.prompts import DEFAULT_STRATEGY, check_strategy_name
from assay.scoring.decisions import MARGIN
from assay.types import Decoding, PromptImports

ALL = "all"  # of the prompt strategies
DEFAULT_TOP_K = 40
SEVERAL_TEMPERATURE = 0.8  # of several samples, if none is given
MAX_TOKENS = 512
MOST_SAMPLES = 10_000  # per problem: each takes memory before the first is generated
MOST_WORKERS = 1024
LARGEST = (1 << 31) - 1  # engines count in 32 bits
# Includes thoughts: the longest of 125 answers by an 8B model that thinks had about 16,000 tokens.
MAX_TOKENS_THINKING = 16_384


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings that go together. Explicit options override them."""

    n_samples: int
    temperature: float
    top_k: int | None


PRESETS = {
    "greedy": Preset(1, 0.0, None),
    "pass1": Preset(10, 0.8, DEFAULT_TOP_K),
    "pass10": Preset(100, 0.8, DEFAULT_TOP_K),
}


@dataclass(frozen=True, slots=True)
class Sampling:
    """The number of completions per problem, and how their tokens are sampled."""

    n_samples: int = 1
    temperature: float | None = None  # none: 0 for one sample, 0.8 for several
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    max_tokens: int | None = None  # none: depends on whether the model thinks
    seed: int = 0

    def decide(self) -> tuple[Sampling, str]:
        """Return the sampling with a temperature, and a note if that was not what was given.

        Greedy samples of a problem are all the same, so pass@10 of them would be pass@1. Without a
        temperature, several samples are drawn at 0.8. With an explicit 0, there is one.
        """
        if self.temperature is None and self.n_samples == 1:
            return replace(self, temperature=0.0), ""
        if self.temperature is None:
            top_k = DEFAULT_TOP_K if self.top_k is None else self.top_k
            return replace(self, temperature=SEVERAL_TEMPERATURE, top_k=top_k), (
                f"{self.n_samples} samples and no --temperature: they are drawn at temperature "
                f"{SEVERAL_TEMPERATURE}, top-k {top_k}"
            )
        if self.temperature == 0 and self.n_samples > 1:
            return replace(self, n_samples=1), (
                f"--temperature 0 gives the same text every time: 1 sample is generated instead of "
                f"{self.n_samples}, and only pass@1 is computed"
            )
        return self, ""

    def settle(self, *, thinks: bool = False, usual: int = MAX_TOKENS) -> Decoding:
        """Return the effective settings. Raise ValueError for one that is out of range.

        Greedy decoding is always written the same way, whatever seed and limits were given. Only a
        repetition penalty changes it. ``usual`` is the default number of tokens. A model that
        thinks gets more.
        """
        max_tokens = self.max_tokens
        if max_tokens is None:
            max_tokens = max(usual, MAX_TOKENS_THINKING) if thinks else usual
        temperature = self.decide()[0].temperature or 0.0
        top_k = DEFAULT_TOP_K if self.top_k is None else self.top_k
        top_p, min_p, penalty = self.top_p, self.min_p, self.repetition_penalty
        for option, value, is_valid, rule in (
            ("max-tokens", max_tokens, 1 <= max_tokens <= LARGEST, "at least 1 and less than 2^31"),
            ("temperature", temperature, 0 <= temperature < math.inf, "0 or more"),
            ("top-k", top_k, 0 <= top_k <= LARGEST, "0 (off) or more and less than 2^31"),
            ("top-p", top_p, 0 < top_p <= 1, "above 0 and at most 1"),
            ("min-p", min_p, 0 <= min_p < 1, "0 or more and less than 1"),
            ("repetition-penalty", penalty, 0 < penalty < math.inf, "a finite number above 0"),
        ):
            if not is_valid:
                raise ValueError(f"{option} {value}: must be {rule}")
        if temperature == 0:
            return Decoding(max_tokens=max_tokens, repetition_penalty=penalty)
        return Decoding(max_tokens, temperature, top_k, top_p, min_p, penalty, self.seed)

    def resolve(self, *, thinks: bool = False, usual: int = MAX_TOKENS) -> Decoding:
        """Return the effective settings. Raise UsageError for an option that is out of range."""
        if not 1 <= self.n_samples <= MOST_SAMPLES:
            raise UsageError(
                f"--n-samples {self.n_samples}: must be at least 1 and at most {MOST_SAMPLES}."
            )
        try:
            decoding = self.settle(thinks=thinks, usual=usual)
        except ValueError as error:
            raise UsageError(f"--{error}.") from error
        if decoding.temperature == 0 and (self.top_p != 1 or self.min_p != 0):
            name = "--top-p" if self.top_p != 1 else "--min-p"
            raise UsageError(
                f"{name}: has no effect at temperature 0, which always takes the likeliest token. "
                f"Give a --temperature above 0, or drop {name}."
            )
        return decoding


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """Settings for judging programs."""

    benchmark: str
    results_dir: Path
    split: str = ""
    sandbox: str = "process"
    sandbox_tier: str = "auto"
    python: str = ""  # version or path of the Python that judges; none: 3.11, else assay's own
    workers: int = 0
    no_cache: bool = False
    check_references: bool = False
    fresh: bool = False
    select: str = ""  # method that chooses one of n samples; none: no choice is scored
    data_dir: Path | None = None
    tests_seed: str = ""  # for tests with random inputs; none: a new secret for every run
    problems: ProblemSelection = field(default_factory=ProblemSelection)
    prompt_imports: PromptImports = "prepended"  # whether code of the prompt precedes programs
    time_limit: float | None = None  # CPU seconds per program; none: the benchmark's own rule
    all_cases: bool = False  # after a failed case on standard input too, to count the right ones
    site: Site = THIS_MACHINE  # where models and sandboxes are opened

    def check(self) -> None:
        """Raise UsageError for a setting that is wrong whatever the benchmark is."""
        if not 0 <= self.workers <= MOST_WORKERS:
            raise UsageError(
                f"--workers {self.workers}: must be 0 (one per core) to {MOST_WORKERS}."
            )
        if self.select:
            selection.methods.get(self.select)


@dataclass(frozen=True, slots=True)
class ScoreConfig(JudgeConfig):
    """Settings for scoring a file of completions."""

    samples_file: str = ""
    model_name: str = ""  # model that generated them; none: the name of the file
    partial: bool = False  # score a file even if samples are missing


@dataclass(frozen=True, slots=True)
class Until:
    """The end of adding samples: when a comparison with a baseline decides."""

    against: str  # the baseline: a results file, or the name of a run
    margin: float = MARGIN  # of equivalence
    force: bool = False  # compare even if the protocols differ


@dataclass(frozen=True, slots=True)
class EvalConfig(JudgeConfig):
    """Settings for evaluating a model."""

    model: str = models.DEFAULT
    sampling: Sampling = field(default_factory=Sampling)
    prompt_strategy: str = DEFAULT_STRATEGY
    system: str = ""  # message before every prompt
    stop: tuple[str, ...] = ()  # texts that end a completion, in addition to the strategy's
    engine: EngineOptions = field(default_factory=EngineOptions)
    until: Until | None = None  # none: all samples are generated
    rounds: int = 0  # samples per problem to generate now, of those that are planned; 0: all

    def check(self) -> None:
        """Raise UsageError for a setting that is wrong whatever the model and the benchmark are."""
        self.sampling.resolve()
        JudgeConfig.check(self)
        check_texts(self.system, self.stop)
        check_strategy_name(self.prompt_strategy)
