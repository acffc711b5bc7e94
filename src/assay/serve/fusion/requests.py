"""Read requests in the form of SandboxFusion's API, with its fields and defaults.

Errors have the form of FastAPI's, which its clients print.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from assay.serve.judge_request import BadRequestError, parse_object
from assay.serve.options import ServeOptions
from assay.serve.service import RequestRefusedError
from assay.types import Limits

LANGUAGES = (
    "python", "cpp", "nodejs", "go", "go_test", "java", "php", "csharp", "bash", "typescript",
    "sql", "rust", "cuda", "lua", "R", "perl", "D_ut", "ruby", "scala", "julia", "pytest", "junit",
    "kotlin_script", "jest", "verilog", "python_gpu", "lean", "swift", "racket",
)  # fmt: skip
LEAST_MEMORY_MB = 64
MEMORY_MB = 1024  # of a run that sets no limit
WALL_PER_CPU = 1.25
IGNORED = "IGNORE_THIS_FILE"
MOST_FILES = 1000
DEFAULT_S, LONGEST_S = 10.0, 1e9


@dataclass(frozen=True, slots=True)
class RunCode:
    """A request to run a program."""

    code: str
    language: str
    run_timeout: float = 10.0
    compile_timeout: float = 10.0
    memory_limit_MB: int = -1  # noqa: N815 - SandboxFusion's name
    stdin: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    fetch_files: tuple[str, ...] = ()

    def limits(self, options: ServeOptions) -> Limits:
        """Return the run's limits. Raise RequestRefusedError if the server does not allow them."""
        most = options.limits
        memory = self.memory_limit_MB if self.memory_limit_MB > 0 else MEMORY_MB
        for name, value, allowed in (
            ("run_timeout", self.run_timeout, most.cpu_s),
            ("memory_limit_MB", memory, most.memory_mb),
        ):
            if value > allowed:
                raise refuse_field(name, f"Input should be at most {allowed:g} on this server")
        limits = Limits(
            cpu_s=self.run_timeout,
            # A program that computes all the time must reach its CPU limit first.
            wall_s=WALL_PER_CPU * self.run_timeout,
            memory_mb=max(LEAST_MEMORY_MB, memory),
        )
        return options.round_limits(limits)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A request about a dataset: its name, and the settings that have a meaning here."""

    dataset: str
    id: str | int = ""
    completion: str = ""
    offset: int = 0
    limit: int = 1_000_000
    is_fewshot: bool = False  # the completion continues the prompt
    run_timeout: float | None = None


def refuse_field(name: str, text: str, kind: str = "value_error") -> RequestRefusedError:
    """Return the answer to a field that is not valid."""
    return RequestRefusedError(422, [{"type": kind, "loc": ["body", name], "msg": text}])


def read_run_code(body: bytes) -> RunCode:
    """Return a request to run a program. Raise RequestRefusedError."""
    data = _object(body)
    language = _field(data, "language", str)
    if language not in LANGUAGES:
        expected = ", ".join(repr(name) for name in LANGUAGES)
        raise refuse_field("language", f"Input should be {expected}", "literal_error")
    files = _field(data, "files", dict, {})
    if len(files) > MOST_FILES:
        raise refuse_field("files", f"Input should have at most {MOST_FILES} files")
    fetched = _field(data, "fetch_files", list, [])
    if not all(isinstance(name, str) for name in fetched) or len(fetched) > MOST_FILES:
        raise refuse_field("fetch_files", "Input should be a list of at most 1000 names")
    return RunCode(
        code=_field(data, "code", str),
        language=language,
        run_timeout=_seconds(data, "run_timeout"),
        compile_timeout=_seconds(data, "compile_timeout"),
        memory_limit_MB=int(_field(data, "memory_limit_MB", int, -1)),
        stdin=_optional(data, "stdin"),
        files={
            name: content
            for name, content in files.items()
            if isinstance(content, str) and IGNORED not in name
        },
        fetch_files=tuple(fetched),
    )


def read_dataset(body: bytes, *, submits: bool = False, names_task: bool = False) -> Dataset:
    """Return a request about a dataset. Raise RequestRefusedError."""
    data = _object(body)
    config = _field(data, "config", dict, {})
    if config.get("custom_extract_logic"):
        raise RequestRefusedError(
            400, "custom_extract_logic: is code of a client, which this server never runs."
        )
    if config.get("provided_data") is not None:
        raise RequestRefusedError(
            400, "provided_data: is not supported. Use POST /judge with tests."
        )
    if config.get("language") not in (None, "python"):
        raise RequestRefusedError(
            400, f"language {config['language']!r}: the datasets are in python."
        )
    return Dataset(
        dataset=_field(data, "dataset", str),
        id=_field(data, "id", (str, int)) if submits or names_task else "",
        completion=_field(data, "completion", str) if submits else "",
        offset=max(0, int(_field(data, "offset", int, 0))),
        limit=max(0, int(_field(data, "limit", int, 1_000_000))),
        is_fewshot=bool(config.get("is_fewshot")),
        run_timeout=None if config.get("run_timeout") is None else _seconds(config, "run_timeout"),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        return parse_object(body)
    except BadRequestError as error:
        raise RequestRefusedError(
            422, [{"type": "json_invalid", "loc": ["body"], "msg": str(error)}]
        ) from error


_REQUIRED: Any = object()


def _field(
    data: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any = _REQUIRED
) -> Any:
    if name not in data:
        if default is _REQUIRED:
            raise refuse_field(name, "Field required", "missing")
        return default
    value = data[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise refuse_field(name, "Input has a wrong type", "type_error")
    return value


def _seconds(data: dict[str, Any], name: str) -> float:
    value = _field(data, name, (int, float), DEFAULT_S)
    if not 0 < value < LONGEST_S:
        raise refuse_field(name, "Input should be greater than 0 and finite")
    return float(value)


def _optional(data: dict[str, Any], name: str) -> str | None:
    return None if data.get(name) is None else str(_field(data, name, str))
