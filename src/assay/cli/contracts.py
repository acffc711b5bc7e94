"""``assay contracts``."""

from __future__ import annotations

from pathlib import Path

import click

from assay.cli._options import as_json
from assay.cli._output import StatusLine, echo_result
from assay.data import codec
from assay.data.printable import quantity
from assay.errors import ContractError
from assay.quality.contracts.execution import Check, contract_files, execute, load
from assay.report.text import table


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@as_json
def contracts(files: tuple[Path, ...], as_json: bool) -> None:
    """Check the project's contracts, or those in FILES.

    A contract names a function, its inputs, and properties that must hold for all of them. It also
    has single tests, and wrong functions that must violate the properties. Contracts contain
    expressions that are evaluated. Use only FILES that you trust.

    \b
    Example:
      assay contracts
    """
    loaded = load(files or contract_files())
    checks: list[Check] = []
    line = StatusLine(quiet=as_json)
    for number, contract in enumerate(loaded, 1):
        line.show(f"{number}/{len(loaded)} contracts")
        checks += execute(contract)
    line.clear()
    broken = [check for check in checks if not check.ok]
    terms = [contract.terms for contract in loaded]
    rows = [{"contract": t.contract, "subject": t.subject, "source": t.source} for t in terms]
    results = list(map(codec.to_json, checks))
    counts = f"{len(loaded)} contracts, {len(checks)} checks, {len(broken)} broken"
    echo_result(
        {"contracts": rows, "checks": results, "broken": len(broken)},
        lambda: [*_table(checks), counts],
        as_json=as_json,
    )
    if broken:
        first = broken[0]
        raise ContractError(
            f"contracts: {quantity(len(broken), 'check')} failed. "
            f"The first is {first.contract}, {first.id}: {first.detail}"
        )


def _table(checks: list[Check]) -> list[str]:
    rows = [("contract", "kind", "check", "", "")]
    for check in checks:
        state = "ok" if check.ok else "broken"
        rows.append((check.contract, check.kind, check.id, state, check.detail))
    return table(rows)
