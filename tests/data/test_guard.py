"""Who is answered: only clients that name this machine, are not other sites, and have the token."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data.guard import Guard, is_loopback, make_guard

LOCAL = make_guard("127.0.0.1", 7300)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:7300", "localhost", "localhost:9000", "[::1]:7300", "127.0.0.2", "LOCALHOST"],
)
def test_names_of_this_machine_are_answered(host: str) -> None:
    assert LOCAL.check({"Host": host}) is None


@pytest.mark.parametrize(
    "host",
    [
        "", "evil.example", "evil.example:7300", "localhost.evil.example", "127.0.0.1.evil.example",
        "192.168.1.5", "[2001:db8::1]", "evil.example@127.0.0.1", "127.0.0.1@evil.example",
        "127.0.0.1/evil", "127.0.0.1:x", "a" * 1000, "[::1", "127.0.0.1, evil.example",
        "2130706433", "0.0.0.0",
    ],
)  # fmt: skip
def test_a_rebound_name_is_refused(host: str) -> None:
    refusal = LOCAL.check({"Host": host})
    assert refusal is not None
    assert refusal.status == HTTPStatus.MISDIRECTED_REQUEST


@given(st.text(max_size=40))
def test_no_host_fails_in_another_way(host: str) -> None:
    refusal = LOCAL.check({"Host": host})
    assert refusal is None or refusal.status == HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:8888", "https://127.0.0.1", ""]
)
def test_another_origin_is_refused(origin: str) -> None:
    refusal = LOCAL.check({"Host": "127.0.0.1:7300", "Origin": origin})
    assert refusal is not None
    assert refusal.status == HTTPStatus.FORBIDDEN


def test_its_own_origin_is_answered() -> None:
    headers = {"Host": "127.0.0.1:7300", "Origin": "http://127.0.0.1:7300"}
    assert LOCAL.check(headers) is None


@pytest.mark.parametrize(
    ("site", "mode", "answered"),
    [
        ("same-origin", "cors", True), ("none", "navigate", True), ("cross-site", "navigate", True),
        ("cross-site", "no-cors", False), ("cross-site", "cors", False),
        ("same-site", "cors", False),
    ],
)  # fmt: skip
def test_a_browser_says_who_asks(site: str, mode: str, answered: bool) -> None:
    headers = {"Host": "localhost", "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
    assert (LOCAL.check(headers) is None) is answered


def test_a_public_server_is_named_by_number_or_by_its_own_name() -> None:
    guard = make_guard("box.example", 80, "a" * 16)
    assert guard.check({"Host": "192.168.1.5:80"}) is None
    assert guard.check({"Host": "box.example"}) is None
    assert guard.check({"Host": "evil.example"}) is not None


def test_the_token_is_needed_everywhere() -> None:
    guard = Guard(token="t" * 20)
    assert not guard.admits({})
    assert not guard.admits({}, "t" * 19)
    assert not guard.admits({"Authorization": "Bearer wrong"}, "")
    assert not guard.admits({"Authorization": f"Basic {'t' * 20}"})
    assert not guard.admits({"Cookie": f"{guard.cookie}={'t' * 20}"})
    assert not guard.admits({"Cookie": '"'})
    assert guard.admits({}, "t" * 20)
    assert guard.admits({"Authorization": f"Bearer {'t' * 20}"})
    assert guard.admits({"Cookie": f"a=b; {guard.cookie}={guard.session}"})


def test_the_session_is_not_printed() -> None:
    guard = Guard(token="t" * 20)
    assert guard.session not in repr(guard)
    assert guard.session != Guard().session


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True), ("localhost", True), ("::1", True), ("[::1]", True),
        ("0.0.0.0", False), ("::", False), ("192.168.0.1", False), ("box", False),
    ],
)  # fmt: skip
def test_loopback_is_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
