"""``assay sandbox``."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from assay.cli._groups import FullGroup, option
from assay.cli._options import ANY_PATH, SANDBOXES, TIER_HELP, as_json, list_choices, python
from assay.cli._output import echo, echo_json, echo_result, note
from assay.cli._progress import ProgressDisplay
from assay.data import codec
from assay.data.printable import quantity
from assay.errors import SandboxError
from assay.report.text import table
from assay.sandbox import open_sandbox
from assay.sandbox.container.image import BASE, build_image
from assay.sandbox.selftest.attacks import BATTERY
from assay.sandbox.selftest.battery import Observation, run_battery
from assay.sandbox.selftest.doctor import Diagnosis, KindReport, TierReport, diagnose, overview

LEGEND = (
    "In brackets is the verdict on the attacking program. It passes if its attempts were refused "
    "or had no effect."
)


@click.group(cls=FullGroup)
def sandbox() -> None:
    """Inspect and test the sandboxes that execute programs.

    \b
    Examples:
      assay sandbox doctor
      assay sandbox selftest
    """


@sandbox.command("list")
@option("--workers", "Number of programs to run at a time; 0 uses one per core.", default=0)
@as_json
def show_list(workers: int, as_json: bool) -> None:
    """List the sandbox kinds: whether they work here, what they guarantee, samples per second.

    \b
    Example:
      assay sandbox list
    """
    if as_json:
        echo_json(list(overview(workers)))
        return
    for kind in overview(workers):
        echo(*_kind(kind), "")


@sandbox.command("build-image")
@option("--base", "Image to build from, with Python 3.11 or later.", default=BASE)
@option(
    "--rootfs",
    "Root file system to build from if this machine cannot pull images: a folder; a tar "
    "file; host, which copies this machine's Python; or debian, which runs debootstrap.",
    type=ANY_PATH,
)
def build(base: str, rootfs: Path | None) -> None:
    """Build the image for --sandbox docker and print its digest.

    \b
    Examples:
      assay sandbox build-image
      assay sandbox build-image --rootfs host
    """
    echo(build_image(base, rootfs, note))


@sandbox.command()
@python
@as_json
def doctor(python: str, as_json: bool) -> None:
    """Show which tiers this machine supports, what each guarantees, and how to enable others.

    \b
    Example:
      assay sandbox doctor
    """
    diagnosis = diagnose(python)
    echo_result(diagnosis, lambda: _diagnosis(diagnosis), as_json=as_json)
    if not diagnosis.chosen:
        raise SandboxError(
            "sandbox: no tier works on this machine, so no program can be executed. "
            "Enable one of the tiers listed above."
        )


@sandbox.command()
@option("--sandbox", f"Sandbox kind to test: {list_choices(SANDBOXES)}.", "kind", default="process")
@option("--sandbox-tier", TIER_HELP, "tier", default="auto")
@python
@as_json
def selftest(kind: str, tier: str, python: str, as_json: bool) -> None:
    """Attack the sandbox on this machine, and report which guarantees hold.

    Takes about half a minute on an idle machine. The exit code is 2 if an attack succeeds against
    a guarantee.

    \b
    Example:
      assay sandbox selftest --sandbox-tier landlock
    """
    opened = open_sandbox(kind, 1, tier, python)
    observations = []
    with ProgressDisplay("sandbox", quiet=as_json) as display, contextlib.closing(opened):
        for observation in run_battery(opened):
            observations.append(observation)
            display.preparing("attacks:", len(observations), len(BATTERY))
        capabilities = opened.capabilities()
    broken = [o for o in observations if o.promised and not o.contained]
    summary = (
        f"{capabilities.kind}, tier {capabilities.tier}: {len(observations)} attacks, "
        f"{quantity(len(broken), 'guarantee')} broken"
    )
    echo_result(
        {"tier": capabilities.tier, "attacks": list(map(codec.to_json, observations))},
        lambda: [*_observations(observations), LEGEND, summary],
        as_json=as_json,
    )
    if broken:
        raise SandboxError(
            f"sandbox: {quantity(len(broken), 'attack')} succeeded against a guarantee. "
            f"The first is {broken[0].attack}. Do not run programs here; report it (SECURITY.md)."
        )


def _observations(observations: list[Observation]) -> list[str]:
    rows = [("attack", "guaranteed", "observed")]
    for o in observations:
        verdict = "contained" if o.contained else "succeeded"
        rows.append((o.attack, "yes" if o.promised else "no", f"{verdict} ({o.observed[:80]})"))
    return table(rows)


def _kind(kind: KindReport) -> list[str]:
    if kind.refusal:
        return [f"{kind.kind:<10}no: {kind.refusal}"]
    rate = f"{kind.samples_per_second:.0f} samples/s"
    return [f"{kind.kind:<10}{rate}, tier {kind.tier}, {kind.python}", *_promises(kind)]


def _promises(report: KindReport | TierReport) -> list[str]:
    return [*(f"  + {one}" for one in report.guarantees), *(f"  - {gap}" for gap in report.gaps)]


def _diagnosis(diagnosis: Diagnosis) -> list[str]:
    lines = [f"{name:<20}{value}" for name, value in diagnosis.features.items()]
    lines += ["", "Tiers, strongest first. + is guaranteed, - is not."]
    for tier in diagnosis.tiers:
        state = f"no: {tier.refusal}" if tier.refusal else "yes"
        chosen = "  <- used by default" if tier.name == diagnosis.chosen else ""
        lines += ["", f"tier {tier.name:<10}{state}{chosen}", *_promises(tier)]
        if tier.refusal:
            lines.append(f"  to enable it: {tier.remedy}")
    return lines
