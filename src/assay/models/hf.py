"""Hugging Face models, run by torch with slots of our own (see ``_hf_slots``)."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import ModelError
from assay.fetch import offline
from assay.models import Backend, backends
from assay.models._engine_process import ProcessModel
from assay.models._folder import chat_template, tokenizer_sha256, weights_sha256
from assay.types import ModelIdentity

if TYPE_CHECKING:
    from assay.models import EngineOptions
    from assay.types import Request

PACKAGES = ("torch", "transformers")
# What a model needs of a hub repository; others hold the same weights in several formats.
WANTED = ("*.json", "*.safetensors", "*.jinja", "*.model", "*.txt")
ADAPTER = "adapter_config.json"


class HfModel(ProcessModel):
    """A folder or a hub id; the model is loaded with the first request."""

    def __init__(self, reference: str, options: EngineOptions) -> None:
        if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
            raise ModelError(
                f"Hugging Face models need {' and '.join(missing)}: "
                "install them with pip install 'assay[hf]'"
            )
        folder, adapter = _resolved(reference, options.adapter)
        super().__init__("assay.models._hf_worker", "transformers", reference)
        self._folder, self._adapter, self._options = folder, adapter, options
        template = chat_template(folder)
        form = options.prompt_form
        used = [options.dtype] if options.dtype else []
        if adapter:
            used.append(f"adapter {weights_sha256(Path(adapter))[:16]}")
        self.identity = ModelIdentity(
            name=Path(reference).name,
            engine="hf",
            weights_sha256=weights_sha256(folder),
            prompt_form=("chat" if template else "text") if form == "auto" else form,
            tokenizer_sha256=tokenizer_sha256(folder),
            template_sha256=hashlib.sha256(template.encode()).hexdigest() if template else "",
            variant=", ".join(used),
        )

    def settings(self, first: Request) -> dict[str, Any]:
        options = self._options
        return {
            "path": str(self._folder),
            "adapter": self._adapter,
            "device": options.device,
            "dtype": options.dtype,
            "parallel": 1 if options.batch_mode == "off" else options.parallel,
            "max_tokens": first.decoding.max_tokens,
        }


def _resolved(reference: str, adapter: str) -> tuple[Path, str]:
    """The model's folder and the adapter's; a folder of LoRA weights names its model itself."""
    folder = Path(reference)
    if not folder.exists():
        folder = _from_hub(reference)
    if not adapter and (folder / ADAPTER).is_file():
        base = json.loads((folder / ADAPTER).read_text())["base_model_name_or_path"]
        return _resolved(base, "")[0], str(folder)
    if adapter and not Path(adapter, ADAPTER).is_file():
        raise ModelError(f"{adapter} holds no LoRA weights ({ADAPTER} is missing)")
    if not (folder / "config.json").is_file():
        raise ModelError(f"{reference} is no Hugging Face model: config.json is missing")
    return folder.resolve(), str(Path(adapter).resolve()) if adapter else ""


def _from_hub(reference: str) -> Path:
    """Downloaded by the hub's own library, into its own cache."""
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(reference, allow_patterns=list(WANTED), local_files_only=offline())
        )
    except Exception as error:  # a network's failures come in every type there is
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"no folder {reference} here, and the hub gave no such model ({reason})"
        ) from error


def _recognises(path: Path) -> bool:
    return path.is_dir() and any((path / name).is_file() for name in ("config.json", ADAPTER))


backends.register("hf")(Backend(HfModel, _recognises))
