"""Write a model of real shape with random weights, for measurements of speed.

    python benchmarks/shaped_model.py FOLDER --tokenizer FOLDER [--mean-length 180]

The shape is that of Qwen2.5-Coder-1.5B. The tokenizer is another model's, for instance of a folder
that ``assay convert default FOLDER`` wrote: texts are nonsense, speed is not. One token in
``--mean-length`` of the vocabulary ends an answer, so lengths vary as a real model's do.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

SHAPE = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_act": "silu",
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,  # tied random weights would repeat one token
    "vocab_size": 151936,
    "torch_dtype": "bfloat16",
}


def write_shaped_model(folder: Path, tokenizer: Path, mean_length: int) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    ends = list(range(7, SHAPE["vocab_size"], mean_length))
    torch.manual_seed(0)
    config = AutoConfig.for_model(**SHAPE, eos_token_id=ends)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.generation_config.eos_token_id = ends
    model.save_pretrained(folder)
    for file in tokenizer.iterdir():
        if file.name.startswith(("tokenizer", "special_tokens")) or file.suffix == ".jinja":
            shutil.copy(file, folder)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--mean-length", type=int, default=180)
    asked = parser.parse_args()
    write_shaped_model(asked.folder, asked.tokenizer, asked.mean_length)
