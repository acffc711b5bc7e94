"""Run Hugging Face models with torch and assay's own slots (see ``slots``)."""

from __future__ import annotations

import dataclasses
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.data import codec
from assay.datasets import look_up_sha256
from assay.errors import ModelError, UsageError, install_hint
from assay.formats.config import check_sizes
from assay.formats.format import read_checkpoint
from assay.formats.gguf.checkpoint import read_gap as read_gguf_gap
from assay.formats.gguf.file import is_gguf
from assay.formats.huggingface.folder import (
    ADAPTER,
    adapter_folder,
    adapter_setting,
    chat_template,
    gap_of,
    model_folder,
    read_gap,
    sha256_of,
)
from assay.models import Backend, backends, prompt_form
from assay.models.devices import driver_gpu, require_gpu
from assay.models.model import EngineFacts
from assay.models.names import default_name, folder_identity
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
from assay.types import ModelIdentity

if TYPE_CHECKING:
    from assay.formats.marks import Gap
    from assay.models import EngineOptions
    from assay.types import Request


PACKAGES = ("torch", "transformers")
WORKER = "assay.models.engines.torch.torch_worker"
# Settings of a model's configuration that the user cannot override.
RESERVED = {
    "dtype": "--dtype",
    "torch_dtype": "--dtype",
    "revision": "--revision",
    "device_map": "--device",
    "attn_implementation": "",
    "quantization_config": "",
    "trust_remote_code": "",
}
ACCEPTS = LOCAL_OPTIONS | {"dtype", "adapter", "revision"}


@dataclass(frozen=True, slots=True)
class Generate:
    """A message that lets a process which only scored accept requests of about this length."""

    max_tokens: int


@dataclass(frozen=True, slots=True)
class TorchSettings(EngineWorkerSettings):
    """Settings without ``generate`` are those of a process that only scores.

    ``options`` name a device, not ``auto``, and a number format.
    """

    generate: Generate | None = None


@dataclass(frozen=True, slots=True)
class TorchFacts(EngineFacts):
    transformers: str | None = None
    torch: str | None = None
    device: str | None = None
    dtype: str | None = None
    threads: int | None = None
    parallel: int | None = None
    batch_invariant: bool | None = None
    thinks: bool | None = None

    def of_scoring(self) -> TorchFacts:
        return dataclasses.replace(self, parallel=None, batch_invariant=None)


class TorchModel(ProcessModel[TorchFacts]):
    """A model of any format that torch runs. It is loaded with the first request."""

    scoring_module = WORKER

    def __init__(
        self,
        path: Path,
        options: EngineOptions,
        identity: ModelIdentity,
        template: str,
        adapter: Path | None = None,
    ) -> None:
        super().__init__(EngineWorker(WORKER, "transformers", str(path), TorchFacts))
        self._path, self._adapter, self.options = path, adapter, options
        self.identity, self.template = identity, template
        if options.thinking_budget is not None:
            raise UsageError(
                f"--thinking {options.thinking}: the {identity.engine} engine cannot limit "
                "reasoning tokens. Use --thinking on or off."
            )
        check_chat_settings(options, identity.prompt_form, template, identity.name)
        refuse_reserved(options.own_options, RESERVED)

    def find_gap(self) -> Gap | None:
        if self._path.is_dir():
            return read_gap(self._path)
        if is_gguf(self._path):
            return read_gguf_gap(self._path)
        return gap_of(read_checkpoint(self._path).tokenizer_json.content)

    def gpu(self) -> str:
        return driver_gpu() if device_for(self.options) == "cuda" else ""

    def scoring_settings(self) -> TorchSettings:
        options = dataclasses.replace(
            self.options,
            device=device_for(self.options),
            dtype=dtype_for(self.options),
            adapter=str(self._adapter or ""),
        )
        return TorchSettings(str(self._path), options, self.chat_template)

    def settings(self, first: Request) -> TorchSettings:
        return dataclasses.replace(self.scoring_settings(), generate=self.start_generating(first))

    def start_generating(self, first: Request) -> Generate:
        return Generate(max(self.options.longest, first.decoding.max_tokens))

    def describe(self) -> TorchFacts:
        return dataclasses.replace(self._facts, thinks=self.thinks or None)


def device_for(options: EngineOptions) -> Device:
    """Return the device, as the driver reports it: a torch that cannot use the GPU is an error."""
    if options.device != "auto":
        return options.device
    return "cuda" if driver_gpu() else "cpu"


def dtype_for(options: EngineOptions) -> str:
    return options.dtype or DTYPES[device_for(options)]


def need_packages(options: EngineOptions) -> None:
    """Raise an error if torch, transformers or the device is missing."""
    require_gpu(options.device)
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        raise ModelError(
            f"{', '.join(missing)}: not installed, but needed here. Run {install_hint('hf')}."
        )


def _open(reference: str, options: EngineOptions) -> TorchModel:
    if Path(reference).is_file():
        return open_file(Path(reference), options, "hf")
    need_packages(options)
    reference, folder, adapter = _resolve_folders(reference, options.adapter, options.revision)
    identity = folder_identity("hf", reference, folder, adapter, dtype_for(options), options)
    return TorchModel(folder, options, identity, chat_template(folder), adapter)


def open_file(path: Path, options: EngineOptions, engine: str) -> TorchModel:
    """Open a checkpoint in one file: a GGUF file's weights in torch, or another format."""
    need_packages(options)
    if options.adapter or options.revision:
        raise UsageError(
            "--adapter, --revision: need a Hugging Face folder. Create one with assay convert."
        )
    checkpoint = read_checkpoint(path)
    check_sizes(checkpoint.config, path.stat().st_size, path)
    template = checkpoint.tokenizer_config.default_template or ""
    identity = ModelIdentity(
        name=options.name or default_name(path),
        engine=engine,
        weights_sha256=look_up_sha256(path),
        prompt_form=prompt_form(options, template, str(path)),
        tokenizer_sha256=codec.digest(checkpoint.tokenizer_json.content),
        template_sha256=sha256_of(template),
        variant=dtype_for(options),
        path=str(path.resolve()),
    )
    return TorchModel(path.resolve(), options, identity, template)


def _resolve_folders(reference: str, adapter: str, revision: str) -> tuple[str, Path, Path | None]:
    """Return the model's reference, its folder and the adapter's.

    A folder of LoRA weights names its model itself.
    """
    if not adapter and Path(reference, ADAPTER).is_file():
        base = adapter_setting(Path(reference), "base_model_name_or_path", str)
        return _resolve_folders(base, reference, revision)
    return reference, model_folder(reference, revision), adapter_folder(adapter)


def _recognises(path: Path) -> bool:
    return path.is_dir() and any((path / name).is_file() for name in ("config.json", ADAPTER))


backends.register("hf")(Backend(_open, _recognises, ACCEPTS, "processes"))
