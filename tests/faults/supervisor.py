"""Does for gloved what a service manager does: keeps the listening socket, starts the daemon on it,
receives its notifications, watches its pings, and starts it again when it ends.

The socket outlives every daemon. A connection made while none runs waits in its backlog. This needs
nothing but Python's library.
"""
import array
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import harness

PASS_SOCKET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pass_socket.py")
PATIENCE_S = harness.PATIENCE_S
BACKLOG = 4096
# Time between SIGABRT and SIGKILL, as TimeoutAbortSec=.
ABORT_TIMEOUT_S = 10
TICK_S = 0.01
CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
# Log lines of the fake runtime and of the bad kernel that announce a fault.
FAULT_BEGINS = re.compile(r"fake cuda: call [0-9]+ \(\w+\) (returns|hangs)|bad kernel: launched")


def passing(listener):
    """The beginning of a command whose daemon gets the listening socket."""
    return [sys.executable, "-I", "-S", PASS_SOCKET, str(listener.fileno())]


class Instance:
    """One daemon, from start to end. Times are of time.monotonic(), or None."""

    def __init__(self, number, process):
        self.number = number
        self.process = process
        self.pid = process.pid
        self.started_at = time.monotonic()
        self.ready_at = None
        self.stopping_at = None
        self.last_ping_at = None
        self.aborted_at = None  # time of SIGABRT after missing pings
        self.ended_at = None
        self.returncode = None  # negative: the signal that ended it
        self.pings = 0
        self.statuses = []  # (time, text of STATUS=)
        self.lines = []  # (time, line on stderr)

    def log(self):
        return "\n".join(line for _, line in self.lines)

    def status(self):
        return self.statuses[-1][1] if self.statuses else ""

    def when(self, pattern):
        """Time of the first log line that matches, or None."""
        return next((at for at, line in list(self.lines) if re.search(pattern, line)), None)

    def fault_at(self):
        return self.when(FAULT_BEGINS)


def threads_of(pid):
    """A line for a report for each thread of a process: its name, where in the kernel it waits, its
    state, and its pending and blocked signals."""
    wanted = ("Name", "State", "SigPnd", "ShdPnd", "SigBlk")
    told = []
    try:
        for thread in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
            with open(f"/proc/{pid}/task/{thread}/wchan", encoding="utf-8") as file:
                facts = [thread, file.read()]
            with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
                facts += [line.strip() for line in file if line.startswith(wanted)]
            told.append(" ".join(facts))
    except (FileNotFoundError, ProcessLookupError):
        told.append("it has ended since")
    return "\n".join(told)


def is_stopped(pid):
    """Whether SIGSTOP has stopped the process."""
    try:
        return harness.status_fields(pid)[0] == "T"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Supervisor:
    """Runs `command` until stop() or the end of its `with` block. Threads may share it.

    watchdog_s: the daemon must ping this often after READY, or gets SIGABRT. restart_s: pause
    before a restart; None: no restart. environment: additional variables, or a function from the
    instance's number (from 0) to them."""

    def __init__(
        self, command, path, *, mode=0o660, watchdog_s=None, restart_s=0.1, environment=None
    ):
        self.command = [str(word) for word in command]
        self.path = path
        self.watchdog_s = watchdog_s
        self.restart_s = restart_s
        self.environment = environment or {}
        self.instances = []
        self.surplus = []  # datagrams of other processes
        self.changed = threading.Condition()
        self.ending = False
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(path)
        os.chmod(path, mode)
        self.listening.listen(BACKLOG)
        self.inode = os.stat(path).st_ino
        self.notify_path = path + ".notify"
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.notify_path)
        # The kernel then names the sender of a datagram.
        self.notify.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.notify.settimeout(TICK_S)
        self._start()
        self.thread = threading.Thread(target=self._look_after, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        self.ending = True
        self.thread.join(PATIENCE_S)
        process = self.instances[-1].process
        if process.poll() is None:
            process.kill()
            process.wait()
        self.notify.close()
        self.listening.close()
        for path in (self.path, self.notify_path):
            if os.path.exists(path):
                os.unlink(path)

    # The background thread.

    def _start(self):
        number = len(self.instances)
        environment = dict(os.environ, NOTIFY_SOCKET=self.notify_path)
        environment.update(
            self.environment(number) if callable(self.environment) else self.environment
        )
        if self.watchdog_s is not None:
            environment["WATCHDOG_USEC"] = str(round(self.watchdog_s * 1e6))
        process = subprocess.Popen(
            [*passing(self.listening), *self.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=[self.listening.fileno()],
        )
        instance = Instance(number, process)
        with self.changed:
            self.instances.append(instance)
            self.changed.notify_all()
        threading.Thread(target=self._read, args=(instance,), daemon=True).start()

    def _read(self, instance):
        with instance.process.stdout as log:
            for line in log:
                with self.changed:
                    instance.lines.append(
                        (time.monotonic(), line.decode(errors="replace").rstrip("\n"))
                    )
                    self.changed.notify_all()

    def _look_after(self):
        start_at = None
        while not self.ending:
            self._take_notice()
            instance = self.instances[-1]
            now = time.monotonic()
            if instance.ended_at is None:
                returncode = instance.process.poll()
                if returncode is not None:
                    with self.changed:
                        instance.returncode = returncode
                        instance.ended_at = now
                        self.changed.notify_all()
                    start_at = now + (self.restart_s or 0)
                else:
                    self._watch(instance, now)
            elif start_at is not None and now >= start_at and self.restart_s is not None:
                start_at = None
                self._start()

    def _watch(self, instance, now):
        if self.watchdog_s is None or instance.ready_at is None:
            return
        if (
            instance.aborted_at is None
            and now > max(instance.ready_at, instance.last_ping_at or 0) + self.watchdog_s
        ):
            instance.aborted_at = now
            self._send(instance, signal.SIGABRT)
        elif instance.aborted_at is not None and now > instance.aborted_at + ABORT_TIMEOUT_S:
            self._send(instance, signal.SIGKILL)

    def _take_notice(self):
        """Reads one notification, or waits for a tick."""
        try:
            data, ancillary, _, _ = self.notify.recvmsg(
                4096, socket.CMSG_SPACE(CREDENTIALS.size) + socket.CMSG_SPACE(64)
            )
        except TimeoutError:
            return
        now = time.monotonic()
        sender = None
        for level, kind, what in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                sender = CREDENTIALS.unpack(what[: CREDENTIALS.size])[0]
            elif level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                for descriptor in array.array("i", what):
                    os.close(descriptor)
        instance = self.instances[-1]
        with self.changed:
            if sender != instance.pid:
                self.surplus.append((now, sender, data))
                return
            for line in data.decode(errors="replace").split("\n"):
                name, _, value = line.partition("=")
                if name == "READY":
                    instance.ready_at = instance.ready_at or now
                elif name == "STATUS":
                    instance.statuses.append((now, value))
                elif name == "WATCHDOG":
                    instance.pings += 1
                    instance.last_ping_at = now
                elif name == "STOPPING":
                    instance.stopping_at = instance.stopping_at or now
            self.changed.notify_all()

    @staticmethod
    def _send(instance, number):
        try:
            instance.process.send_signal(number)
            # A stopped process handles no other signal before this. One that runs must not get it:
            # it takes back the SIGSTOP by which the leak sanitizer stops a process at its end.
            if number != signal.SIGSTOP and is_stopped(instance.pid):
                instance.process.send_signal(signal.SIGCONT)
        except ProcessLookupError:
            pass

    # The interface.

    @property
    def now(self):
        """The daemon that runs or ran last."""
        return self.instances[-1]

    def kill(self, number):
        self._send(self.now, number)

    def wait_for(self, condition, within_s=PATIENCE_S):
        """Waits until condition() holds; returns whether it did in time."""
        with self.changed:
            return self.changed.wait_for(condition, within_s)

    def wait_ready(self, number=None, within_s=PATIENCE_S):
        """Waits for READY of instance `number` (default: the current one). Returns it, or None if
        it ended or took longer."""
        number = self.now.number if number is None else number

        def over():
            return len(self.instances) > number and (
                self.instances[number].ready_at or self.instances[number].ended_at
            )

        self.wait_for(over, within_s)
        instance = self.instances[number] if len(self.instances) > number else None
        return instance if instance is not None and instance.ready_at is not None else None

    def wait_ended(self, instance, within_s=PATIENCE_S):
        """Waits for its end; returns whether it came in time."""
        return self.wait_for(lambda: instance.ended_at is not None, within_s)

    def socket_is_there(self):
        """Whether the path still leads to the first socket."""
        try:
            return os.stat(self.path).st_ino == self.inode
        except FileNotFoundError:
            return False

    def stop(self, within_s=PATIENCE_S):
        """Ends the daemon by SIGTERM, without a restart; returns complaints."""
        self.restart_s = None
        instance = self.now
        if instance.ended_at is not None:
            return [
                f"the daemon ended by itself with {instance.returncode}:"
                f" {instance.log()[-2000:]}"
            ]
        self.kill(signal.SIGTERM)
        complaints = []
        if not self.wait_ended(instance, within_s):
            complaints.append(
                f"the daemon does not end within {within_s} s of SIGTERM:"
                f" {instance.log()[-2000:]}\n{threads_of(instance.pid)}"
            )
            self.kill(signal.SIGKILL)
            self.wait_ended(instance)
        elif instance.returncode != 0:
            complaints.append(
                f"the daemon ends with {instance.returncode}: {instance.log()[-2000:]}"
            )
        for each in self.instances:
            if harness.REPORT.search(each.log()):
                complaints.append(f"a sanitizer reports: {each.log()[:4000]}")
        if not self.socket_is_there():
            complaints.append("the daemon removed a socket that is not its own")
        return complaints
