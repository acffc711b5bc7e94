"""Compute what progress lines say: speed, time left, and when the next line is due.

Nothing here reads a clock. Every event comes with its time, in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from assay.scoring import Tally, estimate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.types import Completion, Verdict

FIRST_LINE_S, NEXT_LINE_S = 10.0, 30.0
LEAST_DONE, LEAST_S, LEAST_SHARE = 5, 10.0, 0.02  # before a time left is estimated
BACKLOG = 32  # samples that wait for a verdict if judging is slower than generation

Stage = Literal["waiting", "loading", "generating"]


def is_line_due(now: float, began: float, last: float | None) -> bool:
    """Return whether a log needs a line: the first after 10 s, further ones every 30 s."""
    return now - began >= FIRST_LINE_S if last is None else now - last >= NEXT_LINE_S


def seconds_left(done: int, left: int, seconds: float) -> float | None:
    """Return the time left at the speed so far, or None while too little is done."""
    enough = done >= LEAST_DONE and done >= LEAST_SHARE * (done + left) and seconds >= LEAST_S
    return left * seconds / done if enough else None


def render_seconds(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@dataclass(slots=True)
class GenerationProgress:
    """Completions being generated. The time before the model is loaded does not count."""

    total: int  # to generate now, without those of an earlier run
    opened: float
    stage: Stage = "waiting"
    done: int = 0
    failed: int = 0  # counted apart: failing takes a different time
    tokens: int = 0  # reported by the engine, with those of unfinished completions
    done_tokens: int = 0  # tokens of finished completions
    began: float | None = None
    last: float = 0.0  # time of the last completion

    def load(self, now: float) -> None:
        """Record that the model is being loaded."""
        self.stage, self.opened = "loading", now

    def report(self, tokens: int, now: float) -> None:
        """Record that the model is loaded and has generated this many tokens."""
        self.stage = "generating"
        self.began = now if self.began is None else self.began
        self.tokens = max(self.tokens, tokens)

    def add(self, completion: Completion, now: float) -> None:
        """Add a completion. Without earlier reports, generation began when it was requested."""
        if completion.reused:  # it takes no time
            self.total -= 1
            return
        if completion.error is not None:
            self.failed += 1
            return
        sent = max(self.opened, now - completion.inference_ms / 1000)
        self.began = sent if self.began is None else self.began
        self.stage, self.last = "generating", now
        self.done += 1
        self.done_tokens += completion.tokens_generated
        self.tokens = max(self.tokens, self.done_tokens)

    @property
    def left(self) -> int:
        return self.total - self.done - self.failed

    def seconds(self, now: float) -> float:
        """Return the time spent generating, up to the last completion."""
        if self.began is None:
            return 0.0
        return (now if self.left else self.last) - self.began

    def tokens_per_second(self, now: float) -> float | None:
        """Return the speed of all sequences together, or None in the first second."""
        seconds = self.seconds(now)
        return self.tokens / seconds if self.tokens and seconds >= 1 else None

    def seconds_left(self, now: float) -> float | None:
        """Return the time for the missing completions, or None while unknown.

        An estimate from finished completions is too long, because many more are in progress. One
        from tokens is too short, because short completions finish first. In simulated runs with
        batch size 16 they were up to 3 times and down to a third of the true time. Their mean was
        within a factor of 2.
        """
        seconds = self.seconds(now)
        by_count = seconds_left(self.done, self.left, seconds)
        if by_count is None or not self.tokens:
            return by_count
        missing = self.left * self.done_tokens / self.done - (self.tokens - self.done_tokens)
        return (by_count + max(0.0, missing) * seconds / self.tokens) / 2

    def describe_wait(self, now: float) -> str:
        """Return the stage before the first token and its duration, or an empty text after it."""
        if not self.left or self.stage == "generating":
            return ""
        doing = "loading the model" if self.stage == "loading" else "waiting for the model"
        return f"{doing} {render_seconds(now - self.opened)}"

    def describe_pace(self, now: float, left: float | None) -> list[str]:
        """Return the speed and the time left, each only if known."""
        rate = self.tokens_per_second(now)
        speed = [] if rate is None else [f"{rate:.0f} tok/s"]
        return speed if left is None else [*speed, f"ETA {render_seconds(left)}"]


@dataclass(slots=True)
class RunProgress:
    """Progress of a run: completions generated and samples judged."""

    total: int
    generation: GenerationProgress
    done: int = 0  # samples that are judged
    invalid: int = 0
    executed: int = 0  # new verdicts: neither from an earlier run nor from the cache
    began: float | None = None  # when the first execution began
    tallies: dict[str, tuple[int, int]] = field(default_factory=dict)  # valid and passing samples

    def resume(self, verdicts: Iterable[Verdict]) -> None:
        """Add the verdicts of an earlier run."""
        for verdict in verdicts:
            self._count(verdict)

    def judge(self, verdict: Verdict, now: float, *, cached: bool) -> None:
        """Add a verdict."""
        if not cached:
            self.began = now - verdict.wall_s if self.began is None else self.began
            self.executed += 1
        self._count(verdict)

    def _count(self, verdict: Verdict) -> None:
        self.done += 1
        if verdict.status == "invalid":
            self.invalid += 1
            return
        valid, right = self.tallies.get(verdict.task_id, (0, 0))
        self.tallies[verdict.task_id] = valid + 1, right + (verdict.status == "pass")

    def seconds_left(self, now: float) -> float | None:
        """Return the time until all samples are judged, or None while unknown.

        Judging that keeps up with generation mostly waits, so its speed so far says nothing.
        """
        judging, left = None, self.total - self.done
        if self.began is not None:
            judging = seconds_left(self.executed, left, now - self.began)
        if not self.generation.left:
            return judging
        generating = self.generation.seconds_left(now)
        if generating is None or judging is None or left - self.generation.left < BACKLOG:
            return generating
        return max(generating, judging)

    def text(self, now: float) -> str:
        """Return the line: stage, progress, score so far, speed and time left."""
        generation = self.generation
        parts = [wait] if (wait := generation.describe_wait(now)) else []
        if generation.left and not wait:
            parts.append(f"generating {generation.total - generation.left}/{generation.total}")
        ended = self.done == self.total
        parts.append(f"{'' if ended else 'judged '}{self.done}/{self.total}")
        parts += [self._score(), f"invalid {self.invalid}"]
        left = None if ended else self.seconds_left(now)
        return "  ".join([*parts, *generation.describe_pace(now, left)])

    def _score(self) -> str:
        """Return pass@1 so far with its interval."""
        score = estimate([Tally(task, *counts) for task, counts in self.tallies.items()], 1)
        if score is None:
            return "pass@1 -"
        return f"pass@1 {100 * score.value:.1f} % [{100 * score.low:.1f}, {100 * score.high:.1f}]"


@dataclass(slots=True)
class BatchProgress:
    """Progress of a batch of completions without verdicts."""

    before: int  # completions of an earlier run
    generation: GenerationProgress

    @property
    def total(self) -> int:
        return self.before + self.generation.total

    @property
    def done(self) -> int:
        return self.total - self.generation.left

    def text(self, now: float) -> str:
        """Return the line: progress, and the waiting time or the speed and the time left."""
        generation = self.generation
        wait = generation.describe_wait(now)
        pace = generation.describe_pace(now, generation.seconds_left(now))
        return "  ".join([f"{self.done}/{self.total}", *([wait] if wait else pace)])


@dataclass(slots=True)
class StepProgress:
    """Progress of other work of known size. Its time left counts from the first report."""

    what: str
    opened: float
    done: int = 0
    total: int = 0
    first: tuple[int, float] | None = None  # amount done and time at the first report

    def report(self, done: int, total: int, now: float) -> None:
        """Record how much is done."""
        self.done, self.total = done, total
        self.first = self.first or (done, now)

    def text(self, now: float) -> str:
        """Return the line: the work, its progress and the time left."""
        if self.first is None or not self.total:
            return f"{self.what} {render_seconds(now - self.opened)}"
        before, began = self.first
        parts = [f"{self.what} {self.done:,}/{self.total:,}".strip()]
        left = seconds_left(self.done - before, self.total - self.done, now - began)
        return "  ".join(parts if left is None else [*parts, f"ETA {render_seconds(left)}"])
