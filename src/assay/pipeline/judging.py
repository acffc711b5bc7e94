"""Open what judges the samples of a run, and describe it: sandbox, Python, verdict cache."""

from __future__ import annotations

import platform

from assay import __version__, models, runs, sandbox
from assay.datasets import cache_dir
from assay.pipeline.config import JudgeConfig
from assay.progress import Reporter
from assay.runs import Environment, ParityGateOutcome
from assay.sandbox.environments import store as environments
from assay.sandbox.environments.interpreters import DEFAULT, minor_of
from assay.types import Benchmark, SampleKey
from assay.work.machine import usable_cores

LONG_S = 2.0  # of a reference: samples of such a task are judged first


def open_sandbox(config: JudgeConfig, benchmark: Benchmark, reporter: Reporter) -> sandbox.Sandbox:
    """Open the sandbox. Report why stronger tiers are not available."""
    judge = config.site.open_sandbox(
        config.sandbox, config.workers, config.sandbox_tier, config.python
    )
    about = judge.capabilities()
    for refused in about.refused:
        reporter.note(f"sandbox tier {about.tier}: a stronger one is not available ({refused})")
    if benchmark.environment:
        chosen = minor_of(about.python) if config.python else ""
        environments.find(benchmark.environment, about.tier, chosen)
    return judge


def report_python(
    config: JudgeConfig, benchmark: Benchmark, about: sandbox.Capabilities, reporter: Reporter
) -> None:
    """Report the Python that judges, once it is certain that it will."""
    version, place = about.python.rpartition(" ")[2], about.interpreter
    if benchmark.environment:
        environment = environments.find(benchmark.environment)
        version, place = environment.python, environment.interpreter
    reporter.note(f"programs are judged by Python {version}{place and f', {place}'}")
    if place and not config.python and minor_of(version) != DEFAULT:
        reporter.note(
            f"Python {DEFAULT}, by which most results are judged, was not found. Install it with "
            f"'assay env python {DEFAULT}'."
        )


def open_verdict_cache(capabilities: sandbox.Capabilities, packages: str) -> runs.VerdictCache:
    """Return the cache of verdicts that were reached in such a sandbox with these packages."""
    image = [capabilities.image] if capabilities.image else []  # two may have the same Python
    return runs.VerdictCache(
        cache_dir() / "verdicts",
        capabilities.kind,
        capabilities.tier,
        capabilities.python,
        packages,
        *image,
    )


def long_first(
    keys: list[SampleKey], seconds: dict[str, float], timed: frozenset[str] = frozenset()
) -> list[SampleKey]:
    """Return the samples that take long to judge first, and the others in their order.

    Those that are judged alone come last: they wait for all others, which wait for them.
    """

    def haste(key: SampleKey) -> float:
        if key[0] in timed:
            return 1.0
        needed = seconds.get(key[0], 0.0)
        return -needed if needed > LONG_S else 0.0

    return sorted(keys, key=haste)


def environment(
    model: models.Model,
    capabilities: sandbox.Capabilities | None = None,
    gate: ParityGateOutcome | None = None,
) -> Environment:
    """Return where completions are generated and judged."""
    return Environment(
        assay=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        machine=platform.machine(),
        cpus=usable_cores(),
        engine=model.describe().to_json(),
        sandbox=capabilities,
        parity_gate=gate,
    )


def engine_line(model: models.Model) -> str:
    """Return a line with the engine and its settings, which are known after one completion."""
    facts = ", ".join(f"{name} {value}" for name, value in model.describe().to_json().items())
    return f"engine {model.identity.engine}{': ' if facts else ''}{facts}"
