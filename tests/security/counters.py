"""Programs that pass bits on to the next program, and programs that look for such bits.

Data only; they run in the sandbox. A consumer uses up what the kernel numbers, or uses nothing.
A reader reports every number that may have moved.
"""

from __future__ import annotations

HEAD = """
import ctypes, fcntl, os, re, resource, select, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.sbrk.restype = libc.malloc.restype = ctypes.c_void_p
FILE = os.path.dirname(os.__file__) + '/pydoc_data/topics.py'
DEVICES = ('null', 'zero', 'full', 'random', 'urandom')
"""

CONSUME = (
    HEAD
    + """
def every(action):
    try: action()
    except (OSError, AttributeError, ValueError): pass
def fork():
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)
def file(): os.close(os.open(f'{os.urandom(8).hex()}', os.O_CREAT | os.O_RDWR))
def pipe():
    for end in os.pipe(): os.close(end)
def pair():
    for end in socket.socketpair():
        end.getsockopt(socket.SOL_SOCKET, 57, 8)
        end.close()
def unix():
    with socket.socket(socket.AF_UNIX) as s: s.bind('')
def bind():
    with socket.socket() as s: s.bind(('', 0))
def connect():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: s.sendto(b'x', ('127.0.0.1', 9))
def refuse():
    with socket.socket() as s: s.connect(('127.0.0.1', 9))
def pidfd(): os.close(os.pidfd_open(os.getpid()))
def event(): os.close(os.eventfd(0))
def cached(wanted):
    fd = os.open(FILE, os.O_RDONLY)
    if wanted: os.read(fd, 1 << 20)
    else: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
def touch():
    for name in DEVICES: os.utime('/dev/' + name)
def change():
    # What belongs to a process and may have been meant for a worker.
    fcntl.flock(os.open(FILE, os.O_RDONLY), fcntl.LOCK_EX)
    libc.prctl(15, b'bit', 0, 0, 0)
    libc.prctl(29, ctypes.c_ulong(77777), 0, 0, 0)
    signal.setitimer(signal.ITIMER_REAL, 999)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
    os.umask(0o27)
    os.nice(1)
if BIT:
    for action, times in ((fork, 100), (file, 300), (pipe, 1500), (pair, 1500), (unix, 300),
                          (bind, 300), (connect, 300), (refuse, 300), (pidfd, 300), (event, 300),
                          (touch, 1), (change, 1)):
        for _ in range(times): every(action)
    room = bytearray(b'x') * (30 << 20)
    print('x' * 900_000)
    until = time.process_time() + 0.03
    while time.process_time() < until: pass
every(lambda: cached(BIT))
def f(): return 1
"""
)

# Each is an expression; what cannot be read is 0.
READERS = {
    "process id": "os.getpid()",
    "process id of a child": "child()",
    "process group and session": "os.getpgid(0) + os.getsid(0) + os.getppid()",
    "inode of a new file": "new_file().st_ino",
    "inode of the working folder": "os.stat('.').st_ino",
    "device of the working folder": "os.stat('.').st_dev",
    "times of the working folder": "os.stat('.').st_ctime_ns % 7 == 0 and 1",
    "file system id": "os.statvfs('.').f_fsid",
    "inode of a pipe": "os.fstat(os.pipe()[0]).st_ino",
    "inode of a socket": "os.fstat(socket.socketpair()[0].fileno()).st_ino",
    "inode of a pidfd": "os.fstat(os.pidfd_open(os.getpid())).st_ino",
    "inode of an eventfd": "os.fstat(os.eventfd(0)).st_ino",
    "number of an eventfd": "numbers(f'/proc/self/fdinfo/{os.eventfd(0)}')",
    "ephemeral port": "port()",
    "abstract name": "abstract()",
    "socket cookie": "cookie()",
    "namespaces": "sum(os.stat('/proc/self/ns/' + n).st_ino for n in os.listdir('/proc/self/ns'))",
    "mount ids": "numbers('/proc/self/mountinfo', r'(?m)^[0-9]+')",
    "cgroup": "numbers('/proc/self/cgroup')",
    "times and faults of pid 1": "sum(map(int, text('/proc/1/stat').split()[9:21]))",
    "status of pid 1": "numbers('/proc/1/status', r'(?<=ctxt_switches:\\t)[0-9]+')",
    "memory of pid 1": "numbers('/proc/1/statm')",
    "scheduling of pid 1": "numbers('/proc/1/schedstat')",
    "network counters": "numbers('/proc/self/net/snmp') + numbers('/proc/self/net/netstat')",
    "network devices": "numbers('/proc/self/net/dev')",
    "sockets in use": "numbers('/proc/self/net/sockstat') + numbers('/proc/self/net/protocols')",
    "page cache": "in_page_cache()",
    "access time of a file": "os.stat(FILE).st_atime_ns // 1000",
    "times of devices": "sum(os.stat('/dev/' + n).st_mtime_ns // 1000 for n in DEVICES)",
    "address of an object": "id(object())",
    "end of the heap": "libc.sbrk(0)",
    "address of a large block": "libc.malloc(180_000)",
    "address of a larger block": "libc.malloc(2_000_000)",
    "own pages": "int(text('/proc/self/statm').split()[0])",
    "open descriptors": "os.open('/dev/null', os.O_RDONLY)",
    "mount id": "mount_id(0x1000)",
    "unique mount id": "mount_id(0x4000)",
    "umask": "os.umask(0o22)",
    "priority and policy": "os.nice(0) + os.sched_getscheduler(0) + len(os.sched_getaffinity(0))",
    "name and timer slack": "libc.prctl(30, 0, 0, 0, 0) + name()",
    "timers": "sum(signal.getitimer(n)[0] for n in (0, 1))",
    "signals": "len(signal.pthread_sigmask(0, ())) + (signal.getsignal(12) is signal.SIG_IGN)",
    "limits": "sum(sum(resource.getrlimit(n)) for n in range(16))",
    "lock of a file": "fcntl.flock(os.open(FILE, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB) or 1",
}

READ = (
    HEAD
    + """
def text(path):
    with open(path) as file: return file.read()
def numbers(path, pattern='[0-9]+'): return sum(map(int, re.findall(pattern, text(path))))
def child():
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)
    return pid
def new_file():
    fd = os.open('new', os.O_CREAT | os.O_RDWR)
    os.unlink('new')
    return os.fstat(fd)
def port():
    s = socket.socket()
    s.bind(('', 0))
    return s.getsockname()[1]
def abstract():
    s = socket.socket(socket.AF_UNIX)
    s.bind('')
    return int(s.getsockname()[1:], 16)
def cookie():
    data = socket.socketpair()[0].getsockopt(socket.SOL_SOCKET, 57, 8)
    return int.from_bytes(data, sys.byteorder)
def mount_id(mask):
    found = ctypes.create_string_buffer(256)
    if libc.statx(-100, b'.', 0, mask, found): raise OSError
    return int.from_bytes(found.raw[144:152], sys.byteorder)
def name():
    found = ctypes.create_string_buffer(16)
    libc.prctl(16, found, 0, 0, 0)
    return int.from_bytes(found.value, 'big')
def in_page_cache():
    fd = os.open(FILE, os.O_RDONLY)
    try: return os.preadv(fd, [bytearray(4096)], 65536, os.RWF_NOWAIT) > 0
    except BlockingIOError: return 0
def f():
    values = []
    for read in READERS:
        try: values.append(int(eval(read)))
        except Exception: values.append(0)
    raise LookupError(' '.join(hex(v % (1 << 36))[2:] for v in values))
"""
)


def consumer(bit: int) -> str:
    """Return a program that uses up a lot, or nothing."""
    return f"BIT = {bit}\n{CONSUME}"


def reader(names: list[str]) -> str:
    """Return a program whose ``f()`` raises the values of these readers."""
    return f"READERS = {[READERS[name] for name in names]!r}\n{READ}"
