"""Train the default model for a few steps with GRPO: TRL asks assay for the rewards.

    pip install 'assay-eval[gguf,hf,trl]'
    python examples/reward/grpo_trl.py --steps 20

It runs on a CPU. A tenth of the reward is for a program that defines the function, and the rest for
the share of the problem's assertions that it passes. To save time, only the last layers are
trained. docs/guides/rewards.md has the measured time and rewards.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from datasets import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PrinterCallback,
    TrainerCallback,
)
from trl import GRPOConfig, GRPOTrainer

import assay
from assay.models import convert
from assay.reward import TrlReward
from assay.types import Problem

BENCHMARK = "mbpp-train"
SEED = 0


def choose_problems(count: int, data_dir: str | None) -> Dataset:
    """Return the problems with the shortest solutions, as prompts and task ids.

    A pass can be forged where tests share the program's interpreter, so such problems are left out.
    """
    benchmark = assay.load_benchmark(BENCHMARK, data_dir=data_dir)
    safe = [p for p in benchmark.problems if p.tests.integrity == "separated"]
    chosen = sorted(safe, key=lambda p: len(p.reference))[:count]
    return Dataset.from_list(
        [{"prompt": ask(problem), "task_id": problem.task_id} for problem in chosen]
    )


def ask(problem: Problem) -> list[dict[str, str]]:
    """Return a short prompt with the first assertion. The others are only used for judging."""
    before, first, *_ = problem.prompt.strip('"\n').split("\nassert ")
    return [
        {"role": "system", "content": "Answer with Python code only."},
        {"role": "user", "content": f"{before}\nassert {first}"},
    ]


def train_last_layers(model: PreTrainedModel, count: int) -> None:
    """Freeze everything but the last layers, so that a step costs less."""
    model.requires_grad_(False)
    for layer in model.model.layers[-count:]:
        layer.requires_grad_(True)


class PrintRewards(TrainerCallback):
    """Print the rewards of every step."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def on_log(self, _args, state, _control, logs=None, **_more) -> None:
        if logs and "reward" in logs:
            print(
                f"step {state.global_step:2d}  reward {logs['reward']:.3f}"
                f"  passed {logs.get('assay/passed', 0.0):.3f}  invalid {logs['assay/invalid']:.0f}"
                f"  {time.monotonic() - self.began:.0f} s",
                flush=True,
            )


def train(options: argparse.Namespace, folder: Path) -> None:
    """Run GRPO. Each step samples ``--generations`` programs per problem."""
    path = options.model
    if path == "default":
        path = str(folder / "model")
        convert("default", Path(path))
    model = AutoModelForCausalLM.from_pretrained(path)
    train_last_layers(model, options.layers)
    config = GRPOConfig(
        output_dir=str(folder / "run"),
        max_steps=options.steps,
        per_device_train_batch_size=options.batch,
        num_generations=options.generations,
        max_completion_length=options.max_tokens,
        temperature=0.9,
        learning_rate=options.learning_rate,
        lr_scheduler_type="constant",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=SEED,
    )
    trainer = GRPOTrainer(
        model=model,
        processing_class=AutoTokenizer.from_pretrained(path),
        reward_funcs=TrlReward(
            benchmark=BENCHMARK, partial=True, format_share=0.1, data_dir=options.data
        ),
        args=config,
        train_dataset=choose_problems(options.problems, options.data),
        callbacks=[PrintRewards()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default", help="Hugging Face folder or hub id.")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--problems", type=int, default=4)
    parser.add_argument("--generations", type=int, default=4, help="Samples per problem.")
    parser.add_argument("--batch", type=int, default=4, help="Samples per step.")
    parser.add_argument("--layers", type=int, default=6, help="Layers to train, from the last.")
    parser.add_argument("--max-tokens", type=int, default=36)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--data", help="Folder with benchmark data, if it cannot be downloaded.")
    with tempfile.TemporaryDirectory() as folder:
        train(parser.parse_args(), Path(folder))


if __name__ == "__main__":
    main()
