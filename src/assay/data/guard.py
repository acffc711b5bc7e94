"""Guard a server: where it listens, and which requests it answers.

A request is checked by the address that it names, where it comes from, and its token.

A page of another site can make a reader's browser send requests to this server. It can even give
its own name this machine's address (DNS rebinding), so that the browser takes both for one site.
Such a request has the other site's name in ``Host``, so only names of this machine are answered.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import secrets
import socket
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

from assay.data.reading import FileReader
from assay.data.writing import write_whole
from assay.errors import UsageError

HOST = "127.0.0.1"
LEAST_TOKEN = 16  # characters
TOKENS = FileReader(UsageError, "Give a file with one token, or a new name", 4_096)
OTHERS = stat.S_IRWXG | stat.S_IRWXO
LOCAL_NAMES = frozenset({"localhost"})
LONGEST_HOST = 300
BEARER = "Bearer "


@dataclass(frozen=True, slots=True)
class Refusal:
    """The status of a request that is refused, and the reason in one line."""

    status: HTTPStatus
    reason: str


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules of a server. Without a token, everyone who reaches its address may read."""

    names: frozenset[str] = LOCAL_NAMES  # besides addresses as numbers
    only_loopback: bool = True
    any_name: bool = False  # for servers that never answer without a token
    token: str = ""
    cookie: str = "assay_view"  # browsers do not tell the ports of a machine apart
    # What a browser keeps instead of the token. It ends with the server.
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    def check(self, headers: Mapping[str, str]) -> Refusal | None:
        """Return why a request is refused, or None. The token is checked separately."""
        host = headers.get("Host", "")
        if not self._is_ours(host):
            return Refusal(
                HTTPStatus.MISDIRECTED_REQUEST, "this server does not have that host name"
            )
        own = f"http://{host.lower()}", f"https://{host.lower()}"
        is_other = headers.get("Origin", own[0]).lower() not in own
        # A browser may say that another site asks. Following a link to us is allowed.
        site, mode = headers.get("Sec-Fetch-Site", "none"), headers.get("Sec-Fetch-Mode", "")
        if is_other or (site not in ("none", "same-origin") and mode != "navigate"):
            return Refusal(HTTPStatus.FORBIDDEN, "requests from other sites are refused")
        return None

    def admits(self, headers: Mapping[str, str], password: str = "") -> bool:
        """Return whether a request has the token: in the address, a header, or as a session."""
        if not self.token:
            return True
        bearer = headers.get("Authorization", "")
        if bearer.startswith(BEARER):
            password = bearer.removeprefix(BEARER)
        session = ""
        with contextlib.suppress(CookieError):
            if morsel := SimpleCookie(headers.get("Cookie", "")).get(self.cookie):
                session = morsel.value
        return any(
            hmac.compare_digest(value.encode("utf-8", "replace"), known.encode())
            for value, known in ((password, self.token), (session, self.session))
        )

    def _is_ours(self, host: str) -> bool:
        name = _host_name(host)
        if name is None:
            return False
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return self.any_name or name in self.names
        return address.is_loopback or not self.only_loopback


def collect_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name. Values of one that is repeated are joined, so it is never valid."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.title()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


def make_guard(host: str, port: int, token: str = "") -> Guard:
    """Return the rules for a server at this address."""
    cookie = f"assay_view_{port}"
    if is_loopback(host):
        return Guard(token=token, cookie=cookie)
    own = {socket.gethostname().lower(), socket.getfqdn().lower(), host.lower()}
    return Guard(LOCAL_NAMES | own, only_loopback=False, token=token, cookie=cookie)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host.lower() in LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_token(host: str, token: str) -> None:
    """Raise UsageError if others could reach a server at this address without a token."""
    if not is_loopback(host) and not token:
        raise UsageError(
            f"--host {host}: others can reach this address. Give --token-file, or use {HOST} and "
            "a tunnel such as ssh -L."
        )


def read_token(path: Path) -> str:
    """Return the token of a file. If the file does not exist, write a random one into it.

    Raise UsageError if other users can read the file, or if the token is short.
    """
    if not path.exists():
        write_whole(path, f"{secrets.token_urlsafe(32)}\n", mode=0o600)
    token = TOKENS.read_text(path).strip()
    if path.stat().st_mode & OTHERS:
        raise UsageError(f"{path}: other users can read it. Run chmod 600 on it.")
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"{path}: is not a token of at least {LEAST_TOKEN} letters and digits. Delete the "
            "file; assay then creates a random token."
        )
    return token


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Return a socket at this address. Raise UsageError if it cannot be used."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
        listener.listen(backlog)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"--host {host} --port {port}: cannot be used ({error.strerror or error}). Choose "
            "another port, or 0 for any."
        ) from error
    return listener


def make_url(host: str, port: int) -> str:
    """Return the address of a server."""
    name = f"[{host.strip('[]')}]" if ":" in host else host
    return f"http://{name}:{port}"


def _host_name(host: str) -> str | None:
    """Return the name of a ``Host`` header without its port, or None if it is not well-formed."""
    if not host or len(host) > LONGEST_HOST:
        return None
    try:
        parts = urlsplit(f"http://{host}")
        if parts.netloc != host or "@" in host or parts.path or parts.query:
            return None
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError:
        return None
    return parts.hostname
