"""Shared by the programs that attack the daemon: gloved on the sample, connections, a bystander."""
import argparse
import array
import contextlib
import os
import random
import re
import resource
import select
import socket
import subprocess
import sys
import threading
import time

import faults

SAMPLE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../data/glove.6B.100d.sample.txt.gz"
)
PATIENCE_S = 60
# A report of any sanitizer.
REPORT = re.compile(r"(ERROR|WARNING|SUMMARY): \w*Sanitizer|runtime error:|LeakSanitizer")
US = re.compile(rb" us=[0-9]+")


def parser(doc, seeded=True):
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "bin", help="the build's folder of programs, build/dev/bin; one with sanitizers is fine"
    )
    if seeded:
        made.add_argument(
            "--seed",
            type=int,
            default=random.SystemRandom().randrange(1 << 32),
            help="seed of random choices (default: random; printed)",
        )
    return made


def convert_sample(bin_dir, work):
    """Makes a model of the sample; returns its directory."""
    model = os.path.join(work, "sample")
    done = faults.run([os.path.join(bin_dir, "gloved-convert"), SAMPLE, model])
    if done.returncode != 0:
        sys.exit(f"gloved-convert fails on the sample: {done.stderr}")
    return model


def status_fields(pid):
    """The fields of /proc/PID/stat behind the program's name, which may contain blanks."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()


def is_stopped(pid):
    """Whether SIGSTOP has stopped the process."""
    try:
        return status_fields(pid)[0] == "T"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Service:
    """A gloved that runs until stop() or the end of its `with` block. `given` goes to Popen."""

    def __init__(
        self, bin_dir, work, model, *options, environment=None, program=None, engine="cpu", **given
    ):
        self.path = os.path.join(work, "socket")
        self.log_path = os.path.join(work, "log")
        given["env"] = dict(os.environ, **(environment or {}))
        with open(self.log_path, "w", encoding="utf-8") as log:
            program = program or os.path.join(bin_dir, "gloved")
            threads = os.environ.get("GLOVED_TEST_IO_THREADS")
            if threads:
                options = ("--io-threads", threads, *options)
            command = [
                program,
                "--model",
                model,
                "--socket",
                self.path,
                "--engine",
                engine,
                *options,
            ]
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **given
            )
        limit = time.monotonic() + PATIENCE_S
        while True:
            try:
                with Connection(self.path) as connection:
                    connection.ask(b"PING")
                return
            except (OSError, Broken):
                if self.process.poll() is not None or time.monotonic() > limit:
                    self.process.kill()
                    self.process.wait()
                    sys.exit(f"gloved does not serve: {self.log()}")
                time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def alive(self):
        return self.process.poll() is None

    def statistics(self):
        """The values of STATS, by name."""
        with Connection(self.path) as connection:
            lines = connection.ask(b"STATS").decode().split("\n")[1:-1]
        return dict(line.split("\t", 1) for line in lines)

    def own_bytes(self):
        """Resident memory without mapped files, so without the model."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next(
                int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:")
            )

    def processor_s(self):
        fields = status_fields(self.process.pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def descriptors_back_to(self, count, within_s):
        """Seconds until at most `count` descriptors are open; None if not in time."""
        watch = faults.Stopwatch()
        while self.alive() and self.descriptors() > count:
            if watch.seconds() > within_s:
                return None
            time.sleep(0.005)
        return watch.seconds() if self.alive() else None

    def stop(self):
        """Ends the daemon by SIGTERM; returns complaints."""
        complaints = []
        if self.alive():
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                complaints.append(f"the daemon does not end within {PATIENCE_S} s")
                self.process.kill()
                self.process.wait()
        else:
            complaints.append("the daemon ended by itself")
        if self.process.returncode != 0:
            complaints.append(
                f"the daemon ends with {self.process.returncode}: {self.log()[-2000:]}"
            )
        if REPORT.search(self.log()):
            complaints.append(f"a sanitizer reports: {self.log()[:4000]}")
        return complaints


class Broken(Exception):
    """The daemon breaks the protocol."""


class Connection:
    """A connection whose waits all have a time limit."""

    def __init__(self, path, patience_s=PATIENCE_S):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(patience_s)
        self.got = b""
        limit = time.monotonic() + patience_s
        while True:
            try:
                self.socket.connect(path)
                return
            except BlockingIOError:
                # The backlog is full.
                if time.monotonic() > limit:
                    self.socket.close()
                    raise
                time.sleep(0.01)
            except OSError:
                self.socket.close()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_all_that_is_taken(self, data):
        """Sends as far as the peer reads; it may close before the end."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def more(self):
        """Reads more; returns False at the end."""
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError as fault:
            raise Broken(f"no answer, but {self.got[:200]!r}") from fault
        except ConnectionResetError as fault:
            raise Broken("reset by the daemon") from fault
        self.got += data
        return bool(data)

    def reply(self):
        """Reads the next reply: status line and lines. Raises Broken if there is none."""
        while b"\n" not in self.got:
            if not self.more():
                raise Broken(f"the end where a reply should be, behind {self.got[:200]!r}")
        status = self.got.partition(b"\n")[0]
        found = re.match(rb"OK ([0-9]+)(?: [a-z_]+=[^ ]*)*$|ERR [a-z_]+ .", status)
        if not found:
            raise Broken(f"no status line: {status[:200]!r}")
        lines = 1 + int(found[1] or 0)
        while self.got.count(b"\n") < lines:
            if not self.more():
                raise Broken(f"the end in the middle of a reply that begins {status[:200]!r}")
        parts = self.got.split(b"\n", lines)
        self.got = parts.pop()
        return b"\n".join(parts) + b"\n"

    def ask(self, line):
        self.send(line + b"\n")
        return self.reply()

    def expect_end(self):
        while self.more():
            pass
        if self.got:
            raise Broken(f"more than was asked for: {self.got[:200]!r}")


def outcome(reply):
    """«OK», or the code of an ERR reply."""
    words = reply.split(None, 2)
    return "OK" if words[0] == b"OK" else words[1].decode()


def without_us(reply):
    """A reply without its time, so that equal questions have equal replies."""
    return US.sub(b" us=N", reply)


class Bystander:
    """A client that asks questions with known answers while others misbehave."""

    QUESTIONS = (
        b"NEAR k=5 king - man + woman",
        b"SIM king queen",
        b"PING",
        b"HAS king King",
        b"NEAR k=3 xyzzy-foo",
    )

    def __init__(self, service, pause_s=0.01):
        self.connection = Connection(service.path)
        self.wanted = [without_us(self.connection.ask(question)) for question in self.QUESTIONS]
        self.pause_s = pause_s
        self.asked = 0
        self.slowest_s = 0.0
        self.complaint = None
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()

    def _ask(self):
        try:
            while not self.ending.wait(self.pause_s):
                number = self.asked % len(self.QUESTIONS)
                watch = faults.Stopwatch()
                got = without_us(self.connection.ask(self.QUESTIONS[number]))
                self.slowest_s = max(self.slowest_s, watch.seconds())
                self.asked += 1
                if got != self.wanted[number]:
                    self.complaint = (
                        f"{self.QUESTIONS[number]!r} is suddenly answered {got[:300]!r}"
                    )
                    return
        except (Broken, OSError) as fault:
            self.complaint = f"its connection broke: {fault}"

    def stop(self):
        """Ends it; returns complaints."""
        self.ending.set()
        self.thread.join(2 * PATIENCE_S)
        self.connection.socket.close()
        if self.complaint is None and self.asked == 0:
            self.complaint = "it was never answered"
        return [f"bystander: {self.complaint}"] if self.complaint else []


class Witness:
    """A bystander in a child process, so that this program's work does not delay it."""

    def __init__(self, path, questions=Bystander.QUESTIONS, pause_s=0.001):
        self.answers = []  # (time asked, seconds); filled by stop()
        down, self.ending = os.pipe()
        self.result, up = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.ending)
                os.close(self.result)
                times, complaint = self._ask(path, questions, pause_s, down)
                with os.fdopen(up, "wb") as out:
                    out.write(complaint.encode() + b"\n" + times.tobytes())
            finally:
                os._exit(0)
        os.close(down)
        os.close(up)

    @staticmethod
    def _ask(path, questions, pause_s, until):
        times = array.array("d")
        try:
            with Connection(path) as connection:
                wanted = [without_us(connection.ask(question)) for question in questions]
                while not select.select([until], [], [], pause_s)[0]:
                    number = len(times) // 2 % len(questions)
                    begun = time.monotonic()
                    got = without_us(connection.ask(questions[number]))
                    times.extend((begun, time.monotonic() - begun))
                    if got != wanted[number]:
                        return times, f"{questions[number]!r} is suddenly answered {got[:300]!r}"
        except (Broken, OSError) as fault:
            return times, f"its connection broke: {fault}"
        return times, "" if times else "it was never answered"

    def stop(self):
        """Ends it; returns complaints."""
        # A byte, since closing is not enough: later processes may hold the pipe too.
        os.write(self.ending, b".")
        os.close(self.ending)
        with os.fdopen(self.result, "rb") as result:
            complaint = result.readline().decode().strip()
            times = array.array("d", result.read())
        os.waitpid(self.pid, 0)
        self.answers = list(zip(times[::2], times[1::2]))
        return [f"witness: {complaint}"] if complaint else []

    def between(self, begin, end):
        """Seconds of the answers to questions asked between `begin` and `end`."""
        return [took for when, took in self.answers if begin <= when < end]


def want_descriptors(count):
    """Raises the limit of descriptors to `count`, or skips the program."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
        except (OSError, ValueError):
            faults.skip(f"a process may have {hard} descriptors here, not {count} (ulimit -Hn)")
    elif soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def as_user(function, user, group, groups):
    """Calls the function in a child process as another user; returns its text. Needs root."""
    result, up = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(groups)
            os.setgid(group)
            os.setuid(user)
            os.write(up, function().encode())
        except Exception as fault:  # the child must not go on as a copy of this program
            os.write(up, f"{type(fault).__name__}: {fault}".encode())
        finally:
            os._exit(0)
    os.close(up)
    with os.fdopen(result, "rb") as text:
        said = text.read().decode()
    os.waitpid(pid, 0)
    return said


@contextlib.contextmanager
def connecting_as(user, group):
    """Connects sockets as another user: peers see that user from then on. Needs root."""
    own_user, own_group = os.geteuid(), os.getegid()
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(own_user)
        os.setegid(own_group)
