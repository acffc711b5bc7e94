"""Errors that a user can cause. The command line prints each as one line."""


class AssayError(Exception):
    """An error in one line: the file or option, what is wrong, and what to do."""


class UsageError(AssayError):
    """The arguments or options are not valid."""


class DataError(AssayError):
    """Benchmark data is missing, damaged or of another version."""


class ModelError(AssayError):
    """A model cannot be found, read or run."""


class ExtractionError(AssayError):
    """The processes that extract programs from completions cannot run."""


class SandboxError(AssayError):
    """The sandbox cannot provide the requested isolation."""


class ContractError(AssayError):
    """A contract is violated or cannot be read."""


class RunError(AssayError):
    """A run folder or results file cannot be read or written."""
