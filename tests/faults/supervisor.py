"""What a service manager does for gloved, without one: it keeps the listening socket, starts the
daemon on it, listens to what it tells, watches its pings, and starts it again whenever it ends.
Nothing but Python's own library is needed.

The socket outlives every daemon. A connection that is made while none runs waits in its backlog for
the next one.
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

import service

PASS_SOCKET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pass_socket.py")
PATIENCE_S = 60
BACKLOG = 4096
# How long SIGABRT may take; then SIGKILL, as TimeoutAbortSec= has it.
ABORT_TIMEOUT_S = 10
TICK_S = 0.01
CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
# What begins the time in which a daemon whose GPU has failed may live: the fake runtime's
# announcement, or the bad kernel's.
FAULT_BEGINS = re.compile(r"fake cuda: call [0-9]+ \(\w+\) (returns|hangs)|bad kernel: launched")


class Instance:
    """One daemon, from its start to its end. Times are those of time.monotonic(); None for what has
    not happened."""

    def __init__(self, number, process):
        self.number = number
        self.process = process
        self.pid = process.pid
        self.started_at = time.monotonic()
        self.ready_at = None
        self.stopping_at = None
        self.last_ping_at = None
        self.aborted_at = None  # the supervisor's SIGABRT, for want of pings
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
        """When the first line that matches was written; None if none was."""
        return next((at for at, line in list(self.lines) if re.search(pattern, line)), None)

    def fault_at(self):
        return self.when(FAULT_BEGINS)


class Supervisor:
    """Runs `command` until stop(), or until the block that it heads is left. May be used from
    several threads.

    watchdog_s: the daemon is told to ping, and gets SIGABRT once it has not for so long (after
    READY). restart_s:  the pause before it is started again; None: it is not. environment: for the
    daemon, beside this program's own; a function is called before each start with the instance's
    number from 0."""

    def __init__(
        self, command, path, *, mode=0o660, watchdog_s=None, restart_s=0.1, environment=None
    ):
        self.command = [str(word) for word in command]
        self.path = path
        self.watchdog_s = watchdog_s
        self.restart_s = restart_s
        self.environment = environment or {}
        self.instances = []
        self.surplus = []  # datagrams that are not from the daemon that runs
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
        # The kernel then says who has sent a datagram.
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

    # What happens in the background.

    def _start(self):
        number = len(self.instances)
        environment = dict(os.environ, NOTIFY_SOCKET=self.notify_path)
        environment.update(
            self.environment(number) if callable(self.environment) else self.environment
        )
        if self.watchdog_s is not None:
            environment["WATCHDOG_USEC"] = str(round(self.watchdog_s * 1e6))
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", PASS_SOCKET, str(self.listening.fileno()), *self.command],
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
        """One datagram, waited for as long as a tick."""
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
            # One that is stopped takes nothing else before this.
            if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT):
                instance.process.send_signal(signal.SIGCONT)
        except ProcessLookupError:
            pass

    # What is asked of it.

    @property
    def now(self):
        """The daemon that runs, or ended last."""
        return self.instances[-1]

    def kill(self, number):
        self._send(self.now, number)

    def wait_for(self, condition, within_s=PATIENCE_S):
        """Waits until condition() holds; whether it did in time."""
        with self.changed:
            return self.changed.wait_for(condition, within_s)

    def wait_ready(self, number=None, within_s=PATIENCE_S):
        """Waits for READY of instance `number` (the present one). Returns it, or None where it
        ended before or took longer."""
        number = self.now.number if number is None else number

        def over():
            return len(self.instances) > number and (
                self.instances[number].ready_at or self.instances[number].ended_at
            )

        self.wait_for(over, within_s)
        instance = self.instances[number] if len(self.instances) > number else None
        return instance if instance is not None and instance.ready_at is not None else None

    def wait_ended(self, instance, within_s=PATIENCE_S):
        """Whether it has ended within that time."""
        return self.wait_for(lambda: instance.ended_at is not None, within_s)

    def socket_is_there(self):
        """Whether the path still leads to the socket that was made in the beginning."""
        try:
            return os.stat(self.path).st_ino == self.inode
        except FileNotFoundError:
            return False

    def stop(self, within_s=PATIENCE_S):
        """Ends the daemon and starts no other; returns what there is against how it ended."""
        self.restart_s = None
        instance = self.now
        if instance.ended_at is not None:
            return [
                f"the daemon had ended with {instance.returncode} before it was told to:"
                f" {instance.log()[-2000:]}"
            ]
        self.kill(signal.SIGTERM)
        complaints = []
        if not self.wait_ended(instance, within_s):
            complaints.append(f"the daemon does not end within {within_s} s of SIGTERM")
            self.kill(signal.SIGKILL)
            self.wait_ended(instance)
        elif instance.returncode != 0:
            complaints.append(
                f"the daemon ends with {instance.returncode}: {instance.log()[-2000:]}"
            )
        for each in self.instances:
            if service.REPORT.search(each.log()):
                complaints.append(f"a sanitizer reports: {each.log()[:4000]}")
        if not self.socket_is_there():
            complaints.append("the daemon has removed the socket that is not its own")
        return complaints
