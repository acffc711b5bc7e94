"""Find the reasons why a result must not be published as the benchmark's score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import RunError
from assay.protocol import compute_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from assay.protocol import Protocol
    from assay.runs.about import Environment
    from assay.runs.result import Result
    from assay.scoring import Coverage
    from assay.types import Completion

ADDED_IN_ROUNDS = "samples were added until a comparison decided, which biases the score"


def publication_obstacles(
    coverage: Coverage,
    protocol: Protocol,
    completions: Iterable[Completion],
    environments: Sequence[Environment],
) -> list[str]:
    """Return the reasons against a publication, one phrase each."""
    return [
        *_coverage_obstacles(coverage),
        *_device_obstacles(protocol, completions, environments),
        *([f"the programs were judged by {protocol.judge}"] if protocol.judge else []),
    ]


def require_publishable(results: Iterable[Result]) -> None:
    """Raise RunError if a result is not publishable."""
    obstacles = dict.fromkeys(reason for result in results for reason in result.not_publishable)
    if obstacles:
        raise RunError(
            f"the result is not publishable: {'; '.join(obstacles)}. "
            "Evaluate again with --fresh --publishable."
        )


def _coverage_obstacles(coverage: Coverage) -> list[str]:
    found = []
    if not coverage.whole:
        found.append(
            f"{coverage.selected_problems} of {coverage.benchmark_problems} problems were selected"
        )
    if coverage.judged_problems < coverage.selected_problems:
        found.append(
            f"{coverage.judged_problems} of {coverage.selected_problems} problems were judged"
        )
    if missing := coverage.samples - coverage.judged_samples:
        found.append(f"{missing} of {coverage.samples} samples have no verdict")
    return found


def _device_obstacles(
    protocol: Protocol,
    completions: Iterable[Completion],
    environments: Sequence[Environment],
) -> list[str]:
    if protocol.origin:
        return ["the completions were recorded elsewhere"]
    found = []
    gates = [made_in.parity_gate.state if made_in.parity_gate else "" for made_in in environments]
    used_gpu = {completion.used_gpu for completion in completions}
    if used_gpu != {True}:
        amount = "some" if True in used_gpu else "all"
        found.append(f"{amount} completions were generated without a GPU of this machine")
    elif any(state != "passed" for state in gates):
        found.append("the parity gate was switched off")
    if options := compute_options(protocol.asking.engine_options):
        found.append(f"the parity gate does not cover --engine-option {', '.join(options)}")
    return found
