"""Files from elsewhere, fetched once into the cache and verified."""

from assay.fetch._cache import (
    FetchError,
    cache_dir,
    check_private,
    file_sha256,
    offline,
    verify,
)
from assay.fetch._digests import kept_sha256
from assay.fetch._http import RemoteFile, download
from assay.fetch._seal import read_sealed, write_sealed
from assay.fetch._wheel import PackagedFile, installed_file, packaged_file, packaged_path

__all__ = [
    "FetchError", "PackagedFile", "RemoteFile", "cache_dir", "check_private", "download",
    "file_sha256", "installed_file", "kept_sha256", "offline", "packaged_file", "packaged_path",
    "read_sealed", "verify", "write_sealed",
]  # fmt: skip
