"""Query this machine's GPU from its driver, without loading any other library."""

from __future__ import annotations

import ctypes

from assay.errors import UsageError


def require_gpu(device: str) -> None:
    """Raise UsageError if a GPU is requested on a machine that has none."""
    if device == "cuda" and not driver_gpu():
        raise UsageError("--device cuda: this machine has no NVIDIA GPU. Use --device auto or cpu.")


def driver_gpu() -> str:
    """Return the first GPU's name and the driver's version; an empty text if there is none."""
    count, device, version = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0)
    name = ctypes.create_string_buffer(256)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    failed = (
        driver.cuInit(0)
        or driver.cuDeviceGetCount(ctypes.byref(count))
        or not count.value
        or driver.cuDeviceGet(ctypes.byref(device), 0)
        or driver.cuDeviceGetName(name, len(name), device)
        or driver.cuDriverGetVersion(ctypes.byref(version))
    )
    return "" if failed else f"{name.value.decode(errors='replace')}, CUDA {version.value}"
