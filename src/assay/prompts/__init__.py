"""Build prompts by strategy: from a problem to what a model is sent. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.types import Problem, Prompt, PromptForm


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to ask. Its version is part of the protocol: raise it with every change of wording."""

    name: str
    version: int
    build: Callable[[Problem, PromptForm], Prompt]


strategies: Registry[Strategy] = Registry("prompt strategy", "assay.prompts")
