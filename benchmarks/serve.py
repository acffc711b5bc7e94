"""Compare the judge service with judging in process, and with a plain subprocess server.

    python benchmarks/serve.py [--programs 500] [--rounds 3] [--plain 100]
                               [--peer-port 8081 --peer-pid PID]

One run measures, in turns: one ``assay.Judge`` in this process; ``/judge`` with batches of 100;
``/judge`` with one program per request from 32 connections; and a server that runs ``python FILE``
for every request, with the steps of SandboxFusion's local server without isolation. Rates include
the client. All have the same programs: HumanEval's references, and every fifth is wrong. The last
figure is the latency of single requests that come at half the rate that was measured.

``--peer-port`` measures SandboxFusion itself too, which must listen on this machine: its
``/run_code`` next to ours. Its CPU time is that of the process ``--peer-pid`` and its children.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import assay
from assay.sandbox.inside.isolation.machine import work_of
from http_load import Connection, running_server, wait_for

CONNECTIONS = 32
BATCH = 100
PLAIN_CONNECTIONS = 8  # more only wait
PATIENCE_S = (
    120  # the peers' limits are wall-clock time: with 10 s, right programs failed under load
)
SINGLES = f"singles, {CONNECTIONS} connections"
PLAIN = "plain subprocess server"
PEER = "SandboxFusion"
WRONG = "def {name}(*_):\n    return None\n"


def make_programs(count: int) -> list[tuple[str, str]]:
    """Return programs with their tasks."""
    problems = assay.load_benchmark("humaneval").problems
    found = []
    for number, problem in enumerate(itertools.islice(itertools.cycle(problems), count)):
        wrong = WRONG.format(name=problem.tests.entry_point)
        found.append((problem.task_id, problem.reference if number % 5 else wrong))
    return found


async def send_all(port: int, path: str, bodies: list[bytes], connections: int) -> list[Any]:
    """Send requests from several connections at once. Return the answers in order."""
    answers: list[Any] = [None] * len(bodies)
    todo = iter(enumerate(bodies))

    async def work() -> None:
        connection = Connection(port)
        for number, body in todo:
            reply = await connection.post(path, body)
            assert reply.status == 200, (reply.status, reply.body[:500])
            answers[number] = reply.json()
        connection.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return answers


def judge_body(programs: list[tuple[str, str]]) -> bytes:
    items = [{"task_id": task_id, "program": code} for task_id, code in programs]
    return json.dumps({"benchmark": "humaneval", "programs": items}).encode()


def by_batches(port: int, programs: list[tuple[str, str]]) -> list[str]:
    bodies = [judge_body(programs[n : n + BATCH]) for n in range(0, len(programs), BATCH)]
    answers = asyncio.run(send_all(port, "/judge", bodies, 2))
    return [v["status"] for answer in answers for v in answer["verdicts"]]


def by_singles(port: int, programs: list[tuple[str, str]]) -> list[str]:
    bodies = [judge_body([one]) for one in programs]
    answers = asyncio.run(send_all(port, "/judge", bodies, CONNECTIONS))
    return [answer["verdicts"][0]["status"] for answer in answers]


def by_run_code(
    port: int, programs: list[tuple[str, str]], tests: dict[str, str], connections: int
) -> list[str]:
    """Run programs with their tests, and take exit code 0 for a pass."""
    common = {"language": "python", "run_timeout": PATIENCE_S}
    bodies = [
        json.dumps({"code": f"{code}\n{tests[task_id]}", **common}).encode()
        for task_id, code in programs
    ]
    answers = asyncio.run(send_all(port, "/run_code", bodies, connections))
    return ["pass" if a["run_result"]["return_code"] == 0 else "fail" for a in answers]


def serve_plainly(port: int) -> None:
    """Run every program by ``python FILE`` in a new folder, as SandboxFusion does."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def run_code(request: Request) -> JSONResponse:
        code = (await request.json())["code"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.py"
            path.write_text(code)
            process = await asyncio.create_subprocess_shell(
                f"{sys.executable} {path}", cwd=folder, executable="/bin/bash",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            out, err = await process.communicate()
        outputs = {"stdout": out.decode(), "stderr": err.decode()}
        return JSONResponse({"run_result": {"return_code": process.returncode, **outputs}})

    async def ping(_request: Request) -> JSONResponse:
        return JSONResponse("pong")

    routes = [Route("/run_code", run_code, methods=["POST"]), Route("/v1/ping", ping)]
    uvicorn.run(Starlette(routes=routes), port=port, log_level="error")


async def measure_latency(port: int, programs: list[tuple[str, str]], rate: float) -> list[float]:
    """Send single requests at random times of this rate. Return the seconds of each, sorted."""
    free: list[Connection] = []
    found: list[float] = []

    async def call(body: bytes) -> None:
        started = time.monotonic()
        connection = free.pop() if free else Connection(port)
        reply = await connection.post("/judge", body)
        assert reply.status == 200, reply.body
        free.append(connection)
        found.append(time.monotonic() - started)

    tasks = []
    for one in programs:
        tasks.append(asyncio.create_task(call(judge_body([one]))))
        await asyncio.sleep(random.expovariate(rate))
    await asyncio.gather(*tasks)
    for connection in free:
        connection.close()
    return sorted(found)


def measure(work: Callable[[], list[str]], pids: list[int]) -> tuple[list[str], float, float]:
    """Return statuses, wall seconds, and CPU seconds of these processes and their children."""
    cpu, started = sum(work_of(pid)[0] for pid in pids), time.monotonic()
    found = work()
    return found, time.monotonic() - started, sum(work_of(pid)[0] for pid in pids) - cpu


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--plain", type=int, default=100, help="programs of the plain server")
    parser.add_argument("--latency", type=int, default=500, help="requests at half the load")
    parser.add_argument("--peer-port", type=int, help="port of a SandboxFusion server")
    parser.add_argument("--peer-pid", type=int, help="process of that server")
    parser.add_argument("--plain-server", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.plain_server:
        serve_plainly(asked.plain_server)
        return
    random.seed(0)
    programs = make_programs(asked.programs)
    few = programs[: asked.plain]
    tests = {p.task_id: p.tests.code for p in assay.load_benchmark("humaneval").problems}
    workers = ["--workers", str(asked.workers)]
    plain_port = 18_000 + os.getpid() % 10_000
    plain = subprocess.Popen(
        [sys.executable, __file__, "--plain-server", str(plain_port)], stderr=subprocess.DEVNULL
    )
    try:
        with (
            assay.Judge("humaneval", workers=asked.workers) as judge,
            running_server("--benchmark", "humaneval", *workers) as (_, port),
        ):
            wait_for(f"http://127.0.0.1:{port}/ready")
            wait_for(f"http://127.0.0.1:{plain_port}/v1/ping")
            ways: dict[str, tuple[Callable[[], list[str]], int]] = {
                "in process": (lambda: [v.status for v in judge.judge(programs)], len(programs)),
                f"batches of {BATCH}": (lambda: by_batches(port, programs), len(programs)),
                SINGLES: (lambda: by_singles(port, programs), len(programs)),
                "/run_code": (lambda: by_run_code(port, few, tests, CONNECTIONS), len(few)),
                PLAIN: (lambda: by_run_code(plain_port, few, tests, PLAIN_CONNECTIONS), len(few)),
            }
            if asked.peer_port:
                ways[PEER] = lambda: by_run_code(asked.peer_port, few, tests, CONNECTIONS), len(few)
            for name in list(ways)[:4]:
                ways[name][0]()  # warm
            pids = [os.getpid(), *([asked.peer_pid] if asked.peer_pid else [])]
            report(ways, asked.rounds, port, programs[: asked.latency], pids)
    finally:
        plain.terminate()
        plain.wait()


def report(
    ways: dict[str, tuple[Callable[[], list[str]], int]],
    rounds: int,
    port: int,
    programs: list[tuple[str, str]],
    pids: list[int],
) -> None:
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    expected: list[str] = []
    for _ in range(rounds):
        for name, (work, count) in ways.items():
            statuses, wall, cpu = measure(work, pids)
            expected = expected or statuses
            assert statuses == expected[:count], f"{name}: verdicts differ"
            rates[name].append((count / wall, count / cpu))
    base = rates["in process"]
    for name, found in rates.items():
        per_s, per_cpu_s = (statistics.median(one[i] for one in found) for i in (0, 1))
        ratios = [
            statistics.median(a[i] / b[i] for a, b in zip(found, base, strict=True)) for i in (0, 1)
        ]
        print(
            f"{name:<26}{per_s:>8.1f}/s ({ratios[0]:.2f})  {per_cpu_s:>8.1f} per CPU-s "
            f"({ratios[1]:.2f})"
        )
    singles = rates[SINGLES]
    for name in (PLAIN, PEER):
        for index, noun in ((0, "wall"), (1, "CPU")):
            pairs = zip(singles, rates.get(name, ()), strict=False)
            if ratios := [one[index] / other[index] for one, other in pairs]:
                print(f"singles / {name}, {noun}: {statistics.median(ratios):.1f}")
    rate = statistics.median(one[0] for one in singles)
    latencies = asyncio.run(measure_latency(port, programs, rate / 2))
    p50, p99 = (latencies[int(len(latencies) * q)] for q in (0.5, 0.99))
    print(f"latency at {rate / 2:.0f} requests/s: p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms")


if __name__ == "__main__":
    main()
