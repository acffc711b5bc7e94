"""Answer as SandboxFusion's server does, so that its clients change only the address.

``/run_code`` is faithful to it: a program is run, and its own exit code and output are returned.
Both are the program's to choose, so neither shows that it is right. ``/submit`` gives verdicts.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import platform
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from assay.data.failures import explain_failure
from assay.judging import JudgeTask
from assay.prompts import DEFAULT_STRATEGY, find_strategy
from assay.serve.backlog import FullError, Task
from assay.serve.catalogue import Served
from assay.serve.fusion.languages import EndedRun, find_languages, make_run
from assay.serve.fusion.requests import Dataset, RunCode, read_dataset, read_run_code
from assay.serve.service import RequestRefusedError, Service, reply_json
from assay.serve.stage import JudgeAnswer, JudgeWork
from assay.types import Problem, PromptForm

# Names of datasets in SandboxFusion's own configuration.
ALIASES = {"humaneval_python": "humaneval"}
KILLED = -9
LOOK_EVERY_S = 0.1  # for room in the queue


class FusionApi:
    """The routes of SandboxFusion."""

    def __init__(self, service: Service) -> None:
        self._service = service
        service.languages = find_languages(service.engine)

    def routes(self) -> list[tuple[str, str, Callable[[Request], Awaitable[Response]]]]:
        """Return the method, path and handler of every route."""
        return [
            ("POST", "/run_code", self.run_code),
            ("POST", "/submit", self.submit),
            ("POST", "/get_prompts", self.get_prompts),
            ("POST", "/get_prompt_by_id", self.get_prompt_by_id),
            ("POST", "/list_ids", self.list_ids),
            ("GET", "/list_datasets", self.list_datasets),
            ("GET", "/v1/ping", self.ping),
            ("POST", "/run_jupyter", self.unsupported),
            ("POST", "/get_metrics", self.unsupported),
            ("POST", "/get_metrics_function", self.unsupported),
        ]

    async def ping(self, _request: Request) -> Response:
        """Answer that the server is there."""
        return reply_json("pong")

    async def run_code(self, request: Request) -> Response:
        """Run a program."""
        service = self._service
        body, wanted = await service.read_body(request, read_run_code)
        if wanted.language not in service.languages:
            why = f"no runner for the language {wanted.language!r} is installed on this server"
            return reply_json(_response("SandboxError", why))
        task = make_run(
            service.engine.backlog.next_number(), wanted.language, wanted.code,
            wanted.limits(service.options), wanted.stdin or "", list(wanted.files.items()),
            wanted.fetch_files,
        )  # fmt: skip
        request.state.programs = 1
        patience_s = wanted.compile_timeout + wanted.run_timeout
        answer = await self._wait_and_judge(request, task, len(body), patience_s)
        return reply_json(render_run(answer, wanted))

    async def list_datasets(self, _request: Request) -> Response:
        """List the benchmarks."""
        return reply_json(self._service.catalogue.names())

    async def list_ids(self, request: Request) -> Response:
        """List the tasks of a benchmark."""
        _, wanted = await self._service.read_body(request, read_dataset)
        return reply_json([p.task_id for p in _slice(await self._served(wanted.dataset), wanted)])

    async def get_prompts(self, request: Request) -> Response:
        """Return the prompts of a benchmark."""
        _, wanted = await self._service.read_body(request, read_dataset)
        served = await self._served(wanted.dataset)
        problems = _slice(served, wanted)
        return reply_json(
            await asyncio.to_thread(lambda: [_prompt(served, p, wanted) for p in problems])
        )

    async def get_prompt_by_id(self, request: Request) -> Response:
        """Return the prompt of one task."""
        read = functools.partial(read_dataset, names_task=True)
        _, wanted = await self._service.read_body(request, read)
        served = await self._served(wanted.dataset)
        return reply_json(_prompt(served, _find(served, wanted.id).problem, wanted))

    async def submit(self, request: Request) -> Response:
        """Judge a completion."""
        service = self._service
        read = functools.partial(read_dataset, submits=True)
        body, wanted = await service.read_body(request, read)
        served = await self._served(wanted.dataset)
        subject = _find(served, wanted.id)
        task_id = subject.problem.task_id
        limits = subject.limits
        if wanted.run_timeout is not None:
            limits = replace(limits, cpu_s=min(wanted.run_timeout, service.options.limits.cpu_s))
        work = JudgeWork(
            number=service.engine.backlog.next_number(), kind="completion", text=wanted.completion,
            limits=limits, task_id=task_id, form="text" if wanted.is_fewshot else "chat",
        )  # fmt: skip
        request.state.programs = 1
        (answer,) = await service.all_answers(request, [(subject, work)], len(body))
        verdict = answer.read_verdict()
        if verdict.status == "invalid":  # never a rejected program
            raise RequestRefusedError(
                503, f"SandboxError: {verdict.reason}: {explain_failure(verdict)}"
            )
        return reply_json(render_submission(answer, wanted, subject))

    async def _wait_and_judge(
        self, request: Request, task: Task, size: int, patience_s: float
    ) -> JudgeAnswer:
        """Judge one program, and wait for room in a full queue as SandboxFusion does.

        verl takes 429 for a failed program. Raise FullError if there is no room in time.
        """
        end = time.monotonic() + patience_s
        while True:
            try:
                (answer,) = await self._service.all_answers(request, [task], size)
            except FullError:
                if time.monotonic() > end or await request.is_disconnected():
                    raise
                await asyncio.sleep(LOOK_EVERY_S)
            else:
                return answer

    async def unsupported(self, _request: Request) -> Response:
        """Refuse a route of SandboxFusion that does not exist here."""
        raise RequestRefusedError(501, "this route of SandboxFusion is not supported")

    async def _served(self, dataset: str) -> Served:
        name = ALIASES.get(dataset, dataset)
        if name not in self._service.catalogue.names():
            raise RequestRefusedError(400, f"no eval class found for dataset {dataset}")
        return await self._service.benchmark(name)


def render_run(answer: JudgeAnswer, wanted: RunCode) -> dict[str, Any]:
    """Return the outcome of a run as SandboxFusion does."""
    verdict, ended = answer.read_verdict(), answer.outputs
    if isinstance(ended, str):
        return _response("SandboxError", ended)
    if verdict.status == "invalid":
        return _response("SandboxError", f"{verdict.reason}: {explain_failure(verdict)}")
    if isinstance(ended, EndedRun):
        return _response(
            "Failed" if ended.exit_code else "Success",
            run={
                "status": "Finished",
                "execution_time": ended.seconds,
                "return_code": ended.exit_code,
                "stdout": _decode(ended.output),
                "stderr": _decode(ended.errors),
            },
            files={
                name: base64.b64encode(content).decode()
                for name, content in ended.files.items()
                if name in wanted.fetch_files
            },
        )
    run: dict[str, Any] = {
        "status": "Finished", "execution_time": verdict.wall_s, "return_code": KILLED,
        "stdout": verdict.output, "stderr": explain_failure(verdict),
    }  # fmt: skip
    if verdict.reason == "timeout":
        run |= {"status": "TimeLimitExceeded", "return_code": None, "stderr": ""}
    return _response("Failed", run=run)


def render_submission(answer: JudgeAnswer, wanted: Dataset, subject: JudgeTask) -> dict[str, Any]:
    """Return a verdict as SandboxFusion does."""
    verdict, tests = answer.read_verdict(), subject.problem.tests
    passed = verdict.status == "pass"
    run = {
        "status": "TimeLimitExceeded" if verdict.reason == "timeout" else "Finished",
        "execution_time": verdict.wall_s,
        "return_code": 0 if passed else 1,
        "stdout": verdict.output,
        "stderr": "" if passed else f"{verdict.reason}: {explain_failure(verdict)}",
    }
    info = _response("Success" if passed else "Failed", run=run)
    return {
        "id": wanted.id,
        "accepted": passed,
        "extracted_code": answer.program,
        "full_code": f"{tests.preamble}{answer.program}",
        "test_code": tests.code,
        "tests": [{"passed": passed, "exec_info": info, "test_info": None}],
        "extracted_type": _extracted_type(verdict.rule, answer.program),
        "extra": {"reason": verdict.reason, "rule": verdict.rule},
    }


def _response(
    status: str,
    message: str = "",
    run: dict[str, Any] | None = None,
    files: dict[str, str] | None = None,
) -> dict[str, Any]:
    return {
        "status": status, "message": message, "compile_result": None, "run_result": run,
        "executor_pod_name": platform.node(), "files": files or {},
    }  # fmt: skip


def _decode(output: bytes) -> str:
    try:
        return output.decode()
    except UnicodeDecodeError as error:  # as SandboxFusion does
        return f"[DecodeError] {error}"


def _extracted_type(rule: str, program: str) -> str:
    if rule == "none" or not program:
        return "empty"
    return "fenced" if "fence" in rule else "heuristic"


def _find(served: Served, wanted: str | int) -> JudgeTask:
    """Return a task by its id, or by the number at the end of its id."""
    for task_id, subject in served.subjects.items():
        if str(wanted) in (task_id, task_id.rpartition("/")[2]):
            return subject
    raise RequestRefusedError(
        400, f"id {str(wanted)[:80]!r}: is not a task of {served.benchmark.name}"
    )


def _slice(served: Served, wanted: Dataset) -> tuple[Problem, ...]:
    return served.benchmark.problems[wanted.offset : wanted.offset + wanted.limit]


def _prompt(served: Served, problem: Problem, wanted: Dataset) -> dict[str, Any]:
    form: PromptForm = "text" if wanted.is_fewshot else "chat"
    built = find_strategy(DEFAULT_STRATEGY, served.benchmark).build(problem, form)
    text = built.text or "\n\n".join(message.content for message in built.messages)
    return {"id": problem.task_id, "prompt": text, "labels": dict(problem.labels)}
