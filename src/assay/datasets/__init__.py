"""Download files once into the cache and verify them."""

from assay.datasets.cache import (
    FetchError,
    cache_dir,
    check_private,
    file_sha256,
    offline,
    verify,
)
from assay.datasets.http import RemoteFile, download
from assay.datasets.seal import look_up_sha256, read_sealed, write_sealed
from assay.datasets.wheel import PackagedFile, installed_file, packaged_file, packaged_path

__all__ = [
    "FetchError", "PackagedFile", "RemoteFile", "cache_dir", "check_private", "download",
    "file_sha256", "installed_file", "look_up_sha256", "offline", "packaged_file", "packaged_path",
    "read_sealed", "verify", "write_sealed",
]  # fmt: skip
