"""Generate completions for the prompts of a file, or for one prompt."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay import models
from assay.data import codec
from assay.data.printable import quantity
from assay.errors import ModelError, UsageError
from assay.pipeline.batch.requests import (
    BadLine,
    RunConfig,
    Survey,
    digest,
    parse,
    read_requests,
    requests_of,
    survey,
)
from assay.pipeline.judging import engine_line, environment
from assay.pipeline.prompting import decide_sampling
from assay.progress import Reporter, Silent
from assay.runs import BatchLine, BatchOutput, BatchSettings
from assay.types import Completion, Request, Sample, SampleKey

SILENT = Silent()

__all__ = ["BatchLine", "BatchReport", "RunConfig", "run_batch", "run_prompt"]


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The outcome of a batch. A prompt counts once for each of its samples."""

    prompts: int
    kept: int  # completed by an earlier run
    made: int
    failed: int
    first_error: str
    tokens_generated: int
    seconds: float  # the model's load included
    model: str
    engine: dict[str, object]


def run_prompt(config: RunConfig, text: str, reporter: Reporter = SILENT) -> BatchLine:
    """Return the completion of one prompt. Raise ModelError if there is none."""
    config.decoding()
    line = parse(0, codec.dumps({"prompt": text}).encode())
    if isinstance(line, BadLine):
        raise UsageError(f"--prompt: cannot be sent ({line.error}). Give another text.")
    try:
        (request,) = requests_of(line, config)
    except ValueError as error:
        raise UsageError(str(error)) from error
    model = models.open_model(config.model, config.engine, reporter.note)
    with contextlib.closing(model):
        (completion,) = model.generate([request])
    reporter.note(engine_line(model))
    if (why := _why_none(completion)) is not None:
        raise ModelError(f"{model.identity.name}: did not complete the prompt ({why}).")
    return _line(request.task_id, completion, digest(request))


def run_batch(
    config: RunConfig,
    source: Path,
    output: Path | None,
    reporter: Reporter = SILENT,
    *,
    fresh: bool = False,
    receive: Callable[[BatchLine], None] = lambda _: None,
) -> BatchReport:
    """Write a line for every prompt of ``source`` to ``output`` and pass it to ``receive``.

    Completions that ``output`` already has are kept. Those that failed are generated again.
    """
    decoding = config.decoding()
    surveyed = survey(source, config)
    if output is not None and output.exists() and output.samefile(source):
        raise UsageError(f"{source}: is the input and would be overwritten. Give another --output.")
    engine = replace(config.engine, longest=surveyed.longest)
    model = models.open_model(config.model, engine, reporter.note)
    config = replace(config, sampling=decide_sampling(config.sampling, model, reporter))
    prompt = config.prompt_settings()
    settings = BatchSettings(
        model.identity, decoding, config.sampling.n_samples, config.chat,
        prompt.thinking, prompt.engine_options,
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        lines = BatchOutput(output, settings, fresh=fresh) if output is not None else None
        if lines is not None:
            stack.callback(lines.close)
        stack.enter_context(contextlib.closing(model))
        done = lines.done if lines else {}
        return _BatchPass(config, source, model, lines, reporter, receive, done).flow(surveyed)


@dataclass(slots=True)
class _BatchPass:
    """One pass from a batch file to a line for every prompt."""

    _config: RunConfig
    _source: Path
    _model: models.Model
    _output: BatchOutput | None
    _reporter: Reporter
    _receive: Callable[[BatchLine], None]
    _done: Mapping[str, str]  # digests of requests that the output has answers to, by name
    _digests: dict[SampleKey, str] = field(default_factory=dict)  # of what the engine works on
    _made: int = 0
    _failed: int = 0
    _tokens: int = 0
    _first_error: str = ""

    def flow(self, surveyed: Survey) -> BatchReport:
        started = time.monotonic()
        n, kept = self._config.sampling.n_samples, self._count_kept(surveyed)
        total = (surveyed.prompts - surveyed.greedy) * n + surveyed.greedy
        self._report(surveyed)
        self._reporter.begin(total, [], total - kept)
        models.watch(self._model, self._reporter)
        for bad in surveyed.bad:
            for name in self._names(bad.task_id):
                self._add(name, models.failed(name, 0, bad.error), "")
        for number, completion in enumerate(self._model.generate(self._missing())):
            if number == 0:
                self._reporter.note(engine_line(self._model))
                if self._output:
                    self._output.add_environment(environment(self._model))
            self._add(self._name(completion), completion, self._digests.pop(completion.key))
        return BatchReport(
            prompts=total,
            kept=kept,
            made=self._made,
            failed=self._failed,
            first_error=self._first_error,
            tokens_generated=self._tokens,
            seconds=round(time.monotonic() - started, 3),
            model=self._model.identity.name,
            engine={"name": self._model.identity.engine, **self._model.describe().to_json()},
        )

    def _report(self, surveyed: Survey) -> None:
        if not surveyed.prompts:
            self._reporter.note(f"{self._source}: contains no prompts")
        if surveyed.greedy and self._config.sampling.n_samples > 1:
            self._reporter.note(
                f"temperature 0 gives the same text every time: 1 sample is generated for "
                f"{quantity(surveyed.greedy, 'line')} with it"
            )
        if surveyed.unused:
            self._reporter.note(f"unknown fields are ignored: {', '.join(surveyed.unused)}")

    def _count_kept(self, surveyed: Survey) -> int:
        """Return how many prompts are completed already."""
        if not self._done:
            return 0
        requests = ((self._name(r), digest(r)) for r in read_requests(self._source, self._config))
        bad = ((name, "") for line in surveyed.bad for name in self._names(line.task_id))
        count = 0
        for name, wanted in itertools.chain(requests, bad):
            if self._done.get(name, wanted) != wanted:
                raise UsageError(
                    f"{self._source}: the prompt or settings of {name} differ from those in the "
                    "output. Give another --output, or --fresh to start over."
                )
            count += name in self._done
        if others := len(self._done) - count:
            self._reporter.note(f"kept in the output: {quantity(others, 'line')} of other prompts")
        return count

    def _missing(self) -> Iterator[Request]:
        for request in read_requests(self._source, self._config):
            if self._name(request) not in self._done:
                self._digests[request.key] = digest(request)
                yield request

    def _name(self, sample: Sample) -> str:
        if self._config.sampling.n_samples == 1:
            return sample.task_id
        return f"{sample.task_id}_s{sample.sample}"

    def _names(self, task_id: str) -> list[str]:
        return [self._name(Sample(task_id, s)) for s in range(self._config.sampling.n_samples)]

    def _add(self, name: str, completion: Completion, request_digest: str) -> None:
        line = _line(name, completion, request_digest)
        if self._output:
            self._output.append(line)
        if line.error is None:
            self._made += 1
        else:
            self._failed += 1
            self._first_error = self._first_error or f"{line.task_id}: {line.error}"
        self._tokens += line.tokens_generated
        self._receive(line)
        self._reporter.completed(completion)


def _line(task_id: str, completion: Completion, request_digest: str) -> BatchLine:
    seconds = completion.inference_ms / 1000
    return BatchLine(
        task_id=task_id,
        text=completion.text,
        tokens_generated=completion.tokens_generated,
        tok_per_sec=round(completion.tokens_generated / seconds, 2) if seconds else 0.0,
        inference_ms=completion.inference_ms,
        used_gpu=completion.used_gpu,
        finish_reason=completion.finish_reason,
        seed=completion.seed,
        prompt_tokens=completion.prompt_tokens,
        request_digest=request_digest,
        logprob=completion.logprob,
        error=_why_none(completion),
    )


def _why_none(completion: Completion) -> str | None:
    """Return why there is no text for this prompt, or None if there is one."""
    if completion.finish_reason == "prompt-too-long":
        return "the prompt does not fit into the model's context"
    return completion.error
