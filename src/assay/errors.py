"""The errors a user can cause or meet; the command line prints each as one line."""


class AssayError(Exception):
    """What happened, to which file or task, and what to do next, in one line."""


class UsageError(AssayError):
    """A command was asked for something it cannot mean."""


class DataError(AssayError):
    """Benchmark data is missing, damaged or of another version."""


class ModelError(AssayError):
    """A model cannot be found, read or run."""


class ExtractionError(AssayError):
    """The processes that take programs out of completions cannot run."""


class SandboxError(AssayError):
    """The sandbox cannot give the isolation that was asked for."""


class ContractError(AssayError):
    """A contract is broken, or cannot be read."""


class RunError(AssayError):
    """A run folder or results file cannot be read or written."""
