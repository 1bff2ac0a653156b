"""Runs in the sandbox of a service: attempts things and prints a JSON object {name: outcome}.

An outcome is "done", the name of an errno, or a value. boot decides which outcome is right.
"""
import ctypes
import errno
import json
import mmap
import os
import socket
import stat
import sys
import threading

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
libc.mprotect.argtypes = libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
MAP_FAILED = ctypes.c_void_p(-1).value
MS_BIND = 4096
CLONE_NEWUSER = 0x10000000
PTRACE_ATTACH = 16
WRITE, EXECUTE = mmap.PROT_READ | mmap.PROT_WRITE, mmap.PROT_READ | mmap.PROT_EXEC
outcomes = {}


def called(result):
    """Raises OSError if a function of the C library failed; returns its result."""
    if result in (-1, MAP_FAILED):
        raise OSError(ctypes.get_errno(), "")
    return result


def attempt(name, action):
    try:
        found = action()
        outcomes[name] = found if isinstance(found, (str, list)) else "done"
    except OSError as fault:
        outcomes[name] = errno.errorcode.get(fault.errno, str(fault))


def write_in(directory):
    path = os.path.join(directory, "gloved-probe")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.unlink(path)


def open_device(path):
    os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


def map_pages(protection):
    return called(libc.mmap(None, 4096, protection, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0))


def make_executable():
    called(libc.mprotect(map_pages(WRITE), 4096, EXECUTE))


def run_what_it_wrote():
    path = "/tmp/gloved-probe"
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n")
    os.chmod(path, 0o700)
    child = os.fork()
    if child == 0:
        try:
            os.execv(path, [path])
        except OSError as fault:
            os._exit(fault.errno)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise OSError(status, "")


def make_set_user_id():
    path = "/tmp/gloved-set-user-id"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o700))
    os.chmod(path, 0o700 | stat.S_ISUID)


def of_status(*names):
    with open("/proc/self/status", encoding="ascii") as status:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
    return [fields[name] for name in names]


def rename_thread():
    # As CUDA does.
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w", encoding="ascii") as comm:
        comm.write("probe")


def connect_to(path):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)


for where in (
    "/",
    "/etc",
    "/usr",
    "/run",
    "/run/gloved",
    "/var/lib/gloved",
    "/dev/shm",
    "/sys/fs/cgroup",
    "/proc/sys/kernel",
):
    attempt(f"write in {where}", lambda where=where: write_in(where))
for where in ("/home", "/root"):
    attempt(f"look into {where}", lambda where=where: os.listdir(where) and None)
attempt("run what it wrote to /tmp", run_what_it_wrote)
attempt("make a set-user-ID file", make_set_user_id)
for family in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"):
    attempt(
        f"socket of {family}",
        lambda family=family: socket.socket(getattr(socket, family), socket.SOCK_DGRAM).close(),
    )
attempt("map memory to write and run", lambda: map_pages(WRITE | EXECUTE))
attempt("make written memory executable", make_executable)
attempt("make a namespace", lambda: called(libc.unshare(CLONE_NEWUSER)))
attempt("mount", lambda: called(libc.mount(b"/usr", b"/tmp", None, MS_BIND, None)))
attempt("trace its parent", lambda: called(libc.ptrace(PTRACE_ATTACH, os.getppid(), None, None)))
attempt("real-time priority", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
attempt("choose its processors", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
attempt("personality", lambda: called(libc.personality(0x0004000)))
attempt("become root", lambda: os.setuid(0))
attempt("rename the machine", lambda: called(libc.sethostname(b"probe", 5)))
attempt("reach D-Bus", lambda: connect_to("/run/dbus/system_bus_socket"))
attempt("processes in sight", lambda: sorted(set(os.listdir("/proc")) & {"1"}))
attempt(
    "capabilities, filter, no new privileges",
    lambda: of_status("CapEff", "CapPrm", "CapBnd", "Seccomp", "NoNewPrivs"),
)
attempt("memfd_create", lambda: os.close(os.memfd_create("probe")))
attempt("mlock", lambda: called(libc.mlock(map_pages(WRITE), 4096)))
attempt("name a thread", rename_thread)
attempt("socket of AF_UNIX", lambda: [end.close() for end in socket.socketpair()] and None)
attempt("/dev/null", lambda: open_device("/dev/null"))
for path in sys.argv[1:]:
    attempt(path, lambda path=path: open_device(path))
print(json.dumps(outcomes))
