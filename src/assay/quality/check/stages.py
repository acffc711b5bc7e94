"""Check whether a model's file is sound: stages from its first bytes to a generated text."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from assay.errors import AssayError, ModelError, install_hint
from assay.formats.architectures import hf_name
from assay.formats.format import find_format, formats
from assay.formats.huggingface.checkpoint import weight_files
from assay.models import Model, ModelReference, describe_file, parse_reference
from assay.progress import Reporter, Silent
from assay.quality.check import shapes, texts, values, with_engine
from assay.quality.check.contents import Contents, EngineOnlyError, SkippedError, TensorPart
from assay.quality.check.texts import TrialQuestion

Status = Literal["pass", "fail", "skipped"]
STAGES = (
    "container", "header", "index", "values", "shapes", "layers", "tokenizer", "template",
    "forward", "sample",
)  # fmt: skip
# Stages that must pass before a stage. The engine's stages need that none before has failed.
NEEDS = {
    "header": ("container",),
    "index": ("container", "header"),
    **dict.fromkeys(("values", "shapes", "layers"), ("container", "header", "index")),
    **dict.fromkeys(("tokenizer", "template"), ("container", "header")),
}
BY_ENGINE = ("forward", "sample")
# By format, imported when one is used: a format can be deleted with its files.
OPENERS = {"apr": "apr:open_apr", "gguf": "gguf:open_gguf", "hf": "folder:open_folder"}
LONGEST_REASON = 300
# Errors from reading metadata that a writer, or damage, has turned into something else.
CONFUSION = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError,
    MemoryError,
)  # fmt: skip
SILENT = Silent()


@dataclass(frozen=True, slots=True)
class CheckStage:
    """One thing that was checked, and the finding, in one line."""

    name: str
    status: Status
    reason: str


def check(
    spec: str,
    *,
    run: bool = True,
    model: Callable[[], Model] | None = None,
    reporter: Reporter = SILENT,
) -> Iterator[CheckStage]:
    """Yield the stages of the model that ``spec`` names, each as soon as it is done.

    Without ``run`` the engine is not used. ``model`` opens the model for those who use it after
    this, and is then not closed here.
    """
    return _stages(_Case(parse_reference(spec, reporter.note), run, reporter, model))


def _stages(case: _Case) -> Iterator[CheckStage]:
    done: dict[str, CheckStage] = {}
    try:
        for name in STAGES:
            case.sound = all(stage.status != "fail" for stage in done.values())
            stage = _blocked(name, case, done) or _try_stage(name, getattr(case, name), case.path)
            done[name] = stage
            yield stage
    finally:
        case.close()


def _blocked(name: str, case: _Case, done: dict[str, CheckStage]) -> CheckStage | None:
    if name in BY_ENGINE and not case.run:
        return CheckStage(name, "skipped", "not requested")
    for need in NEEDS.get(name, () if name == "container" else tuple(done)):
        if done[need].status == "fail" or (name in NEEDS and done[need].status == "skipped"):
            return CheckStage(name, "skipped", f"{need} did not pass")
    return None


def _try_stage(name: str, work: Callable[[], str], path: Path) -> CheckStage:
    status: Status = "pass"
    try:
        reason = work()
    except SkippedError as why:
        status, reason = "skipped", str(why)
    except ImportError as error:
        status, reason = "skipped", f"needs {error.name}: {install_hint('apr')}"
    except AssayError as error:
        status, reason = "fail", str(error)
    except OSError as error:
        status, reason = "fail", f"it cannot be read: {error.strerror or error}"
    except CONFUSION as error:
        status, reason = "fail", f"it cannot be parsed ({type(error).__name__}: {error})"
    return CheckStage(name, status, _line(reason.removeprefix(f"{path}").lstrip(" /")))


class _Case:
    """A model under examination. What stages have in common is read once."""

    def __init__(
        self,
        reference: ModelReference,
        run: bool,
        reporter: Reporter,
        model: Callable[[], Model] | None,
    ) -> None:
        self._reference, self.path, self._shared = reference, reference.path, model
        self.run, self._reporter = run, reporter
        self.sound = True  # so far
        self._model: Model | None = None

    def container(self) -> str:
        if not self.path.is_file() and not self.path.is_dir():
            raise ModelError("it is neither a file nor a folder")
        if not (name := find_format(self.path)):
            raise ModelError(f"it is {describe_file(self.path)}, not a supported model format")
        title = formats.get(name).title
        if self.path.is_dir():
            names = weight_files(self.path)
            size = sum((self.path / name).stat().st_size for name in names)
            return f"{title}, {size / 1e6:,.1f} MB in {len(names)} file(s)"
        return f"{title}, {self.path.stat().st_size / 1e6:,.1f} MB"

    def header(self) -> str:
        return self._contents.summary

    def index(self) -> str:
        parts = self._parts
        if not parts:
            raise ModelError("there are no tensors")
        _none(self._contents.faults(parts))
        inside = "each inside the file and with the size that its shape needs"
        return f"{len(parts):,} tensors, {inside}"

    def values(self) -> str:
        counts = values.not_finite(self._parts, partial(self._reporter.preparing, "values"))
        _none(f"{name} has NaN or infinity in {count:,} place(s)" for name, count in counts.items())
        size = sum(part.size for part in self._parts)
        return f"no NaN and no infinity in {size / 1e6:,.1f} MB of weights"

    def shapes(self) -> str:
        settings = self._contents.settings(self._shapes)
        _none(shapes.wrong_shapes(settings, self._shapes))
        return str(settings)

    def layers(self) -> str:
        settings = self._contents.settings(self._shapes)
        _none(shapes.missing(settings, self._shapes))
        head = "embedding and head" if shapes.HEAD in self._shapes else "embedding, also the head"
        return f"{head}; attention, MLP and norms in all {settings.layers} layers"

    def tokenizer(self) -> str:
        try:
            return texts.try_parts(TrialQuestion(tokenizer=self._contents.tokenizer()))
        except EngineOnlyError as why:
            return self._by_engine(with_engine.round_trip, why)

    def template(self) -> str:
        template = self._contents.template()
        try:
            return texts.try_parts(TrialQuestion(template=template))
        except EngineOnlyError as why:
            return self._by_engine(with_engine.chat, why)

    def forward(self) -> str:
        return with_engine.forward(self._engine())

    def sample(self) -> str:
        return with_engine.sample(self._engine())

    def close(self) -> None:
        if self._model is not None and self._shared is None:
            self._model.close()

    @cached_property
    def _contents(self) -> Contents:
        module, name = OPENERS[find_format(self.path)].split(":")
        opener = getattr(importlib.import_module(f"assay.quality.check.{module}"), name)
        contents: Contents = opener(self.path)
        return contents

    @cached_property
    def _parts(self) -> Sequence[TensorPart]:
        return self._contents.parts()

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {hf_name(part.name) or part.name: part.shape for part in self._parts}

    def _engine(self) -> Model:
        if self._model is None:
            self._model = with_engine.open_engine(self._reference, self._shared)
        return self._model

    def _by_engine(self, work: Callable[[Model], str], why: EngineOnlyError) -> str:
        """Run what needs the engine, if allowed. The engine never gets a damaged file."""
        if not self.run or not self.sound:
            raise why
        return work(self._engine())


def _none(faults: Iterable[str]) -> None:
    """Raise an error if there are any faults, with the first and the number of others."""
    problems = list(faults)
    if problems:
        more = f" (and {len(problems) - 1:,} more like it)" if len(problems) > 1 else ""
        raise ModelError(problems[0] + more)


def _line(text: str) -> str:
    """Return one line that is safe for a terminal. Names in a damaged file may be anything."""
    line = " ".join(text.splitlines())
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return shown if len(shown) <= LONGEST_REASON else shown[: LONGEST_REASON - 1] + "…"
