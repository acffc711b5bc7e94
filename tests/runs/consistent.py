"""Results files of tests that agree with themselves, whatever a test puts into them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from assay.data import codec
from assay.protocol import Protocol
from assay.runs import Result
from assay.runs.results import parse_result, render_result


def make_consistent(content: dict[str, Any]) -> dict[str, Any]:
    """Return a results file whose protocol and configuration fit to each other and its problems."""
    found = copy.deepcopy(content)
    protocol, ids = found["protocol"], [one["task_id"] for one in found["problems"]]
    if not (found.get("coverage") and found.get("model_identity")):
        protocol["version"] = 2  # which did not write all that the current version does
    protocol |= {"benchmark": found["benchmark"], "problems": len(ids)}
    protocol["problems_sha256"] = codec.digest(ids)
    protocol["n_samples"] = max([1, *(one["n"] for one in found["problems"])])
    if "name" in (found.get("model_identity") or {}):
        found["model_identity"]["name"] = found["model"]
    recorded = {**protocol.get("decoding", {}), **protocol.get("asking", {}), **protocol}
    config = found.get("config", {})
    config |= {name: recorded[name] for name in config.keys() & recorded.keys()}
    if "num_samples" in config:
        config["num_samples"] = protocol["n_samples"]
    found["protocol"] = rehash(protocol)
    if found.get("publishable"):
        gate = found.setdefault("environment", {}).setdefault("parity_gate", {})
        gate["state"] = "passed"
    if "marks" in found:
        found["marks"] = list(parse_result(found, Path("r.json")).marks)
    return found


def rehash(protocol: dict[str, Any]) -> dict[str, Any]:
    """Return a protocol of a file with the hash of its fields."""
    fields = {name: value for name, value in protocol.items() if name != "hash"}
    return {"hash": codec.digest(fields), **fields}


def agree(result: Result) -> Result:
    """Return a result whose protocol fits to its problems."""
    return parse_result(make_consistent(render_result(result)), result.path)


def fit_protocol(protocol: Protocol, tasks: list[str], **changes: Any) -> Protocol:
    """Return the protocol of a run over these tasks."""
    fields = {"problems": len(tasks), "problems_sha256": codec.digest(tasks), **changes}
    return Protocol(**{f: getattr(protocol, f) for f in protocol.__slots__} | fields)
