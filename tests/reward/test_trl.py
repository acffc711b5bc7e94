"""TRL itself, with a tiny random model: GRPO takes the rewards, and leaves out what has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from assay.reward import TrlReward

pytestmark = pytest.mark.torch
WORDS = ["<pad>", "<end>", "def", "initials", "(", "name", ")", ":", "return", "Convert", "it", "."]


def tiny_model() -> tuple[Any, Any]:
    """Return a random model of a few words, and its tokenizer."""
    import tokenizers
    import transformers

    words = {word: number for number, word in enumerate(WORDS)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="it"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<end>", padding_side="left"
    )
    transformers.set_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(WORDS), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config), tokenizer


class Recorded(TrlReward):
    """Record the rewards, and give the first of a group none, as if the machine had failed."""

    calls: ClassVar[list[list[float | None]]] = []

    def __call__(self, *args: Any, **columns: Any) -> list[float | None]:
        self.calls.append([None, *super().__call__(*args, **columns)[1:]])
        return self.calls[-1]


@pytest.mark.filterwarnings("ignore")  # of other packages
def test_grpo_takes_the_rewards_and_leaves_out_what_has_none(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl", reason="needs the trl extra")
    datasets = pytest.importorskip("datasets", reason="needs the trl extra")

    model, tokenizer = tiny_model()
    reward = Recorded(benchmark="mini", format_share=0.5, workers=1)
    trainer = trl.GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=reward,
        args=trl.GRPOConfig(
            output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=4, num_generations=4,
            max_completion_length=8, use_cpu=True, bf16=False, gradient_checkpointing=False,
            logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True,
        ),
        train_dataset=datasets.Dataset.from_list([{"prompt": "Convert it .", "task_id": "mini/1"}]),
    )  # fmt: skip
    trainer.train()
    reward.close()
    logs = [log for log in trainer.state.log_history if "reward" in log]
    assert reward.calls == [[None, 0.0, 0.0, 0.0]] * 2  # random words are not a program
    assert [log["rewards/assay/mean"] for log in logs] == [0.0, 0.0]
    assert [log["assay/passed"] for log in logs] == [0.0, 0.0]
    assert [log["grad_norm"] for log in logs] == [0.0, 0.0]  # equal rewards: nothing to learn
