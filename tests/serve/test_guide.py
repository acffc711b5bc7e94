"""The guide says what the service does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx

from assay.serve.app import Doorkeeper, make_app
from assay.serve.judge_request import FIELDS, PROGRAM_FIELDS
from assay.serve.server import JudgeServer
from assay.serve.telemetry import COUNTERS

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "judge-service.md").read_text()
# For clients of this project's own, which send tests in full.
INTERNAL = {"rule", "seed", "imports", "environment"}


def test_every_route_is_in_the_guide(server: JudgeServer) -> None:
    app = make_app(server.service)
    assert isinstance(app, Doorkeeper)
    routes = {route.path for route in app._app.routes}
    written = GUIDE.replace("/benchmarks/NAME", "/benchmarks/{name}")
    assert {
        route for route in routes if f"`{route}" not in written and f" {route}`" not in written
    } == {"/get_metrics_function"}


def test_every_field_is_in_the_guide() -> None:
    named = set(re.findall(r"`([a-z_]+)`", GUIDE))
    assert named >= (FIELDS | PROGRAM_FIELDS) - INTERNAL


def test_the_example_gives_the_answer_that_is_shown(client: httpx.Client) -> None:
    request, answer = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", GUIDE, re.S))
    found = client.post("/judge", json=request).json()
    assert found.keys() == answer.keys()
    assert found["judge"].keys() == answer["judge"].keys()
    ((verdict,), (shown,)) = found["verdicts"], answer["verdicts"]
    assert list(verdict) == list(shown)
    same = {
        "status",
        "reason",
        "passed",
        "total",
        "groups",
        "integrity",
        "rule",
        "index",
        "task_id",
    }
    assert {name: verdict[name] for name in same} == {name: shown[name] for name in same}


def test_every_counter_has_a_help_text(client: httpx.Client) -> None:
    text = client.get("/metrics").text
    found = set(re.findall(r"^# TYPE (\S+) counter$", text, re.M))
    assert found <= set(COUNTERS)
    assert found
