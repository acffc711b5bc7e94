"""A model folder made on the spot: a small Llama of random weights, a token per letter.

``python -m tests.models.tiny_folder FOLDER`` also writes LoRA weights into FOLDER/adapter, and what
transformers itself generates for PROMPTS into FOLDER/greedy.json. Apart from the tests' process
because transformers warns of this and that when it is imported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PROMPTS = ("def add(a, b):", "x", "The quick brown fox jumps over the lazy dog. " * 2)
NEW_TOKENS = 24
CONTEXT = 256
RANK = 4
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def main(folder: Path) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = _tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        initializer_range=0.5,  # far apart: no near ties among the next tokens
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "greedy.json").write_text(json.dumps([_greedy(model, tokenizer, p) for p in PROMPTS]))
    _write_adapter(folder / "adapter", config)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = [*map(chr, range(33, 127)), "Ġ", "Ċ"]  # ASCII: any tokens are a whole text
    vocabulary = {letter: number for number, letter in enumerate(["<s>", "</s>", *letters])}
    bytewise = Tokenizer(models.BPE(vocabulary, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytewise.decoder = decoders.ByteLevel()
    bytewise.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bytewise,
        bos_token="<s>",
        eos_token="</s>",
        chat_template=TEMPLATE,
        model_max_length=CONTEXT,
    )


def _greedy(model: Any, tokenizer: Any, prompt: str) -> str:
    asked = tokenizer(prompt, return_tensors="pt")
    made = model.generate(
        input_ids=asked["input_ids"],
        attention_mask=asked["attention_mask"],
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        pad_token_id=tokenizer.eos_token_id,
    )
    new = made[0, asked["input_ids"].shape[1] :]
    text: str = tokenizer.decode(new, skip_special_tokens=True)
    return text


def _write_adapter(folder: Path, config: Any) -> None:
    import torch
    from safetensors.torch import save_file

    folder.mkdir()
    layer = "base_model.model.model.layers.0.self_attn.q_proj"
    save_file(
        {
            f"{layer}.lora_A.weight": torch.randn(RANK, config.hidden_size),
            f"{layer}.lora_B.weight": torch.randn(config.hidden_size, RANK),
        },
        folder / "adapter_model.safetensors",
    )
    settings = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": 16, "bias": "none",
        "target_modules": ["q_proj"],
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(settings))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
