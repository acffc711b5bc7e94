"""The examples for Kubernetes and Slurm are well-formed, and their commands are assay's."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from assay.cli.main import cli

FOLDER = Path(__file__).parents[2] / "examples" / "cluster"
MANIFEST, SCRIPT = FOLDER / "kuberay.yaml", FOLDER / "slurm.sbatch"


def check_command(words: list[str]) -> None:
    """Fail unless assay has this command with these options."""
    name, *arguments = words
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, name
    known = {flag for parameter in command.params for flag in parameter.opts}
    flags = [word for word in arguments if word.startswith("--")]
    assert "--ray" in flags
    assert set(flags) <= known


@pytest.fixture(scope="module")
def manifest() -> Any:
    return yaml.safe_load(MANIFEST.read_text())


def pods(manifest: Any) -> list[Any]:
    cluster = manifest["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]


def test_the_manifest_is_a_ray_job_with_our_command(manifest: Any) -> None:
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayJob")
    program, *words = shlex.split(manifest["spec"]["entrypoint"])
    assert program == "assay"
    check_command(words)
    assert words[words.index("--sandbox-tier") + 1] == "landlock"


def test_no_container_is_privileged(manifest: Any) -> None:
    for pod in pods(manifest):
        (container,) = pod["containers"]
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["runAsNonRoot"] is True
        assert "privileged" not in context
        assert not pod.get("hostNetwork")
        assert not pod.get("hostPID")


def test_mounts_have_volumes_and_paths_are_the_same_on_all_nodes(manifest: Any) -> None:
    mounts = []
    for pod in pods(manifest):
        (container,) = pod["containers"]
        names = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == names
        mounts.append(container["volumeMounts"])
    assert all(one == mounts[0] for one in mounts)
    assert manifest["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"


def test_the_script_is_valid_bash_with_our_command() -> None:
    bash = shutil.which("bash")
    assert bash
    assert subprocess.run([bash, "-n", SCRIPT], capture_output=True).stderr == b""
    text = SCRIPT.read_text().replace("\\\n", " ")
    (line,) = [one for one in text.splitlines() if re.search(r"\bassay suite\b", one)]
    check_command(shlex.split(line[line.index("assay suite") :])[1:])


def test_the_script_asks_slurm_for_nodes() -> None:
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=?(\S*)$", SCRIPT.read_text(), re.M))
    assert int(options["nodes"]) > 1
    assert options["ntasks-per-node"] == "1"
    assert "requeue" in options
