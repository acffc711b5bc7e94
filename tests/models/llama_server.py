"""llama.cpp's own HTTP server in a process of its own, as a user runs it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def llama_server(model: Path) -> Iterator[str]:
    """Serve a GGUF file on loopback; yield the address as users give it."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},  # threads that spin are slow under load
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        yield f"{address}/v1"
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx, params.n_parallel, params.warmup, params.n_gpu_layers = 1024, 1, False, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    replies.write(f"{server.listening_address}\n")
    replies.flush()
    sys.stdin.read()  # until the test has ended
    os._exit(0)


if __name__ == "__main__":
    main()
