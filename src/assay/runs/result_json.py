"""Read and write results files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.data.codec import FieldError, unexpected
from assay.data.documents import name_place, read_document, write_document
from assay.data.printable import clean_line
from assay.data.writing import write_whole
from assay.errors import RunError
from assay.runs._files import DOCUMENTS
from assay.runs.checks.claims import check_content
from assay.runs.result import SCHEMA, Result

TSV_HEADER = ("task_id", "n", "num_passed")


def write_result(result: Result) -> None:
    """Write the results file, and the per-problem TSV next to it."""
    rows = [
        TSV_HEADER,
        *((clean_line(p.task_id), str(p.n), str(p.passed)) for p in result.problems),
    ]
    write_whole(result.path.with_suffix(".tsv"), "".join("\t".join(row) + "\n" for row in rows))
    write_whole(result.path, codec.pretty(write_document(result)))


def read_result(path: Path, *, follow: bool = True) -> Result:
    """Read a results file. Raise RunError if it is not valid, or contradicts itself."""
    content = dataclasses.replace(DOCUMENTS, follow=follow).read_json(path)
    if isinstance(content, dict) and content.get("schema", SCHEMA) != SCHEMA:
        raise RunError(
            f"{path}: has schema {str(content['schema'])[:20]}, not {SCHEMA}. Update assay."
        )
    try:
        result = parse_result(content, path)
    except ValueError as error:
        raise RunError(
            f"{path}: is not a results file of assay ({describe_fault(error)}). Give another file."
        ) from error
    check_content(content, result)
    return result


def parse_result(content: Any, path: Path) -> Result:
    """Parse a results file's content. Raise ValueError for a field of another type."""
    result = read_document(Result, content, path=path)
    for number, problem in enumerate(result.problems):
        if problem.passed > problem.n:
            raise unexpected("passed", problem.passed, ("problems", number, "passed"))
    return result


def describe_fault(error: ValueError) -> str:
    """Return why a document is not valid: the place of the field in it, if the error has one."""
    if isinstance(error, FieldError):
        return f"{name_place(error.place) or 'the object'} is missing or has the wrong type"
    return str(error)


def render_result(result: Result) -> Any:
    """Return the results file's content."""
    return write_document(result)
