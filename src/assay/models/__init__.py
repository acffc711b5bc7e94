"""Run models by engine: load once, then stream completions as they are made."""

from assay.models.model import (
    EngineFacts,
    LoadedElsewhere,
    LoadedOnDemand,
    Loading,
    Model,
    Preloadable,
    RecordedModel,
    Rendered,
    Usage,
    add_usage,
    check_infilling,
    check_prefilling,
    failed,
    is_identified,
    is_served,
    library_versions,
    preload,
    start_early,
    text_conditions,
    watch,
)
from assay.models.opening import (
    DEFAULT,
    DEFAULT_WEIGHTS,
    Backend,
    ModelReference,
    backends,
    check_reference,
    choose_engine,
    convert,
    describe_file,
    is_local,
    open_model,
    open_recorded,
    parse_reference,
)
from assay.models.options import BatchMode, Device, EngineOptions, prompt_form

__all__ = [
    "DEFAULT", "DEFAULT_WEIGHTS", "Backend", "BatchMode", "Device", "EngineFacts", "EngineOptions",
    "LoadedElsewhere", "LoadedOnDemand", "Loading", "Model", "ModelReference", "Preloadable",
    "RecordedModel", "Rendered", "Usage",
    "add_usage", "backends", "check_infilling", "check_prefilling", "check_reference",
    "choose_engine", "convert", "describe_file", "failed", "is_identified", "is_local",
    "is_served", "library_versions", "open_model", "open_recorded", "parse_reference", "preload",
    "prompt_form", "start_early", "text_conditions", "watch",
]  # fmt: skip
