"""Stands in for aprender's ``apr``: the options and lines of ``apr run --batch-jsonl``, no model.

As its sources have them: the file is read line by line, each answer is flushed, an unreadable line
is answered without a task id, the summary goes to stderr. What it "generates" is asked for by the
prompt's last word, so that tests need no model.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

HELP = """Usage: apr run [OPTIONS] <SOURCE> [PROMPT]
      --batch-jsonl <FILE>  Batch mode: read prompts from JSONL, output results as JSONL"""


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print("apr 0.0.0 (stand-in)")
        return 0
    if arguments == ["run", "--help"]:
        print(HELP if "STAND_IN_OLD" not in os.environ else HELP.splitlines()[0])
        return 0
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("command", choices=["run"])
    parser.add_argument("source")
    parser.add_argument("--batch-jsonl", required=True)
    parser.add_argument("--max-tokens", type=int, required=True)
    parser.add_argument("--temperature", type=float, required=True)
    parser.add_argument("--top-k", type=int, required=True)
    parser.add_argument("--no-gpu", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    asked = parser.parse_args(arguments)
    if "STAND_IN_LOG" in os.environ:
        with Path(os.environ["STAND_IN_LOG"]).open("a") as log:
            log.write(json.dumps(vars(asked)) + "\n")
    print("Loading the model", flush=True)
    with Path(asked.batch_jsonl).open() as lines:
        for line in lines:
            found = answer(line, asked)
            if "STAND_IN_FILE" in os.environ:  # whatever a test wants, also what is not text
                sys.stdout.buffer.write(Path(os.environ["STAND_IN_FILE"]).read_bytes() + b"\n")
                sys.stdout.buffer.flush()
                continue
            print(json.dumps(found), flush=True)
    print("[batch] Complete", file=sys.stderr)
    return 0


def answer(line: str, asked: argparse.Namespace) -> dict[str, Any]:
    time.sleep(float(os.environ.get("STAND_IN_PAUSE", "0")))
    prompt = json.loads(line)
    told = {"text": "", "tokens_generated": 0, "tok_per_sec": 0.0, "inference_ms": 1.5}
    told |= {"used_gpu": False}
    if "\ud800" in prompt["prompt"]:  # as strict as the real one's reader
        return {**told, "error": "JSON parse error: lone leading surrogate"}
    told["task_id"] = prompt["task_id"]
    word = prompt["prompt"].split()[-1]
    if word == "crash":
        print("CUDA error: out of memory", file=sys.stderr, flush=True)
        os._exit(3)
    if word == "garbage":
        return {"garbage": True}
    if word == "fail":
        return {**told, "error": "Tokenizer encode failed"}
    draw = random.random() if asked.temperature and "STAND_IN_FIXED" not in os.environ else 0
    text = f"{prompt['prompt']}|{draw}"
    tokens = prompt["max_tokens"] if word == "long" else 3
    return {**told, "text": text, "tokens_generated": tokens}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
