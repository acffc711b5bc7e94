"""SandboxFusion's API can be deleted with its folder: the service starts, and judges as before."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import assay

CHECK = """
import json, sys, urllib.request
import assay
from assay.cli import cli
from assay.serve.options import ServeOptions
from assay.serve.server import JudgeServer

assert assay.__path__ == [sys.argv[1]]
cli.main(["serve", "--help"], "assay", standalone_mode=False)
server = JudgeServer(ServeOptions(port=0, workers=1, log_requests=False))
server.start()
tests = {"entry_point": "f", "cases": [{"arguments": [], "expected": 1}]}
body = {"programs": [{"program": "def f(): return 1", "tests": tests}]}
call = urllib.request.Request(server.url + "/judge", json.dumps(body).encode())
print(json.load(urllib.request.urlopen(call))["verdicts"][0]["status"])
print(json.load(urllib.request.urlopen(server.url + "/about"))["languages"])
try:
    urllib.request.urlopen(server.url + "/v1/ping")
except urllib.error.HTTPError as error:
    print(error.code)
server.end()
"""


def test_without_its_folder_the_service_starts_and_judges(tmp_path: Path) -> None:
    (source,) = assay.__path__
    package = Path(shutil.copytree(source, tmp_path / "assay"))
    shutil.rmtree(package / "serve" / "fusion")
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(package)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Serve the judge over HTTP" in done.stdout
    assert done.stdout.splitlines()[-3:] == ["pass", "[]", "404"]
