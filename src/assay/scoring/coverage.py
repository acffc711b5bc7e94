"""Compute how much of a benchmark a score covers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from assay.scoring.pass_at_k import Tally

MOST_UNSCORABLE = 0.1  # of the selected problems; if more references fail, the machine is at fault


@dataclass(frozen=True, slots=True)
class Coverage:
    """Count the problems and samples that were judged, and those that should have been.

    A problem counts as judged when all of its samples have a verdict that is not invalid.
    """

    benchmark_problems: int
    selected_problems: int
    judged_problems: int
    samples: int
    judged_samples: int
    unscorable_problems: int = 0  # not judged, because their references fail on this machine

    @property
    def complete(self) -> bool:
        """Return whether every sample of every selected problem was judged.

        A few problems may be unscorable: to try them again would change nothing.
        """
        scorable = self.selected_problems - self.unscorable_problems
        return (
            self.unscorable_problems <= MOST_UNSCORABLE * self.selected_problems
            and self.judged_problems == scorable
            and self.judged_samples * self.selected_problems == self.samples * scorable
        )

    @property
    def whole(self) -> bool:
        """Return whether all problems of the benchmark were selected."""
        return self.selected_problems == self.benchmark_problems


def coverage(
    tallies: Sequence[Tally],
    n_samples: int,
    benchmark_problems: int,
    unscorable: Collection[str] = (),
) -> Coverage:
    """Return the coverage of a run; ``tallies`` has an entry for every selected problem.

    ``unscorable`` has the tasks whose references fail.
    """
    return Coverage(
        benchmark_problems=benchmark_problems,
        selected_problems=len(tallies),
        judged_problems=sum(t.n >= n_samples for t in tallies),
        samples=n_samples * len(tallies),
        judged_samples=sum(t.n for t in tallies),
        unscorable_problems=sum(t.n == 0 and t.task_id in unscorable for t in tallies),
    )
