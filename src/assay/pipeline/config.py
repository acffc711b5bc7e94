"""What an evaluation is asked to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay import models
from assay.models import EngineOptions
from assay.pipeline.decoding import Sampling
from assay.pipeline.problems import ProblemSelection
from assay.types import PromptImports

STANDARD, ALL = "standard", "all"  # prompt strategies


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """How programs are to be judged, whoever wrote them."""

    benchmark: str
    results_dir: Path
    split: str = ""
    sandbox: str = "process"
    sandbox_tier: str = "auto"
    workers: int = 0
    no_cache: bool = False
    check_references: bool = False
    fresh: bool = False
    select: str = ""  # how one of n samples is chosen; none: not at all
    data_dir: Path | None = None
    tests_seed: str = ""  # of inputs that tests draw; none: a new secret for every run
    problems: ProblemSelection = field(default_factory=ProblemSelection)
    prompt_imports: PromptImports = "prepended"  # whether code of the prompt precedes programs


@dataclass(frozen=True, slots=True)
class ScoreConfig(JudgeConfig):
    """A file of completions to be scored."""

    samples_file: str = ""
    model_name: str = ""  # of whoever made them; none: that of the file
    partial: bool = False  # score a file that lacks samples all the same


@dataclass(frozen=True, slots=True)
class EvalConfig(JudgeConfig):
    """A model to be evaluated."""

    model: str = models.DEFAULT
    sampling: Sampling = field(default_factory=Sampling)
    prompt_strategy: str = STANDARD
    system: str = ""  # message before every prompt
    stop: tuple[str, ...] = ()  # texts that end a completion, besides the strategy's
    engine: EngineOptions = field(default_factory=EngineOptions)
    # Asked before anything is generated: what is recorded of the device, or an error.
    gate: Callable[[], dict[str, Any]] = dict
