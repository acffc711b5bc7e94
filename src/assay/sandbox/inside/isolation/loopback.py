"""Give programs a loopback network, for tests that start a server and talk to it."""

from __future__ import annotations

import os
import struct

HOSTS = "127.0.0.1 localhost\n"
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
# A closed connection must not keep its port from the next program, nor tell it anything.
REMEMBERED = "/proc/sys/net/ipv4/tcp_max_tw_buckets"


def switch_on(root: str) -> None:
    """Start the loopback device of a new network namespace. ``root`` is the future root folder."""
    import fcntl  # costs every fork pages, which workers without a loopback need not pay for
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    with open(REMEMBERED, "w") as setting:
        setting.write("0")
    os.makedirs(f"{root}/etc", exist_ok=True)
    with open(f"{root}/etc/hosts", "w") as hosts:
        hosts.write(HOSTS)
