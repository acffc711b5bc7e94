"""What a driver does about actors that are late, lost or busy. Ray is replaced by a few objects."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.cluster import actors
from assay.cluster.actors import ActorRole, HostPlace, Objects, RayHost, RayHosts
from assay.cluster.connection import LostHostError, Node
from assay.cluster.model import ClusterModel
from assay.models import Model
from assay.sandbox.stages import StageEnd
from assay.types import Benchmark, Decoding
from tests.pipeline.test_pipeline import ScriptedModel

NODE = Node("a", "a", 16, 1)


class FakeRay:
    """Answer calls with what they return."""

    def get(self, reference: Any, timeout: float) -> Any:  # noqa: ARG002
        return reference

    def wait(self, calls: list[Any], **_: Any) -> None: ...
    def kill(self, actor: Any) -> None: ...


@dataclass(frozen=True)
class Reference:
    pending: Future[Any]

    def future(self) -> Future[Any]:
        return self.pending


def method(call: Callable[..., Any]) -> Any:
    return SimpleNamespace(remote=call)


def test_a_host_that_did_not_get_a_message_is_given_up() -> None:
    """It would wait for that message for ever, and take no other."""
    answer: Future[Any] = Future()
    put: Future[Any] = Future()
    actor = SimpleNamespace(
        put=method(lambda *_: Reference(put)), take=method(lambda *_: Reference(answer))
    )
    host = RayHost(actor, "a", 1, Objects(FakeRay()), 1)
    found: list[Any] = []
    host.take(found.append)
    host.put([StageEnd()])
    assert found == []
    put.set_exception(ConnectionError("unavailable"))
    host.take(found.append)  # of the next stage
    assert [str(one) for one in found] == ["ConnectionError: unavailable"] * 2
    assert all(isinstance(one, LostHostError) for one in found)


def test_large_contexts_are_stored_once_and_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[bytes] = []

    def store(content: bytes) -> int:
        stored.append(content)
        return len(stored)

    monkeypatch.setattr(actors, "HELD", 10)
    objects = Objects(SimpleNamespace(put=store))
    assert [objects.put(content) for content in (b"12345", b"6789", b"12345")] == [1, 2, 1]
    assert objects.put(b"abcde") == 3  # in the place of the one that was not used for longest
    assert [objects.put(content) for content in (b"12345", b"6789")] == [1, 4]


def start_staff(note: Callable[[str], None]) -> RayHosts:
    role = ActorRole(
        start=lambda _: SimpleNamespace(gpu=method(lambda: "H200")),
        open=lambda _: Reference(Future()),
        accept=lambda *_: 1,
        places=lambda: [HostPlace(NODE)],
        close=lambda _: None,
    )
    return RayHosts(FakeRay(), role, Objects(FakeRay()), note)


def test_hosts_that_do_not_start_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    hosts = start_staff(notes.append)
    assert hosts.start_missing(lambda _: None)
    assert notes == []
    monkeypatch.setattr(actors, "LATE_S", -1.0)
    for _ in range(2):
        hosts.start_missing(lambda _: None)
    (note,) = notes
    assert note.startswith("cluster: 1 host not ready")
    assert "free CPUs or GPUs" in note
    hosts.close()


def test_engines_that_are_there_are_asked_and_no_other_is_started(mini: Benchmark) -> None:
    """They hold all GPUs, so another one would wait for ever."""
    probes: list[Any] = []

    def probe(call: Any) -> str:
        probes.append(call)
        return "probed"

    def model() -> ClusterModel:
        hosts: Any = SimpleNamespace(
            start_missing=lambda _: True,
            wait=lambda _: [SimpleNamespace(actor=SimpleNamespace(gpu=method(lambda: "H200")))],
        )
        here = cast(Model, ScriptedModel(mini))
        return ClusterModel(FakeRay(), here, lambda: hosts, probe, 1)

    assert model().gpu() == "probed"
    loaded = model()
    loaded.preload(Decoding())
    assert loaded.gpu() == "H200"
    assert len(probes) == 1
