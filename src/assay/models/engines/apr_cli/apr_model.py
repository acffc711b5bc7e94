"""Run APR and GGUF files with aprender's ``apr`` binary: ``apr run MODEL --batch-jsonl IN``.

``apr`` reads a file of prompts and writes one JSON line per answer, in order. One temperature and
one top-k hold for all prompts. It accepts no seed and no stop words. It puts every prompt into one
ChatML user turn, whatever template the model has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from assay.datasets import file_sha256
from assay.errors import ModelError, UsageError
from assay.formats.huggingface.folder import sha256_of
from assay.models import Backend, Rendered, backends
from assay.models.engines.apr_cli import apr_batch
from assay.models.model import EngineFacts, LoadedElsewhere
from assay.models.names import default_name
from assay.types import ModelIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from assay.models import EngineOptions, Loading
    from assay.types import Completion, Decoding, Prompt, Request

MAGICS = (b"APR\0", b"GGUF")
# A copy of apr's own template, needed for its digest.
TEMPLATE = "<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
DEVICE_FLAGS = {"auto": (), "cpu": ("--no-gpu",), "cuda": ("--gpu",)}
QUESTION_TIMEOUT_S = 60.0
MOST_LINE = 1 << 24  # characters of an answer: 16 for each of a million tokens
LOG_END = 1 << 16  # bytes at the end of apr's log that are read
MOST_QUOTED = 200  # characters of apr's messages that are shown or recorded
ACCEPTS = frozenset({"batch_mode", "parallel", "device", "prompt_form"})


@dataclass(frozen=True, slots=True)
class AprFacts(EngineFacts):
    apr: str
    parallel: int = 1
    batch_invariant: bool = True
    prompt: str = "one ChatML user turn by apr"
    stop_words: str = "cut off afterwards"
    seeded: bool | None = None
    device: str | None = None


class AprCliModel(LoadedElsewhere):
    """A file that ``apr`` can run. The process starts once, with all requests."""

    def __init__(self, reference: str, options: EngineOptions) -> None:
        self._path = Path(reference).resolve()
        _check_file(self._path)
        if options.parallel > 1 or options.batch_mode == "on":
            raise UsageError(
                "--parallel, --batch-mode on: apr runs one prompt at a time. Drop the option (in "
                "assay bench use --batch 1)."
            )
        if options.prompt_form == "text":
            raise UsageError("--prompt-form text: apr puts every prompt into a chat turn. Drop it.")
        self._binary = _binary()
        self._device = options.device
        self._process: subprocess.Popen[str] | None = None
        self._facts = AprFacts(_run_binary(self._binary, "--version")[:MOST_QUOTED])
        self.identity = ModelIdentity(
            name=options.name or default_name(Path(reference)),
            engine="apr-cli",
            weights_sha256=file_sha256(self._path),
            prompt_form="chat",
            template_sha256=sha256_of(TEMPLATE),
            path=str(self._path),
        )

    def render(self, prompt: Prompt) -> Rendered:
        """Return the prompt as apr writes it. apr reports no tokens."""
        if why := apr_batch.unsuited(prompt):
            raise ModelError(why)
        return Rendered(TEMPLATE.format(prompt=prompt.messages[0].content))

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Yield completions. Take all requests at once, since ``apr`` reads them from a file."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
            batch = Path(folder) / "prompts.jsonl"
            waiting, refused = apr_batch.write(requests, batch)
            if refused and not waiting:  # the setting is wrong for all prompts, not for one
                raise ModelError(refused[0].error)
            if waiting:
                decoding = next(iter(waiting.values())).decoding
                self._process = self._start(decoding, batch, log)
                try:
                    yield from self._answers(self._process, waiting, log)
                finally:
                    self.close()
            yield from refused

    def describe(self) -> AprFacts:
        return self._facts

    def keep_loaded(self) -> AbstractContextManager[Loading]:
        return nullcontext("every call")

    def close(self) -> None:
        if (process := self._process) is not None:
            process.kill()
            process.wait()

    def _start(self, decoding: Decoding, batch: Path, log: IO[bytes]) -> subprocess.Popen[str]:
        self._facts = replace(self._facts, seeded=decoding.temperature == 0)
        return subprocess.Popen(
            [
                self._binary, "run", str(self._path),
                "--batch-jsonl", str(batch),
                "--max-tokens", str(decoding.max_tokens),
                "--temperature", str(decoding.temperature),
                "--top-k", str(decoding.top_k),
                *DEVICE_FLAGS[self._device],
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C is the harness's to handle
        )  # fmt: skip

    def _answers(
        self, process: subprocess.Popen[str], waiting: dict[str, Request], log: IO[bytes]
    ) -> Iterator[Completion]:
        assert process.stdout is not None
        variety = None if self._facts.seeded else apr_batch.Variety()
        with process.stdout as lines:
            while waiting and (line := lines.readline(MOST_LINE)):
                if len(line) == MOST_LINE:
                    raise ModelError(
                        f"apr: wrote a line of more than {MOST_LINE:,} characters. "
                        "Install another version."
                    )
                if not line.startswith("{"):
                    continue  # a message for the user
                completion = apr_batch.read(line, waiting)
                if completion.error is None:
                    self._check_device(completion)
                    if variety is not None:
                        variety.check(completion)
                yield completion
        if waiting:
            raise ModelError(
                f"{self._path}: apr ended unexpectedly (exit {process.wait()}"
                f"{_last_line(log)}) with {len(waiting)} prompts left. "
                "Completed work is saved; run the same command to resume."
            )

    def _check_device(self, completion: Completion) -> None:
        if self._device == "cuda" and not completion.used_gpu:
            raise ModelError(
                "apr: did not use a GPU. Install a build with GPU support, or use --device cpu."
            )
        self._facts = replace(self._facts, device="gpu" if completion.used_gpu else "cpu")


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise ModelError(f"{path}: is not a file. Give the path of a model file.")
    with path.open("rb") as file:
        start = file.read(4)
    if start not in MAGICS:
        raise ModelError(
            f"{path}: is not a .apr or .gguf file (it starts with {start!r}). Give another file."
        )


def _binary() -> str:
    binary = shutil.which("apr")
    if binary is None:
        raise ModelError(
            "apr: is not on PATH. Install it with: cargo install apr-cli --features inference"
        )
    if "--batch-jsonl" not in _run_binary(binary, "run", "--help"):
        raise ModelError(
            f"{binary}: its run command has no option --batch-jsonl. Install a newer version, with "
            "--features inference."
        )
    return binary


def _run_binary(binary: str, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [binary, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=QUESTION_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelError(f"{binary}: cannot be run ({error}). Reinstall it.") from error
    return done.stdout.strip()


def _last_line(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_END))
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    return next((f", {line[:MOST_QUOTED]}" for line in reversed(lines) if line), "")


backends.register("apr-cli")(Backend(AprCliModel, lambda _: False, ACCEPTS))
