"""Open models and sandboxes on the nodes of a Ray cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay import models
from assay.cluster.actors import (
    CALLS_AT_A_TIME,
    ActorRole,
    HostPlace,
    Objects,
    RayHosts,
    end_actors,
)
from assay.cluster.connection import LostHostError, Node, ask, connect, list_nodes
from assay.cluster.engine import EngineAbout, EngineHost, EngineSettings, check_libraries
from assay.cluster.files import FileSource, describe_files
from assay.cluster.host import JudgePool, PoolSettings
from assay.cluster.model import CHECK_S, OPEN_S, Call, ClusterModel
from assay.cluster.sandbox import ClusterSandbox, PoolRules, check_version
from assay.data.printable import quantity
from assay.errors import UsageError
from assay.models import EngineOptions, Model
from assay.models.devices import CPU
from assay.models.options import DTYPES
from assay.pipeline.site import CheckModel
from assay.progress import Announce
from assay.runs import ParityGateOutcome
from assay.sandbox import Sandbox

COLLECTIONS = 100_000, 50, 100


@contextlib.contextmanager
def open_cluster(address: str, note: Announce = lambda _: None) -> Iterator[RaySite]:
    """Connect to the cluster at an address, or start one on this machine (``local``)."""
    with connect(address) as ray, rare_collections():
        site = RaySite(ray, note)
        try:
            note(site.summarize())
            yield site
        finally:
            site.close()


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Look for cycles of garbage less often: a driver's records are many, and have none.

    With the usual thresholds that takes a fifth of the driver's time (benchmarks/cluster.py).
    """
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class RaySite:
    """The site of evaluations on a cluster."""

    pool: type[JudgePool] = JudgePool  # what runs on nodes; a benchmark simulates both
    engine: type[EngineHost] = EngineHost

    def __init__(self, ray: Any, note: Announce = lambda _: None) -> None:
        self._ray, self._note = ray, note
        self._objects = Objects(ray)
        self._pools: dict[PoolSettings, tuple[RayHosts, PoolRules]] = {}
        self._models: list[ClusterModel] = []
        self._files: Any = None  # the FileSource
        self._allowed: set[tuple[str, ...]] = set()

    def summarize(self) -> str:
        """Return a line with the nodes and what they have."""
        nodes = self._nodes()
        gpus = sum(node.gpus for node in nodes)
        counts = [(len(nodes), "node"), (sum(node.cpus for node in nodes), "CPU"), (gpus, "GPU")]
        parts = [quantity(count, noun) for count, noun in counts if count]
        return f"ray {self._ray.__version__}: {', '.join(parts)}"

    def open_sandbox(self, kind: str, workers: int, tier: str, python: str) -> Sandbox:
        settings = PoolSettings(kind, workers, tier, python)
        if settings not in self._pools:
            rules = PoolRules()
            self._pools[settings] = self._hosts(self._pool_role(settings, rules)), rules
        hosts, rules = self._pools[settings]
        return ClusterSandbox(self._ray, hosts, rules)

    def open_model(self, spec: str, options: EngineOptions, announce: Announce) -> Model:
        how = models.backends.get(models.choose_engine(spec, announce).engine).devices
        if how == "none":
            return models.open_model(spec, options, announce)  # a server, or recorded completions
        gpus = gpus_per_engine(self._nodes(), options)  # nodes that join or leave do not change it
        if not gpus:
            options = dataclasses.replace(options, device="cpu")
        here = open_here(spec, options, gpus, announce)
        if how == "processes" and options.devices:
            raise UsageError("--devices: with --ray, every GPU has its own engine. Drop it.")
        role = self._engine_role(engine_settings(spec, options, here), gpus)
        model = ClusterModel(
            self._ray, here, lambda: self._hosts(role), lambda call: self._probe(role, call), gpus
        )
        self._models.append(model)
        return model

    def check_model(
        self, check: CheckModel, spec: str, options: EngineOptions, model: Model, note: Announce
    ) -> ParityGateOutcome:
        if not isinstance(model, ClusterModel) or not model.gpu():
            return check(spec, options, model, note)
        outcome: ParityGateOutcome
        outcome, notes = model.ask_engine(lambda actor: actor.check.remote(check))
        for one in notes:
            note(one)
        return outcome

    def close(self) -> None:
        """End everything that was started on the cluster."""
        for model in self._models:
            model.close()
        for hosts, _ in self._pools.values():
            hosts.close()
        if self._files is not None:
            end_actors(self._ray, [self._files], lambda actor: actor.close.remote())

    def _hosts(self, role: ActorRole) -> RayHosts:
        return RayHosts(self._ray, role, self._objects, self._note)

    def _pool_role(self, settings: PoolSettings, rules: PoolRules) -> ActorRole:
        def start(place: HostPlace) -> Any:
            return self._host(self.pool, place, num_cpus=0).remote(place.node.cpus)

        return ActorRole(
            start,
            lambda actor: actor.open.remote(settings),
            rules.accept,
            lambda: [HostPlace(node) for node in self._nodes()],
            lambda actor: actor.release.remote(),
        )

    def _engine_role(self, settings: EngineSettings, gpus: int) -> ActorRole:
        options = settings.options
        own_threads = "OMP_NUM_THREADS" in os.environ

        def start(place: HostPlace) -> Any:
            if gpus:
                actor = self._host(self.engine, place, num_gpus=gpus, num_cpus=0)
                return actor.remote(0, own_threads)
            cpus = options.threads or place.node.cpus
            # An actor that asks for more CPUs than its node has would never start.
            actor = self._host(self.engine, place, num_cpus=min(cpus, place.node.cpus))
            return actor.remote(cpus, own_threads)

        def accept(place: HostPlace, about: EngineAbout) -> int:
            check_version(place.node.name, about.version)
            check_libraries(place.node.name, about.libraries, models.library_versions())
            return 1

        return ActorRole(
            start,
            lambda actor: actor.open.remote(settings, self._source(settings)),
            accept,
            lambda: engine_places(self._nodes(), gpus, options.threads),
            lambda actor: actor.close.remote(),
        )

    def _nodes(self) -> list[Node]:
        return list_nodes(self._ray)

    def _host(self, host: type[Any], place: HostPlace, **resources: float) -> Any:
        return self._actor(host, place.node.id, max_concurrency=CALLS_AT_A_TIME, **resources)

    def _actor(self, host: type[Any], node_id: str, **options: Any) -> Any:
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        return self._ray.remote(host).options(
            scheduling_strategy=affinity(node_id, soft=False), **options
        )

    def _source(self, settings: EngineSettings) -> Any:
        """Return the actor that reads a model's files, or None if no other node needs them."""
        shipments = [one for one in (settings.model, settings.adapter) if one is not None]
        paths = tuple(path for one in shipments for path in one.paths)
        here = self._ray.get_runtime_context().get_node_id()
        if not paths or all(node.id == here for node in self._nodes()):
            return None
        if self._files is None:
            self._files = self._actor(FileSource, here, num_cpus=0).remote()
        if paths not in self._allowed:
            ask(self._ray, self._files.allow.remote(list(paths)), OPEN_S)
            self._allowed.add(paths)
        return self._files

    def _probe(self, role: ActorRole, call: Call) -> Any:
        """Return the answer of an engine that is started for this question alone."""
        places = role.places()
        if not places:
            raise LostHostError("cluster: the nodes with GPUs are gone. Run the command again.")
        actor = role.start(places[0])
        try:
            ask(self._ray, role.open(actor), OPEN_S)
            return ask(self._ray, call(actor), CHECK_S)
        finally:
            end_actors(self._ray, [actor], role.close)


def open_here(spec: str, options: EngineOptions, gpus: int, announce: Announce) -> Model:
    """Open a model on the driver's machine, with the identity that it has on the nodes.

    The driver may have no GPU. The number format, which depends on the device, is that of nodes.
    """
    if not gpus:
        return models.open_model(spec, options, announce)
    options = dataclasses.replace(options, device="auto")
    model = models.open_model(spec, options, announce)
    if model.identity.variant and not options.dtype:
        options = dataclasses.replace(options, dtype=DTYPES["cuda"])
        model = models.open_model(spec, options, announce)
    return model


def engine_settings(spec: str, options: EngineOptions, model: Model) -> EngineSettings:
    """Return how nodes open a model: its files, if it has any here, and its identity."""
    found = models.parse_reference(spec)
    path = Path(found.reference)
    shipped = describe_files(path) if path.exists() else None
    adapter = describe_files(Path(options.adapter)) if options.adapter else None
    return EngineSettings(
        spec, found.engine, dataclasses.replace(options, name=model.identity.name),
        model.identity, shipped, adapter,
    )  # fmt: skip


def gpus_per_engine(nodes: list[Node], options: EngineOptions) -> int:
    """Return on how many GPUs an engine runs; 0: on CPUs."""
    if not nodes:
        raise UsageError("--ray: no node of the cluster has CPUs. Add nodes.")
    names = options.devices.split(",") if options.devices else []
    if options.device == "cpu" or set(names) == {CPU}:
        return 0
    count = len(names) or 1
    if any(node.gpus >= count for node in nodes):
        return count
    if names or options.device == "cuda":
        option = f"--devices {options.devices}" if names else f"--device {options.device}"
        wanted = "a GPU" if count == 1 else f"{count} GPUs"
        raise UsageError(f"{option}: no node of the cluster has {wanted}. Add one, or drop it.")
    return 0


def engine_places(nodes: list[Node], gpus: int, threads: int) -> list[HostPlace]:
    """Return one place per so many GPUs; without any, one per so many CPUs, or per node."""
    if gpus:
        return [HostPlace(n, i) for n in nodes for i in range(n.gpus // gpus)]
    return [
        HostPlace(n, i) for n in nodes for i in range(max(1, n.cpus // threads) if threads else 1)
    ]
