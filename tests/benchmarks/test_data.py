"""Where data comes from, in which order, and what is taken for the right file."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay import benchmarks
from assay.data import codec
from assay.datasets import PackagedFile
from assay.datasets.catalogue import DataFile, data_files, find, locate, records, text
from assay.datasets.pinned import HUMANEVAL, HUMANEVALPLUS, MBPP, MBPP_SANITIZED, MBPPPLUS
from assay.errors import DataError, UsageError
from tests.file_server import FileServer, serving

RECORDS = [{"task_id": i, "text": f"tâche {i}\u2028", "cost": i / 3} for i in range(50)]
JSONL = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()
TOY = DataFile(
    name="toy-set",
    path="toys/toy.jsonl.gz",
    version="v1",
    licence="MIT",
    records=50,
    sha256=hashlib.sha256(JSONL).hexdigest(),
    records_sha256=codec.digest(RECORDS),
)
PACKED = gzip.compress(JSONL, mtime=0)  # the same bytes at any time: they are parameters of tests


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("ASSAY_DATA_DIR", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving({"/v1/toy.jsonl": JSONL}) as server:
        yield server


def served(server: FileServer, *paths: str) -> DataFile:
    return dataclasses.replace(TOY, urls=tuple(server.url + path for path in paths))


def put(path: Path, content: bytes = JSONL) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_all_data_files_are_known_by_name() -> None:
    assert set(data_files.names()) >= {
        "bigcodebench", "bigcodebench-hard", "humaneval", "humanevalplus", "humanevalplus-mini",
        "mbpp", "mbpp-sanitized", "mbppplus", "wikitext-2", "cruxeval", "evoeval-combine",
        "evoeval-concise", "evoeval-creative", "evoeval-difficult", "evoeval-subtle",
        "evoeval-tool-use", "evoeval-verbose", "humaneval-pro", "mbpp-pro",
        "bigcodebench-lite-pro", "humanevalpack-python",
    }  # fmt: skip
    with pytest.raises(UsageError, match="data file 'x': unknown. Choose bigcodebench,"):
        data_files.get("x")


@pytest.mark.parametrize("name", data_files.names())
def test_the_pins_name_a_version_and_not_a_moving_target(name: str) -> None:
    wanted = data_files.get(name)
    assert wanted.name == name
    assert wanted.urls or wanted.origin
    for url in wanted.urls:
        assert url.startswith(("https://github.com/", "https://raw.", "https://huggingface.co/"))
        assert not {"main", "master", "HEAD", "latest"} & set(url.split("/"))
    assert {len(wanted.sha256), len(wanted.records_sha256)} == {64}


@pytest.mark.slow
@pytest.mark.parametrize("name", data_files.names())
def test_the_development_data_is_the_pinned_data(shared_data: Path, name: str) -> None:
    wanted = data_files.get(name)
    if not (shared_data / wanted.path).exists():
        pytest.skip(f"{shared_data} has no {wanted.path}")
    assert locate(wanted, data_dir=shared_data) == shared_data / wanted.path
    found = records(wanted, data_dir=shared_data)
    whole = text(wanted, data_dir=shared_data) if wanted.is_text else ""
    assert len(found) == wanted.records
    if wanted.is_text:
        assert hashlib.sha256(whole.encode()).hexdigest() == wanted.sha256
    else:
        ids = {record.get("task_id", record.get("id")) for record in found}
        assert len(ids) == wanted.records
        assert None not in ids


@pytest.mark.parametrize(
    "content",
    [
        JSONL,
        PACKED,
        json.dumps(RECORDS).encode(),
        gzip.compress(json.dumps(RECORDS, indent=2, sort_keys=True).encode(), mtime=0),
        "\r\n".join(json.dumps(r, ensure_ascii=False) for r in RECORDS).encode(),
    ],
    ids=["jsonl", "jsonl.gz", "json", "indented json.gz", "crlf, not ascii"],
)
def test_the_same_records_in_any_form(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / TOY.path, content)
    assert records(TOY, data_dir=tmp_path) == RECORDS


def test_the_same_records_as_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs the parquet extra")
    import pyarrow
    from pyarrow import parquet

    (tmp_path / "toys").mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(RECORDS), tmp_path / TOY.path)
    assert records(TOY, data_dir=tmp_path) == RECORDS


def test_parquet_without_its_reader_says_how_to_get_one(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n: None if n == "pyarrow" else find_spec(n)
    )
    put(tmp_path / TOY.path, b"PAR1...")
    with pytest.raises(DataError, match=r"pip install 'assay-eval\[parquet\]'"):
        records(TOY, data_dir=tmp_path)
    with pytest.raises(DataError, match=r"has it as parquet: pip install .*Put http.* at "):
        records(served(server, "/v1/toy.parquet"))
    assert server.requests == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0 records instead of 50"),
        (JSONL[:-200], "damaged"),
        (PACKED[:-20], "damaged"),
        (PACKED[:200] + b"\x01\x07" + PACKED[202:], "damaged"),
        (JSONL + b'{"task_id": 50}\n', "51 records instead of 50"),
        (JSONL.replace(b'"text"', b'"test"'), "records' sha256"),
        (b"".join(JSONL.splitlines(keepends=True)[::-1]), "records' sha256"),
        (b"[1, 2]", "not a list of records"),
        (b"null", "not a list of records"),
        (b"\xff\xfe", "damaged"),
    ],
    ids=range(10),
)
def test_anything_else_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    put(tmp_path / TOY.path, content)
    with pytest.raises(DataError) as caught:
        records(TOY, data_dir=tmp_path)
    assert said in str(caught.value)
    assert f"{TOY.path}: is damaged or another version (expected toy-set v1" in str(caught.value)
    assert "Replace it" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_order_of_places(
    tmp_path: Path, cache: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = dataclasses.replace(served(server, "/v1/toy.jsonl"), also_named_by=("TOY_OVERRIDE",))
    fetched = locate(wanted)
    assert fetched == cache / "toy-set-v1" / "toy.jsonl"
    assert locate(wanted) == fetched
    assert len(server.requests) == 1
    by_hand = put(cache / "toy-set-v1" / "toy.jsonl.gz")
    assert locate(wanted) == by_hand
    for variable in ("TOY_OVERRIDE", "ASSAY_TOY_SET_PATH"):
        named = put(tmp_path / variable)
        monkeypatch.setenv(variable, str(named))
        assert locate(wanted) == named
    in_environment = put(tmp_path / "environment" / "toys" / "toy.jsonl")
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path / "environment"))
    assert locate(wanted) == in_environment
    given = put(tmp_path / "given" / "toys" / "toy.jsonl.gz")
    assert locate(wanted, data_dir=tmp_path / "given") == given
    assert locate(wanted) == in_environment
    assert len(server.requests) == 1


def test_an_installed_package_comes_before_a_download(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    installed = put(site / "toy_package" / "toy.jsonl")
    put(site / "toy_package-1.0.dist-info" / "METADATA", b"Name: toy-package\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(site))
    packaged = PackagedFile("toy-package", "1.0", "toy_package/toy.jsonl", TOY.sha256, 1, "MIT")
    wanted = dataclasses.replace(served(server, "/v1/toy.jsonl"), packaged=packaged)
    assert locate(wanted) == installed
    assert server.requests == []
    other = dataclasses.replace(wanted, packaged=dataclasses.replace(packaged, version="2.0"))
    assert find(other) is None


def test_a_source_that_fails_gives_way_to_the_next(server: FileServer, cache: Path) -> None:
    server.files["/v2/toy.jsonl"] = b"another file"
    said: list[str] = []
    wanted = served(server, "/v0/toy.jsonl", "/v2/toy.jsonl", "/v1/toy.jsonl")
    assert records(wanted, said.append) == RECORDS
    assert "(404 Not Found); trying the next source" in said[1]
    assert "the file has changed" in said[3]
    assert [path for path, _ in server.requests] == [
        url.removeprefix(server.url) for url in wanted.urls
    ]
    assert [path.name for path in (cache / "toy-set-v1").iterdir()] == ["toy.jsonl"]


def test_a_package_that_cannot_be_had_gives_way_to_the_address(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    packaged = PackagedFile("no-such-toy", "1.0", "toy.jsonl", TOY.sha256, 1, "MIT")
    wanted = dataclasses.replace(served(server, "/v1/toy.jsonl"), packaged=packaged)
    assert records(wanted) == RECORDS


def test_when_no_source_gives_it_the_error_says_which_file_to_put_where(
    server: FileServer, cache: Path
) -> None:
    wanted = served(server, "/v0/toy.jsonl")
    with pytest.raises(DataError) as caught:
        records(wanted)
    assert str(caught.value).endswith(
        f"(404 Not Found)). Put {wanted.urls[0]} at {cache}/toy-set-v1/toy.jsonl.gz, "
        "or as toys/toy.jsonl.gz into a folder for --data."
    )
    put(cache / "toy-set-v1" / "toy.jsonl.gz", JSONL)
    assert records(wanted) == RECORDS


def test_offline_nothing_is_asked_for(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "true")
    with pytest.raises(
        DataError, match=r"toy-set v1: is not on this machine \(HF_HUB_OFFLINE is set\)\. Put "
    ):
        records(served(server, "/v1/toy.jsonl"))
    assert server.requests == []


def test_a_damaged_file_in_the_cache_says_to_delete_it(cache: Path) -> None:
    put(cache / "toy-set-v1" / "toy.jsonl.gz", b"half a fi")
    with pytest.raises(DataError, match="Delete it to download it again"):
        records(TOY)


def test_a_variable_that_names_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_TOY_SET_PATH", str(tmp_path / "none"))
    with pytest.raises(DataError, match="ASSAY_TOY_SET_PATH: .*none is not a file"):
        records(TOY)
    monkeypatch.setenv("ASSAY_TOY_SET_PATH", str(put(tmp_path / "other", b"{}")))
    with pytest.raises(DataError, match="another version .*Correct or unset ASSAY_TOY_SET_PATH"):
        records(TOY)


@pytest.mark.slow
def test_the_variables_of_evalplus_name_the_plus_sets(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, wanted, base in (
        ("HUMANEVAL_OVERRIDE_PATH", HUMANEVALPLUS, HUMANEVAL),
        ("MBPP_OVERRIDE_PATH", MBPPPLUS, MBPP),
    ):
        if not (shared_data / wanted.path).exists():
            pytest.skip(f"{shared_data} has no {wanted.path}")
        plain = tmp_path / f"{wanted.name}.jsonl"  # EvalPlus keeps it without compression
        with gzip.open(shared_data / wanted.path) as source, plain.open("wb") as sink:
            shutil.copyfileobj(source, sink)
        monkeypatch.setenv(variable, str(plain))
        assert locate(wanted) == plain
        assert find(base) is None


def test_names_of_variables() -> None:
    assert HUMANEVAL.variable == "ASSAY_HUMANEVAL_PATH"
    assert MBPP_SANITIZED.variable == "ASSAY_MBPP_SANITIZED_PATH"


def test_a_benchmark_is_loaded_from_the_folder_it_is_given(tmp_path: Path) -> None:
    put(tmp_path / HUMANEVAL.path, b"not the data")
    with pytest.raises(DataError, match="damaged or another version"):
        benchmarks.load("humaneval", data_dir=tmp_path)
