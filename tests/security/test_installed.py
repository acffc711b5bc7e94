"""Programs find neither tests nor references where assay is installed into the interpreter.

Most container images and conda's base environment are like that. If the folder of the interpreter's
packages is in a program's root, the tests can be read, and any task passes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.security.in_tiers import (
    HARNESS,
    ORDINARY_UID,
    SOURCE,
    SYSTEM_PYTHON,
    TIERS,
    Step,
    encode_steps,
    job,
)  # fmt: skip

# In mounts of its own, so that the machine keeps its packages.
INSTALL = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 none "$1"
cp -r "$2" "$1/assay"
mkdir "$1/assay-0.dist-info"
echo "Name: assay" > "$1/assay-0.dist-info/METADATA"
chmod -R a+rX "$1"
cd /
shift 2
exec "$@"
"""
FINDS = r"""
import glob, os, sys
found = set()
places = [*sys.path, sys.base_prefix, sys.prefix, '/usr/lib', '/usr/local/lib', '/opt']
for place in dict.fromkeys(p for p in places if p):
    for pattern in ('assay*', '*-packages/assay*', '*/*-packages/assay*', '*/*/*-packages/assay*'):
        found.update(glob.glob(f'{place}/{pattern}'))
for module in list(sys.modules.values()):
    path = getattr(module, '__file__', None) or ''
    if 'assay' in path and os.path.exists(path): found.add(path)
try:
    import assay
    found.add(assay.__file__)
except ImportError: pass
def is_readable(path):
    # Names alone can be seen in tier landlock, as those of all host files.
    for inner in [path, *glob.glob(f'{path}/*'), *glob.glob(f'{path}/*/*')]:
        try:
            with open(inner, 'rb') as file: file.read(1)
            return True
        except OSError: continue
    return False
found = set(filter(is_readable, found))
def f():
    if found: raise LookupError(' '.join(sorted(found)))
    return 1
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a package folder")
@pytest.mark.skipif(not Path(SYSTEM_PYTHON).exists(), reason=f"needs {SYSTEM_PYTHON}")
@pytest.mark.parametrize("tier", TIERS)
def test_an_installation_of_assay_is_not_seen(tier: str) -> None:
    """Refusing to judge there is as good as hiding it."""
    packages = package_folder()
    as_user = ["setpriv", f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", "--clear-groups"]
    harness = [SYSTEM_PYTHON, "-c", f"{HARNESS}\nmain()", tier, "1", "tier"]
    command = ["unshare", "-m", "bash", "-c", INSTALL, "bash", packages, str(SOURCE / "assay")]
    done = subprocess.run(
        [*command, *(as_user if tier != "root" else []), *harness],
        input=encode_steps([Step([job("finds", FINDS), job("finds", FINDS, integrity="shared")])]),
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        assert "SandboxError" in done.stderr, done.stderr
    else:
        assert done.stdout.count('"status": "pass"') == 2, done.stdout


def package_folder() -> str:
    """Return a folder of packages that the system's interpreter looks into."""
    for tool in ("unshare", "setpriv", "mount"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    script = "import site; print('\\n'.join(site.getsitepackages()))"
    said = subprocess.run([SYSTEM_PYTHON, "-c", script], capture_output=True, text=True)
    for folder in said.stdout.split():
        if Path(folder).is_dir():
            return folder
    pytest.skip(f"{SYSTEM_PYTHON} has no folder of packages")
