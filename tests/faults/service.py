"""What the programs of this folder that trouble the daemon share: gloved on the sample, connections, replies, a bystander."""
import argparse
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time

import faults

SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/glove.6B.100d.sample.txt.gz")
PATIENCE_S = 60
# What a sanitizer's runtime says, whichever it is.
REPORT = re.compile(r"(ERROR|WARNING|SUMMARY): \w*Sanitizer|runtime error:|LeakSanitizer")
US = re.compile(rb" us=[0-9]+")


def parser(doc):
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("bin", help="the build's folder of programs, build/dev/bin; one with sanitizers is fine")
    made.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="of what is random (printed)")
    return made


def convert_sample(bin_dir, work):
    """Makes a model of the sample; returns its directory."""
    model = os.path.join(work, "sample")
    done = faults.run([os.path.join(bin_dir, "gloved-convert"), SAMPLE, model])
    if done.returncode != 0:
        sys.exit(f"gloved-convert fails on the sample: {done.stderr}")
    return model


class Service:
    """A gloved that runs until stop(), or until the block that it heads is left."""

    def __init__(self, bin_dir, work, model, *options):
        self.path = os.path.join(work, "socket")
        self.log_path = os.path.join(work, "log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            command = [os.path.join(bin_dir, "gloved"), "--model", model, "--socket", self.path, "--engine", "cpu", *options]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
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

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def descriptors_back_to(self, count, within_s):
        """The seconds until no more than `count` descriptors were open; None where they were not in time."""
        watch = faults.Stopwatch()
        while self.alive() and self.descriptors() > count:
            if watch.seconds() > within_s:
                return None
            time.sleep(0.005)
        return watch.seconds() if self.alive() else None

    def stop(self):
        """Tells it to end; returns what there is against how it did."""
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
            complaints.append("the daemon had ended before it was told to")
        if self.process.returncode != 0:
            complaints.append(f"the daemon ends with {self.process.returncode}: {self.log()[-2000:]}")
        if REPORT.search(self.log()):
            complaints.append(f"a sanitizer reports: {self.log()[:4000]}")
        return complaints


class Broken(Exception):
    """The stream is not what the protocol says."""


class Connection:
    """One connection. Every wait of its is bounded."""

    def __init__(self, path, patience_s=PATIENCE_S):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(patience_s)
        self.got = b""
        try:
            self.socket.connect(path)
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
        """As far as the peer takes it: one that closes need not read to the end."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def more(self):
        """Reads on; False at the end."""
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError as fault:
            raise Broken(f"no answer, but {self.got[:200]!r}") from fault
        except ConnectionResetError as fault:
            raise Broken("reset by the daemon") from fault
        self.got += data
        return bool(data)

    def reply(self):
        """The next reply: status line and lines, as bytes. What is no reply is Broken."""
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
    """OK, or the code of an ERR."""
    words = reply.split(None, 2)
    return "OK" if words[0] == b"OK" else words[1].decode()


def without_us(reply):
    """An answer as it is each time that the same is asked."""
    return US.sub(b" us=N", reply)


class Bystander:
    """A client that goes on asking for what it knows the answer to, while others misbehave."""

    QUESTIONS = (b"NEAR k=5 king - man + woman", b"SIM king queen", b"PING", b"HAS king King", b"NEAR k=3 xyzzy-foo")

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
                    self.complaint = f"{self.QUESTIONS[number]!r} is suddenly answered {got[:300]!r}"
                    return
        except (Broken, OSError) as fault:
            self.complaint = f"its connection broke: {fault}"

    def stop(self):
        """What there is against how it was served."""
        self.ending.set()
        self.thread.join(2 * PATIENCE_S)
        self.connection.socket.close()
        if self.complaint is None and self.asked == 0:
            self.complaint = "it was never answered"
        return [f"bystander: {self.complaint}"] if self.complaint else []
