"""Tries to get out of a sandbox in the way that is named, and prints how that ended: `done`, or the kernel's word for why not."""

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import signal
import socket
import sys

CALLS = {
    "x86_64": {
        "keyctl": 250,
        "add_key": 248,
        "request_key": 249,
        "bpf": 321,
        "userfaultfd": 323,
        "perf_event_open": 298,
    }
    | {"open_by_handle_at": 304, "setns": 308, "unshare": 272, "clone": 56, "ptrace": 101},
    "aarch64": {
        "keyctl": 219,
        "add_key": 217,
        "request_key": 218,
        "bpf": 280,
        "userfaultfd": 282,
        "perf_event_open": 241,
    }
    | {"open_by_handle_at": 265, "setns": 268, "unshare": 97, "clone": 220, "ptrace": 117},
}
ALIKE = {"io_uring_setup": 425, "clone3": 435}
NEWUSER, SIGCHLD = 0x10000000, 17
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *arguments):
    """A system call, with arguments of 64 bits."""
    if libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) == -1:
        raise OSError(ctypes.get_errno(), "")


def number(name):
    return (ALIKE | CALLS[platform.machine()])[name]


def plain(name, *arguments):
    """One system call by its name; what it is given makes it fail in another way where it is let through."""
    call(number(name), *(int(one, 0) for one in arguments))


def terminal(request, high):
    """Types into the terminal of this process, a new one."""
    if os.fork():
        os.wait()
        sys.exit()
    os.setsid()
    _, slave = os.openpty()
    os.close(os.open(os.ttyname(slave), os.O_RDWR))
    letter = ctypes.create_string_buffer(b"x", 64)
    libc.ioctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)
    if libc.ioctl(slave, int(request, 0) | int(high, 0) << 32, ctypes.addressof(letter)) == -1:
        raise OSError(ctypes.get_errno(), "")
    print("done", flush=True)
    os._exit(0)


def namespace(high="0"):
    call(number("unshare"), NEWUSER | int(high, 0) << 32)


def child(flags):
    """A process in a user namespace of its own; it must not go on as a second copy of this one."""
    pid = libc.syscall(ctypes.c_long(number("clone")), ctypes.c_long(int(flags, 0) | SIGCHLD), 0, 0, 0, 0)
    if pid == -1:
        raise OSError(ctypes.get_errno(), "")
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def old_code():
    """getpid as a program of 32 bits asks for it: by another table of system calls."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("b814000000cd80c3"))
    pid = os.fork()
    if pid == 0:
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        raise SystemExit(print(signal.Signals(os.WTERMSIG(status)).name))


def connect(*paths):
    """Connects to the first of these sockets that can be reached: by its path, or by that from any process's root."""
    worst: OSError = FileNotFoundError(*paths)
    for path in paths:
        roots = ["", *(f"/proc/{pid}/root" for pid in os.listdir("/proc") if pid.isdigit())]
        for root in roots:
            try:
                socket.socket(socket.AF_UNIX).connect(root + path)
                return
            except OSError as error:
                worst = error
    raise worst


def abstract(name):
    socket.socket(socket.AF_UNIX).connect("\0" + name)


def loopback(port):
    socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()


def family(number):
    socket.socket(int(number), socket.SOCK_DGRAM)


def files():
    """Every file of the kernel's that this process could write, but for its own processes'."""
    for top in ("/proc", "/sys"):
        for folder, folders, names in os.walk(top):
            if folder == "/proc":
                folders[:] = [one for one in folders if not one.isdigit() and one not in ("self", "thread-self")]
            for name in names:
                path = os.path.join(folder, name)
                try:
                    os.close(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
                    print(path)
                except OSError:
                    pass


def plant(*folders):
    """Does away with what git obeys in each of these folders, and puts something else in its place, in every way there is."""
    for folder in folders:
        for name in ("", "hooks", "config", "config.worktree", "commondir", "gitdir", "hooks/pre-commit", "hooks/mine"):
            path = os.path.join(folder, name).rstrip("/")
            for way in WAYS:
                with contextlib.suppress(OSError):
                    way(path)


def moved(path):
    os.rename(path, "/tmp/away")


def renamed(path):
    os.rename(path, path + ".away")


def replaced(path):
    with open(path + ".evil", "w") as file:
        file.write("evil")
    os.rename(path + ".evil", path)


def linked(path):
    os.symlink("/tmp/evil", path + ".link")
    os.rename(path + ".link", path)


def written(path):
    with open(path, "a") as file:
        file.write("evil")


WAYS = (written, os.unlink, os.rmdir, replaced, linked, moved, renamed, written, os.mkdir)


def chroot(folder):
    os.chroot(folder)


def device(path):
    os.mknod(path, 0o600 | 0x2000, os.makedev(1, 3))


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]](*sys.argv[2:])
        print("done")
    except OSError as error:
        print(errno.errorcode.get(error.errno or 0, error))
