"""Check in a process with limits that llama.cpp can render a GGUF file's chat template.

llama.cpp renders the template while it loads a file, to detect its features, without a limit of
time or memory. Run as a script with PATH [TEMPLATE], this module loads as little of the file as
possible and renders one message. It counts CPU time, so that a slow disk makes no difference.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

from assay.datasets import cache_dir
from assay.errors import ModelError
from assay.models.engines.llamacpp.render import apply_template
from assay.types import Message

if TYPE_CHECKING:
    from pathlib import Path

CPU_S = 5
MEMORY = 2 << 30
WALL_S = 300.0
HARMLESS = "chatml"
SAID = (Message("user", "hello"),)


def check_template(path: Path, known_by: str) -> None:
    """Raise ModelError if llama.cpp cannot render the file's chat template within the limits.

    ``known_by`` names template, tokenizer and llama.cpp. A passed check is cached under it.
    """
    note = cache_dir() / "templates" / hashlib.sha256(known_by.encode()).hexdigest()
    if note.exists():
        return
    if not _can_render(path):
        # Ignore other reasons, such as a damaged file: the engine has a better message for them.
        if _can_render(path, HARMLESS):
            raise ModelError(
                f"{path}: rendering its chat template takes more than {CPU_S} s or "
                f"{MEMORY >> 30} GB. Do not use this file, or repair its template."
            )
        return
    with contextlib.suppress(OSError):  # without a cache it is slower, nothing else
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()


def _can_render(path: Path, template: str = "") -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "assay.models.engines.llamacpp.template", str(path), template],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "GGML_NO_BACKTRACE": "1"},
            timeout=WALL_S,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(path: str, template: str) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.chat_template = template
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_parallel = 256, 32, 32, 1
    params.n_gpu_layers = params.verbosity = 0
    params.warmup = params.fit_params = False
    params.no_extra_bufts = True  # weights stay as they are in the file
    params.n_threads_http = params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_DATA, MEMORY),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))
    server = xllamacpp.Server(params)
    with contextlib.suppress(ValueError):  # it may refuse this message
        apply_template(server.listening_address, SAID)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
