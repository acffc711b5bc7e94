"""What a hostile program tries when a peer executes it: a script that reports what it could do.

It runs as the command itself or as a program that EvalPlus executes. Each attack has a process of
its own and at most ten seconds; none does harm where it succeeds.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SECRET = "sk-of-the-harness"
REPORT = "report"


@contextmanager
def attacks(folder: Path) -> Iterator[str]:
    """Give a script that attacks what is set up here and writes ``/tmp/report``.

    The report is a JSON list of the attacks that succeeded. ``folder`` is one that everybody can
    enter; the environment of the harness holds ``SECRET``.
    """
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path.home())))
        (home / "id_ed25519").write_text("a private key")
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        for address in (name := f"\0assay-{os.getpid()}", str(folder / "socket")):
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(address)
            listening.listen()
        (folder / "socket").chmod(0o666)
        target = {
            "secret": SECRET[::-1],  # not in our own command line
            "bait": str(home / "id_ed25519"), "harness": os.getpid(),
            "outside": ["/var/tmp", "/var", str(Path.home()), str(folder)],
            "tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1],
            "abstract": name, "pathname": str(folder / "socket"),
        }  # fmt: skip
        yield f"target = {target!r}\n{ATTACKS}"


ATTACKS = r"""
import ctypes, glob, json, os, resource, signal, socket, stat, sys

target["secret"] = target["secret"][::-1]
libc = ctypes.CDLL(None, use_errno=True)
attacks = {}

def attack(function):
    attacks[function.__name__] = function
    return function

def reads(path):
    with open(path, "rb") as file:
        return bool(file.read(1))

def syscall(number, *arguments):
    return libc.syscall(ctypes.c_long(number), *arguments) != -1

def any_of(function, values):
    for value in values:
        try:
            if function(value):
                return True
        except OSError:
            pass
    return False

# -- secrets

@attack
def own_environment():
    return target["secret"] in str(os.environ)

@attack
def environment_of_others():
    def holds(path):
        return target["secret"].encode() in open(path, "rb").read()
    return any_of(holds, glob.glob("/proc/[0-9]*/environ"))

@attack
def command_line_of_others():
    def holds(path):
        return target["secret"].encode() in open(path, "rb").read()
    return any_of(holds, glob.glob("/proc/[0-9]*/cmdline"))

@attack
def password_file():
    return any_of(reads, ["/etc/shadow", "/proc/1/root/etc/shadow", "/proc/self/root/etc/shadow"])

@attack
def user_list():
    return reads("/etc/passwd")

@attack
def file_in_home():
    return any_of(reads, [target["bait"], "/proc/1/root" + target["bait"]])

@attack
def file_through_descriptor_of_others():
    def holds(path):
        return "pipe" not in os.readlink(path) and "null" not in os.readlink(path)
    return any_of(holds, glob.glob("/proc/1/fd/*"))

@attack
def names_in_home():
    return os.path.basename(target["bait"]) in os.listdir(os.path.dirname(target["bait"]))

PYTHONS = {sys.base_prefix.split("/")[1], sys.prefix.split("/")[1]}  # where it lies is shown

@attack
def folders_of_the_host():
    return bool({"etc", "home", "root", "var", "srv", "opt", "sys", "run", "boot"} & (
        {name for name in os.listdir("/") if any_of(os.listdir, ["/" + name])}
        - {"etc", "root", *PYTHONS}
    ))

@attack
def host_through_parent_folders():
    descriptor = os.open("/", os.O_RDONLY)
    for _ in range(20):
        descriptor = os.open("..", os.O_RDONLY, dir_fd=descriptor)
    def opens(name):
        return os.open(name, os.O_RDONLY, dir_fd=descriptor)
    return any_of(opens, {"home", "var", "sys"} - PYTHONS)

@attack
def mounts_of_the_host():
    for line in open("/proc/self/mountinfo"):
        fields, kind = line.split(), line.partition(" - ")[2].split()[0]
        if kind not in ("tmpfs", "proc") and "ro" not in fields[5].split(","):
            return True
    return False

# -- changes

@attack
def write_outside():
    def writes(folder):
        path = folder + "/assay-was-here"
        with open(path, "w"):
            os.unlink(path)
            return True
    places = {line.split()[4] for line in open("/proc/self/mountinfo")} | set(target["outside"])
    mine = {"/tmp"}
    return any_of(writes, sorted(places - mine))

@attack
def change_kernel_settings():
    def opens(path):
        return os.open(path, os.O_WRONLY)
    return any_of(opens, ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
                          "/proc/sys/vm/swappiness", "/proc/sys/kernel/ns_last_pid"])

@attack
def change_rights_of_devices():
    os.chmod("/dev/null", 0o666)
    return True

@attack
def block_devices():
    return any_of(lambda path: stat.S_ISBLK(os.stat(path).st_mode), glob.glob("/dev/*"))

@attack
def make_device():
    os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
    return True

# -- sockets

@attack
def tcp():
    socket.create_connection(("127.0.0.1", target["tcp"]), timeout=2)
    return True

@attack
def udp():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"udp", ("127.0.0.1", target["udp"]))
    return True

@attack
def abstract_socket():
    socket.socket(socket.AF_UNIX).connect(target["abstract"])
    return True

@attack
def socket_in_a_folder():
    socket.socket(socket.AF_UNIX).connect(target["pathname"])
    return True

@attack
def raw_sockets():
    def opens(family):
        return socket.socket(family, socket.SOCK_RAW)
    return any_of(opens, [socket.AF_PACKET, socket.AF_NETLINK, socket.AF_INET])

@attack
def vsock():
    socket.socket(socket.AF_VSOCK)
    return True

# -- privileges

@attack
def become_root():
    os.setuid(0)
    return True

@attack
def capabilities():
    lines = [line.split() for line in open("/proc/self/status") if line.startswith("Cap")]
    return any(int(value, 16) for _, value in lines)

@attack
def new_privileges():
    return "NoNewPrivs:\t1" not in open("/proc/self/status").read()

@attack
def no_filter():
    return "Seccomp:\t2" not in open("/proc/self/status").read()

@attack
def mount():
    new = libc.mount(b"none", b"/tmp", b"tmpfs", 0, b"")
    writable = libc.mount(b"", b"/", b"", 4128, b"")
    return new == 0 or writable == 0

@attack
def unmount():
    return libc.umount2(b"/dev", 2) == 0 or libc.umount2(b"/proc", 2) == 0

@attack
def namespaces():
    return any(libc.unshare(flag) == 0 for flag in (0x10000000, 0x20000, 0x40000000, 0x10020000))

@attack
def change_root():
    return libc.chroot(b".") == 0

@attack
def dangerous_calls():
    # bpf, perf_event_open, userfaultfd, io_uring_setup, memfd_create, add_key, init_module
    buffer = ctypes.create_string_buffer(256)
    return any([
        syscall(321, 0, buffer, 32), syscall(298, buffer, 0, -1, -1, 0), syscall(323, 1),
        syscall(425, 8, buffer), syscall(319, b"x", 0), syscall(250, 0, -3, 1),
    ])

# -- other processes

@attack
def trace_others():
    def attaches(pid):
        return libc.ptrace(0x4206, pid, 0, 0) == 0  # PTRACE_SEIZE, which does not stop it
    return any_of(attaches, [1, os.getppid()])

@attack
def memory_of_the_first_process():
    return bool(os.open("/proc/1/mem", os.O_RDWR))

@attack
def see_the_harness():
    return os.path.exists(f"/proc/{target['harness']}")

@attack
def signal_the_harness():
    os.kill(target["harness"], 0)
    return True

@attack
def limits_of_others():
    resource.prlimit(1, resource.RLIMIT_NOFILE, resource.prlimit(1, resource.RLIMIT_NOFILE))
    return True

# -- limits

@attack
def dump_core():
    return resource.getrlimit(resource.RLIMIT_CORE) != (1, 1)

@attack
def terminal():
    return bool(os.open("/dev/tty", os.O_RDWR))

def attempt(function):
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            os._exit(0 if function() else 1)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0

with open("/tmp/report", "w") as file:
    json.dump(sorted(name for name in attacks if attempt(attacks[name])), file)
"""
