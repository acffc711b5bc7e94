"""Errors that a user can cause. The command line prints each as one line."""


class AssayError(Exception):
    """An error in one line: the file or option, what is wrong, and what to do."""

    def __str__(self) -> str:
        return " ".join(super().__str__().split("\n"))  # a name may have lines


class UsageError(AssayError):
    """The arguments or options are not valid."""


MOST_MISTAKES = 100  # that are listed, and after which no further line is read


class MistakesError(UsageError):
    """A file cannot be used. ``problems`` has one line for each reason."""

    noun = "mistake"

    def __init__(self, name: str, problems: tuple[str, ...]) -> None:
        where = f"{name}: has {self.count(len(problems))}. " if name else ""
        super().__init__(f"{where}{' '.join(problems)}")
        self.name, self.problems = name or "the command", problems

    @classmethod
    def count(cls, number: int) -> str:
        """Return a number of mistakes in words."""
        return f"{number} {cls.noun}s" if number > 1 else f"one {cls.noun}"


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


# The name of the distribution. On the public index, ``assay`` is another project.
DISTRIBUTION = "assay-eval"


def install_hint(extra: str) -> str:
    """Return the command that installs what an optional part needs."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
