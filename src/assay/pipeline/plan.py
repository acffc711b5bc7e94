"""Plan a run: settle once which samples it has, and how they are generated and judged."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from assay import extract, models, runs, selection
from assay.data import codec
from assay.datasets import cache_dir
from assay.errors import UsageError
from assay.models import EngineOptions, Model, RecordedModel
from assay.pipeline.config import MAX_TOKENS, EvalConfig, JudgeConfig, ScoreConfig
from assay.pipeline.problems import SelectedProblems, surround
from assay.pipeline.prompting import (
    complete_prompt,
    describe_form,
    may_think,
    refuse_for_recorded,
    resolve_prompt_settings,
    unused_for_recorded,
)
from assay.prompts import DEFAULT_STRATEGY, STANDARD, Strategy, find_strategy
from assay.protocol import VERSION, PromptSettings, Protocol
from assay.sandbox.environments import store as environments
from assay.types import Benchmark, Capabilities, Decoding, Limits, Prompt, Request

if TYPE_CHECKING:
    from assay.progress import Reporter
    from assay.runs import ParityGateOutcome
    from assay.types import Completion, PromptForm, SampleKey, Tests

# How recorded completions were generated is unknown.
RECORDED = Strategy("recorded", 0, lambda problem, _: Prompt(text=problem.prompt))
UNKNOWN_DECODING = Decoding(max_tokens=0, temperature=0.0, top_k=0, top_p=0.0)
UNKNOWN_LIMITS = Limits(0, 0, 0, 0, 0, 0, 0)  # another harness has its own
TEXT_GROUP = "cases"  # of cases that are pairs of texts


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The samples of a run, how they are generated, and how they are judged."""

    config: JudgeConfig
    selected: SelectedProblems
    benchmark: Benchmark  # the selected problems that have samples
    model: Model
    keys: list[SampleKey]
    strategy: Strategy
    asking: PromptSettings
    decoding: Decoding
    engine: EngineOptions = field(default_factory=EngineOptions)
    origin: str = ""  # digest of completions that were recorded elsewhere
    n_samples: int = 0  # per problem that there may be at most; 0: these
    rounds: int = 0  # samples per problem that count so far; 0: all
    notes: tuple[str, ...] = ()  # for the user, before the run begins
    gate: ParityGateOutcome | None = None  # of the device that generates
    store: runs.CompletionStore | None = None  # answers to the same requests
    loaded_for: Decoding | None = None  # of all runs that share the model; none: this one's
    begun: float = field(default_factory=time.monotonic)
    # Called with the protocol and the key of the run before that is opened. Raises to refuse it.
    admit: Callable[[Protocol, str], None] = lambda _, __: None
    # Called when the model is not needed any more, while the last programs are judged.
    when_generated: Callable[[Capabilities], None] = lambda _: None

    @property
    def form(self) -> PromptForm:
        return self.asking.prompt_form

    @property
    def task_ids(self) -> list[str]:
        return [problem.task_id for problem in self.selected.benchmark.problems]

    @property
    def most_samples(self) -> int:
        """The largest number of samples that a problem has."""
        return max(Counter(task_id for task_id, _ in self.keys).values(), default=0)

    def requests(self, keys: Iterable[SampleKey]) -> Iterator[Request]:
        """Yield what the model is asked for these samples."""
        return build_requests(keys, self.benchmark, self.strategy, self.asking, self.decoding)

    def needs_model(self, missing: list[SampleKey]) -> bool:
        """Return whether the model has to generate some of these samples."""
        if not missing or isinstance(self.model, RecordedModel):
            return False
        return self.store is None or not self.store.has_all(self.requests(missing))

    def protocol(self, capabilities: Capabilities) -> Protocol:
        """Return the protocol of a run that is judged in such a sandbox."""
        # Patch releases do not change what a program means.
        python, packages = capabilities.python.rpartition(".")[0], ""
        if name := self.benchmark.environment:
            environment = environments.find(name, capabilities.tier)
            python, packages = f"cpython {environment.python}", environment.identity
        return replace(
            self.unjudged_protocol(),
            limits=self.benchmark.limits,
            sandbox=capabilities.kind,
            python=python,
            environment=packages,
            time_rule=self.benchmark.time_rule,
        )

    def unjudged_protocol(self) -> Protocol:
        """Return the protocol without what executes programs: limits, sandbox and Python."""
        benchmark, task_ids = self.benchmark, self.task_ids
        return Protocol(
            version=VERSION,
            benchmark=benchmark.name,
            benchmark_version=benchmark.version,
            data_sha256=benchmark.data_sha256,
            problems=len(task_ids),
            problems_sha256=codec.digest(task_ids),
            n_samples=max(self.most_samples, self.n_samples),
            prompt_strategy=self.strategy.name,
            prompt_strategy_version=self.strategy.version,
            asking=self.asking,
            decoding=self.decoding,
            extraction_version=extract.VERSION,
            tests="+".join(case_groups(benchmark)) or "base",
            limits=UNKNOWN_LIMITS,
            sandbox="",
            python="",
            origin=self.origin,
            prompt_imports=self.config.prompt_imports,
        )

    def open_store(self, written: set[str]) -> runs.CompletionStore | None:
        """Return the store of completions for this model and engine, or None if it is not used.

        With ``--fresh``, and for a server, whose model can change unseen, only completions that
        this process has stored are reused.
        """
        config, model, engine = self.config, self.model, self.engine
        recorded = isinstance(model, RecordedModel)
        if recorded or config.no_cache or not models.is_identified(model):
            return None
        engine = replace(engine, longest=max(engine.longest, self.decoding.max_tokens))
        return runs.CompletionStore(
            cache_dir() / "completions",
            models.text_conditions(model, engine),
            written=written,
            earlier=not (config.fresh or models.is_served(model)),
        )


def plan_evaluation(config: EvalConfig, model: Model, selected: SelectedProblems) -> RunPlan:
    """Return the plan of an evaluation. Nothing is loaded.

    Raise UsageError or ModelError for settings that the model does not support.
    """
    strategy = find_strategy(config.prompt_strategy, selected.benchmark)
    form = selected.benchmark.form_for(model.identity.prompt_form)
    numbers = range(config.rounds or config.sampling.n_samples)
    keys = [(problem.task_id, s) for problem in selected.benchmark.problems for s in numbers]
    if isinstance(model, RecordedModel):
        check_recorded(config, model)
        plan = plan_recorded(config, selected, model, keys)
        unused = unused_for_recorded(config.sampling)
        notes = [f"{flag}: has no effect on recorded completions" for flag in unused]
    else:
        typical = strategy.build(selected.benchmark.problems[0], form)
        usual = selected.benchmark.max_tokens
        asking, decoding, notes = settle_settings(config, model, form, typical, usual)
        if config.prompt_strategy == DEFAULT_STRATEGY and strategy.name != STANDARD:
            default = f"the default of {selected.benchmark.name}"
            notes = [f"prompt strategy {strategy.name}: {default}", *notes]
        config = replace(config, prompt_strategy=strategy.name)
        benchmark = surround(selected.benchmark, config.prompt_imports, form)
        plan = RunPlan(config, selected, benchmark, model, keys, strategy, asking, decoding)
    return replace(
        plan, engine=engine_options(config), n_samples=config.sampling.n_samples,
        rounds=config.rounds, notes=tuple(notes),
    )  # fmt: skip


def settle_settings(
    config: EvalConfig, model: Model, form: PromptForm, typical: Prompt, usual: int = MAX_TOKENS
) -> tuple[PromptSettings, Decoding, list[str]]:
    """Return how a model is prompted with prompts such as ``typical``, its decoding, and notes."""
    described = describe_form(model, form, typical, config.engine)
    asking = resolve_prompt_settings(form, config.engine, config.system, config.stop)
    thinks = may_think(model, form, typical)
    decoding = config.sampling.resolve(thinks=thinks, usual=usual)
    if not thinks or config.sampling.max_tokens is not None:
        return asking, decoding, [described]
    note = f"the model's chat template supports reasoning, so max-tokens is {decoding.max_tokens}"
    return asking, decoding, [note, described]


def check_recorded(config: EvalConfig, model: Model) -> None:
    """Raise UsageError for settings that cannot apply to completions, if they are recorded."""
    if not isinstance(model, RecordedModel):
        return
    if config.prompt_strategy not in (DEFAULT_STRATEGY, STANDARD):
        raise UsageError("--prompt-strategy: has no effect on recorded completions. Drop it.")
    refuse_for_recorded(config.system, config.stop, config.sampling.resolve())


def plan_recorded(
    config: JudgeConfig, selected: SelectedProblems, model: RecordedModel, keys: list[SampleKey]
) -> RunPlan:
    """Return the plan for samples whose generation is unknown: only form and origin are known."""
    wanted = {task_id for task_id, _ in keys}
    problems = tuple(p for p in selected.benchmark.problems if p.task_id in wanted)
    form = selected.benchmark.form_for(model.identity.prompt_form)
    benchmark = replace(selected.benchmark, problems=problems)
    return RunPlan(
        config,
        selected,
        surround(benchmark, config.prompt_imports, form),
        model,
        keys,
        RECORDED,
        resolve_prompt_settings(form, EngineOptions(), "", ()),
        UNKNOWN_DECODING,
        origin=model.identity.weights_sha256,
    )


def replay(model: Model, keys: Iterable[SampleKey]) -> Iterator[Completion]:
    """Return the recorded completions of these samples."""
    requests = (Request(task_id, sample, Prompt(), UNKNOWN_DECODING, 0) for task_id, sample in keys)
    return iter(model.generate(requests))


def plan_score(config: ScoreConfig, selected: SelectedProblems, reporter: Reporter) -> RunPlan:
    """Match a file with the selected problems. Raise UsageError if samples are missing."""
    model = models.open_recorded(
        config.samples_file, partial=config.partial, name=config.model_name
    )
    wanted = {p.task_id for p in selected.benchmark.problems}
    keys = [key for key in model.list_recorded() if key[0] in wanted]
    others = {task_id for task_id, _ in model.list_recorded()} - wanted
    if others and not (selected.label and keys):
        raise UsageError(
            f"{config.samples_file}: has a sample of {min(others)}, which is not a task of "
            f"{selected.benchmark.name}. Give the right --benchmark."
        )
    counts = Counter(task_id for task_id, _ in keys)
    if lacking := _describe_lack(counts, len(wanted), max(counts.values())):
        if not config.partial:
            raise UsageError(
                f"{config.samples_file}: has {lacking} of {selected.benchmark.name}. "
                "Give the whole file, or --partial to score what it has."
            )
        reporter.note(f"{config.samples_file}: has {lacking} of {selected.benchmark.name}")
    plan = plan_recorded(config, selected, model, keys)
    return replace(plan, engine=EngineOptions(name=config.model_name))


def _describe_lack(counts: Counter[str], problems: int, most: int) -> str:
    """Return what a file has if that is less than ``most`` samples of all problems."""
    if len(counts) < problems:
        return f"samples of {len(counts)} of {problems} problems"
    if fewer := sum(count < most for count in counts.values()):
        return f"fewer than {most} samples of {fewer} of {problems} problems"
    return ""


def engine_options(config: EvalConfig) -> EngineOptions:
    """Return the engine's options, with log-probabilities if a selection method needs them."""
    if config.select and selection.methods.get(config.select).logprobs:
        return replace(config.engine, logprobs=True)
    return config.engine


def sample_seed(seed: int, task_id: str, sample: int) -> int:
    """Return the seed of a sample, which does not depend on when or in which order it is generated.

    A problem's samples have consecutive seeds, so that engines can generate them together.
    """
    digest = hashlib.sha256(f"{seed}/{task_id}".encode()).digest()
    return (int.from_bytes(digest[:4], "big") + sample) % (1 << 31)


def build_requests(
    samples: Iterable[SampleKey],
    benchmark: Benchmark,
    strategy: Strategy,
    asking: PromptSettings,
    decoding: Decoding,
) -> Iterator[Request]:
    """Yield the requests for a model, in the order of the samples."""
    problems = {problem.task_id: problem for problem in benchmark.problems}
    for task_id, of_task in itertools.groupby(samples, key=lambda key: key[0]):
        prompt = complete_prompt(strategy.build(problems[task_id], asking.prompt_form), asking)
        for _, sample in of_task:
            seed = sample_seed(decoding.seed, task_id, sample)
            yield Request(task_id, sample, prompt, decoding, seed)


def case_groups(benchmark: Benchmark) -> list[str]:
    """Return the names of the case groups that all problems share; none for test code."""
    groups = {_groups(problem.tests) for problem in benchmark.problems}
    return list(groups.pop()) if len(groups) == 1 else []


def _groups(tests: Tests) -> tuple[str, ...]:
    if tests.texts:
        return (TEXT_GROUP,)
    return tuple(tests.cases.inputs) if tests.cases else ()
