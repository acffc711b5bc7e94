"""The rule for CPU limits that benchmarks of short test code share."""

from __future__ import annotations

from assay.types import TimeRule

# Of all recorded completions that are right under a fixed limit of 10 s, none fails under this
# rule, and programs that never end cost a tenth (benchmarks/time_limits.py, docs/time-limits.md).
SHORT_TESTS = TimeRule(least_s=1.0, factor=100.0)
