"""Measure generated tokens per second, from prompts to texts.

    python benchmarks/generation.py --model hf:FOLDER [--samples 10] [--temperature 0.8]
    python benchmarks/generation.py --problems 8 --against-one

HumanEval's prompts, ``--samples`` completions each. The engine is loaded and warmed up before (both
reported separately), then every request is sent and every answer awaited: tokenising, reading
prompts, decoding, texts. ``--against-one`` measures the same requests one at a time in the same
run, the two ways in turn, and compares the texts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

from assay import benchmarks
from assay.models import EngineOptions, open_model
from assay.models.workers.engine_messages import Ask, Reply
from assay.models.workers.process import EngineProcess
from assay.models.workers.process_model import ProcessModel
from assay.pipeline import sample_seed
from assay.prompts import strategies
from assay.types import Decoding, PromptForm, Request

Texts = dict[tuple[str, int], str]


def requests(
    form: PromptForm, problems: int, samples: int, decoding: Decoding, seed: int
) -> list[Request]:
    build = strategies.get("standard").build
    chosen = benchmarks.load("humaneval").problems[:problems]
    return [
        Request(p.task_id, s, build(p, form), decoding, sample_seed(seed, p.task_id, s))
        for p in chosen
        for s in range(samples)
    ]


def started(spec: str, options: EngineOptions, first: Request) -> tuple[EngineProcess[Any], float]:
    model = open_model(spec, options)
    if not isinstance(model, ProcessModel):
        raise SystemExit(f"{spec} is no engine of its own process")
    begun = time.perf_counter()
    process = EngineProcess(model._worker)
    process.load(model.settings(first))
    process.wait_until_loaded()
    return process, time.perf_counter() - begun


def measured(process: EngineProcess[Any], asked: list[Request]) -> tuple[float, int, Texts]:
    """Seconds, tokens and texts of all requests."""
    begun = time.perf_counter()
    sent, tokens, texts = 0, 0, {}
    while len(texts) < len(asked):
        while sent < len(asked) and sent - len(texts) < process.in_hand:
            process.send(Ask(sent, asked[sent]))
            sent += 1
        reply = process.reply(Reply)
        if reply.error:
            raise SystemExit(reply.error)
        texts[asked[reply.id].key] = reply.text
        tokens += reply.tokens_generated
    return time.perf_counter() - begun, tokens, texts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="default")
    parser.add_argument("--problems", type=int, default=164)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--parallel", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against-one", action="store_true")
    asked = parser.parse_args()
    form = open_model(asked.model).identity.prompt_form
    decoding = Decoding(asked.max_tokens, asked.temperature, 40 if asked.temperature else 1)
    work = requests(form, asked.problems, asked.samples, decoding, 0)
    warm_up = requests(form, asked.problems, asked.samples, decoding, 1)
    ways = {"batched": EngineOptions(parallel=asked.parallel)}
    if asked.against_one:
        ways["one at a time"] = EngineOptions(batch_mode="off")
        warm_up = warm_up[:: len(warm_up)]
    processes, rates, texts = {}, {}, {}
    for name, options in ways.items():
        processes[name], load_s = started(asked.model, options, work[0])
        warm_s, *_ = measured(processes[name], warm_up)
        rates[name] = []
        print(f"{name}: loaded in {load_s:.1f} s, warmed up in {warm_s:.1f} s, "
              f"{processes[name].facts.to_json()}")  # fmt: skip
    for _ in range(asked.rounds):
        for name, process in processes.items():
            seconds, tokens, texts[name] = measured(process, work)
            rates[name].append(tokens / seconds)
            print(f"{name}: {tokens} tokens in {seconds:.2f} s, {tokens / seconds:,.0f} tokens/s")
            sys.stdout.flush()
    medians = {name: statistics.median(found) for name, found in rates.items()}
    if asked.against_one:
        batched, alone = texts.values()
        same = sum(batched[key] == alone[key] for key in batched)
        times = medians["batched"] / medians["one at a time"]
        print(f"batched is {times:.1f} times as fast; {same} of {len(batched)} texts are the same")
    for process in processes.values():
        process.close()


if __name__ == "__main__":
    main()
