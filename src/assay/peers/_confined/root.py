"""Build a root folder that shows a command only what it needs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from inside.isolation import kernel, root, visible
from inside.isolation.kernel import MS_NODEV, MS_NOSUID

from .messages import Settings

SCRATCH = "/tmp"  # inside: the only folder that can be written
INODES = 1 << 16


def enter_private_root(settings: Settings, uid: int | None) -> None:
    """Leave the host's files behind, for the supervisor too.

    What stays is read-only: the system's folders and ``shown``, a map from places to host files,
    without ``hidden``. ``inputs`` are copied into the scratch folder, which belongs to ``uid``.
    """
    inputs = {name: os.open(path, os.O_RDONLY) for name, path in settings.inputs.items()}
    system = (*visible.system_folders(), *visible.system_files())
    scratch = Path(root.STAGING + SCRATCH)

    def mount_scratch() -> None:
        """Mount the scratch folder first, because some of the files may be shown below it."""
        scratch.mkdir()
        options = f"size={settings.limits.files_mb}m,nr_inodes={INODES},mode=1777"
        kernel.mount("tmpfs", str(scratch), "tmpfs", MS_NOSUID | MS_NODEV, options)

    shown = {path: path for path in system} | settings.shown
    root.build(shown, settings.hidden, mount_scratch)
    for name, source in inputs.items():
        with os.fdopen(source, "rb") as content, (scratch / name).open("wb") as target:
            shutil.copyfileobj(content, target)
        if uid is not None:
            os.chown(scratch / name, uid, uid)
    Path(root.STAGING, "dev/shm").symlink_to(SCRATCH)
    Path(root.STAGING + root.PROC).mkdir()
    kernel.mount("proc", root.STAGING + root.PROC, "proc", root.PROC_FLAGS)
    root.cover_all_but_figures(root.STAGING + root.PROC)
    root.enter()
