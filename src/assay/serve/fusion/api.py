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

from assay.judging import JudgeTask
from assay.prompts import DEFAULT_STRATEGY, find_strategy
from assay.serve.catalogue import Served, UnknownError
from assay.serve.engine.backlog import FullError
from assay.serve.engine.languages import make_run
from assay.serve.engine.work import JudgeAnswer, JudgeWork
from assay.serve.fusion.requests import Dataset, RunCode, read_dataset, read_run_code
from assay.serve.judge_api import find_benchmark
from assay.serve.replies import RequestRefusedError, read_body, reply_json
from assay.serve.service import Service
from assay.types import Problem, PromptForm

# Names of datasets in SandboxFusion's own configuration.
ALIASES = {"humaneval_python": "humaneval"}
KILLED = -9
LOOK_EVERY_S = 0.1  # for room in the queue


class FusionApi:
    """The routes of SandboxFusion."""

    def __init__(self, service: Service) -> None:
        self._service = service

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
        body = await read_body(request, service)
        wanted = await service.read(body, read_run_code)
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
        wanted = await self._read(request)
        return reply_json([p.task_id for p in _slice(await self._served(wanted.dataset), wanted)])

    async def get_prompts(self, request: Request) -> Response:
        """Return the prompts of a benchmark."""
        wanted = await self._read(request)
        served = await self._served(wanted.dataset)
        problems = _slice(served, wanted)
        return reply_json(
            await asyncio.to_thread(lambda: [_prompt(served, p, wanted) for p in problems])
        )

    async def get_prompt_by_id(self, request: Request) -> Response:
        """Return the prompt of one task."""
        wanted = await self._read(request, names_task=True)
        served = await self._served(wanted.dataset)
        return reply_json(_prompt(served, _find(served, wanted.id).problem, wanted))

    async def submit(self, request: Request) -> Response:
        """Judge a completion."""
        service = self._service
        body = await read_body(request, service)
        wanted = await service.read(body, functools.partial(read_dataset, submits=True))
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
        if answer.status == "invalid":  # never a rejected program
            raise RequestRefusedError(503, f"SandboxError: {answer.reason}: {answer.detail}")
        return reply_json(render_submission(answer, wanted, subject))

    async def _read(self, request: Request, *, names_task: bool = False) -> Dataset:
        body = await read_body(request, self._service)
        return await self._service.read(
            body, functools.partial(read_dataset, names_task=names_task)
        )

    async def _wait_and_judge(
        self, request: Request, task: tuple[JudgeTask, JudgeWork], size: int, patience_s: float
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
        try:
            self._service.catalogue.find(name)
        except UnknownError:
            raise RequestRefusedError(400, f"no eval class found for dataset {dataset}") from None
        return await find_benchmark(self._service, name)


def render_run(answer: JudgeAnswer, wanted: RunCode) -> dict[str, Any]:
    """Return the outcome of a run as SandboxFusion does."""
    if answer.refused:
        return _response("SandboxError", answer.refused)
    if answer.status == "invalid":
        return _response("SandboxError", f"{answer.reason}: {answer.detail}")
    if ended := answer.ended:
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
        "status": "Finished", "execution_time": answer.wall_s, "return_code": KILLED,
        "stdout": answer.output, "stderr": answer.detail,
    }  # fmt: skip
    if answer.reason == "timeout":
        run |= {"status": "TimeLimitExceeded", "return_code": None, "stderr": ""}
    return _response("Failed", run=run)


def render_submission(answer: JudgeAnswer, wanted: Dataset, subject: JudgeTask) -> dict[str, Any]:
    """Return a verdict as SandboxFusion does."""
    passed, tests = answer.status == "pass", subject.problem.tests
    run = {
        "status": "TimeLimitExceeded" if answer.reason == "timeout" else "Finished",
        "execution_time": answer.wall_s,
        "return_code": 0 if passed else 1,
        "stdout": answer.output,
        "stderr": "" if passed else f"{answer.reason}: {answer.detail}",
    }
    info = _response("Success" if passed else "Failed", run=run)
    return {
        "id": wanted.id,
        "accepted": passed,
        "extracted_code": answer.program,
        "full_code": f"{tests.preamble}{answer.program}",
        "test_code": tests.code,
        "tests": [{"passed": passed, "exec_info": info, "test_info": None}],
        "extracted_type": _extracted_type(answer),
        "extra": {"reason": answer.reason, "rule": answer.rule},
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


def _extracted_type(answer: JudgeAnswer) -> str:
    if answer.rule == "none" or not answer.program:
        return "empty"
    return "fenced" if "fence" in answer.rule else "heuristic"


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
