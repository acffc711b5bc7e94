"""Where engines are placed, which nodes may judge, and errors of ``--ray`` in one line."""

from __future__ import annotations

import dataclasses
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay import __version__, models
from assay.cluster.actors import HostPlace
from assay.cluster.connection import Node, check_address, unwrap
from assay.cluster.engine import check_libraries
from assay.cluster.host import PoolFacts
from assay.cluster.sandbox import PoolRules
from assay.cluster.site import engine_places, gpus_per_engine, open_here
from assay.errors import ModelError, RunError, SandboxError, UsageError
from assay.models import EngineOptions
from assay.types import Benchmark, Capabilities, ModelIdentity
from tests.cluster.ray_cluster import require_ray
from tests.conftest import Cli, references, write_completions

CPU_NODE, GPU_NODE = Node("a", "a", 16, 0), Node("b", "b", 64, 8)
FACTS = PoolFacts(Capabilities("process", "landlock", "cpython 3.11.2"), 16)


def places(nodes: list[Node], **options: Any) -> list[tuple[str, int]]:
    found = EngineOptions(**options)
    gpus = gpus_per_engine(nodes, found)
    return [place.key for place in engine_places(nodes, gpus, found.threads)]


def test_one_engine_per_gpu() -> None:
    assert places([CPU_NODE, GPU_NODE]) == [("b", n) for n in range(8)]


def test_a_model_that_is_split_takes_several_gpus() -> None:
    assert places([GPU_NODE], devices="0,1,2,3") == [("b", 0), ("b", 1)]


def test_without_gpus_one_engine_per_node_or_per_threads() -> None:
    assert places([CPU_NODE]) == [("a", 0)]
    assert places([CPU_NODE], threads=4) == [("a", n) for n in range(4)]
    assert places([CPU_NODE], threads=32) == [("a", 0)]
    assert places([CPU_NODE, GPU_NODE], device="cpu") == [("a", 0), ("b", 0)]
    assert places([CPU_NODE, GPU_NODE], devices="cpu") == [("a", 0), ("b", 0)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"device": "cuda"}, "--device cuda: no node of the cluster has a GPU"),
        ({"devices": "0,1"}, "--devices 0,1: no node of the cluster has 2 GPUs"),
    ],
)
def test_gpus_are_requested_where_none_are(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        places([CPU_NODE], **options)


def test_the_driver_needs_no_gpu_and_has_the_identity_of_the_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own number format would be that of a CPU, and every node would refuse the model."""

    def open_model(_: str, options: EngineOptions, __: Any) -> Any:
        assert options.device == "auto"
        variant = options.dtype or "float32"
        return SimpleNamespace(identity=ModelIdentity("m", "hf", "w", "chat", variant=variant))

    monkeypatch.setattr(models, "open_model", open_model)
    for options, variant in (
        (EngineOptions(device="cuda"), "bfloat16"), (EngineOptions(dtype="float16"), "float16"),
    ):  # fmt: skip
        assert open_here("m", options, 1, print).identity.variant == variant


def test_nodes_that_judge_alike_are_accepted() -> None:
    rules = PoolRules()
    assert rules.accept(HostPlace(CPU_NODE), FACTS) == 16
    assert rules.accept(HostPlace(GPU_NODE), FACTS._replace(workers=64)) == 64


@pytest.mark.parametrize("other", [{"tier": "user"}, {"python": "cpython 3.12.1"}])
def test_nodes_that_judge_differently_are_refused(other: dict[str, str]) -> None:
    rules = PoolRules()
    rules.accept(HostPlace(CPU_NODE), FACTS)
    found = dataclasses.replace(FACTS.capabilities, **other)  # type: ignore[arg-type]
    with pytest.raises(SandboxError, match="node b: its sandbox is .* Give a --sandbox-tier"):
        rules.accept(HostPlace(GPU_NODE), FACTS._replace(capabilities=found))


def test_another_version_of_assay_is_refused() -> None:
    with pytest.raises(SandboxError, match=f"has assay 9.9, but the driver has {__version__}"):
        PoolRules().accept(HostPlace(CPU_NODE), FACTS._replace(version="9.9"))


def test_another_version_of_an_engines_library_is_refused() -> None:
    ours = {"torch": "2.11.0+cpu", "xllamacpp": "0.3", "vllm": ""}
    check_libraries("b", {"torch": "2.11.0+cu130", "xllamacpp": "", "vllm": "0.32"}, ours)
    with pytest.raises(ModelError, match=r"node b: has xllamacpp 0\.2, the driver 0\.3"):
        check_libraries("b", {**ours, "xllamacpp": "0.2"}, ours)


def test_errors_of_hosts_are_assays_own() -> None:
    error = RuntimeError("wrapped")
    error.cause = ModelError("cannot load it")  # type: ignore[attr-defined]
    assert str(unwrap(error)) == "cannot load it"
    assert isinstance(unwrap(ValueError("died")), RunError)


def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_addresses_that_cannot_be_used_are_one_line() -> None:
    with pytest.raises(UsageError, match="--ray humaneval: is not an address"):
        check_address("humaneval")
    with pytest.raises(UsageError, match="--ray ray://head:10001: is not an address"):
        check_address("ray://head:10001")
    with pytest.raises(UsageError, match="cannot be reached .* Check the address"):
        check_address(f"127.0.0.1:{unused_port()}")


def test_another_server_than_ray_is_refused() -> None:
    """Ray itself would try for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=refuse_like_http, args=(server,), daemon=True).start()
        with pytest.raises(UsageError, match="is not the head of a Ray cluster"):
            check_address(f"127.0.0.1:{server.getsockname()[1]}")


def refuse_like_http(server: socket.socket) -> None:
    client, _ = server.accept()
    with client:
        client.recv(1024)
        client.sendall(b"HTTP/1.1 505 HTTP Version Not Supported\r\n\r\n")


def score(assay: Cli, mini: Benchmark, folder: Path, *arguments: str, **env: str) -> Any:
    path = write_completions(folder / "samples.jsonl", references(mini))
    return assay("score", path, "--benchmark", "mini", *arguments, env=env)


def test_a_broken_address_is_one_line(assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    done = score(assay, mini, tmp_path, "--ray", f"127.0.0.1:{unused_port()}")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("assay: --ray 127.0.0.1:")


def test_without_ray_the_error_names_the_extra(
    assay: Cli, mini: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = score(assay, mini, tmp_path, "--ray")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "ray is not installed" in done.stderr
    assert "[ray]" in done.stderr


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_no_cluster_at_auto_is_one_line(real_assay: Cli, mini: Benchmark, tmp_path: Path) -> None:
    require_ray()
    nothing = {"RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": str(tmp_path), "RAY_ADDRESS": ""}
    done = score(real_assay, mini, tmp_path, "--ray", "auto", **nothing)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Start a cluster with `ray start --head`" in done.stderr


def test_ray_is_imported_only_when_it_is_used() -> None:
    script = (
        "import sys; sys.argv = ['assay', '--version']\n"
        "from assay.cli import main\n"
        "import assay.cluster, assay.cli.eval, assay.cli.score, assay.cli.suite\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit('ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0
