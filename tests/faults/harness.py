"""Shared by tests in Python: how a program begins, judges and ends; gloved, requests, replies.

Programs of other folders add this one to their path. It needs nothing but Python's library.
"""
import argparse
import contextlib
import math
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
PATIENCE_S = 120
POLL_S = 0.005
SAMPLE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../data/glove.6B.100d.sample.txt.gz"
)
# A report of any sanitizer.
REPORT = re.compile(r"(ERROR|WARNING|SUMMARY): \w*Sanitizer|runtime error:|LeakSanitizer")
STATUS = re.compile(rb"OK ([0-9]+)(?: [a-z_]+=[^ ]*)*$|ERR [a-z_]+ .")
GENERATION = re.compile(rb" generation=([0-9a-f]+)")
US = re.compile(rb'( us=|"us":)[0-9]+')
# So many lines are counted before each is looked for.
MANY_LINES = 64


# ---- Programs


def option(name, default, text="", **given):
    """An option or operand of a program. Its type is that of its default, which its help tells.

    >>> option("--count", 3)[1]["type"], option("--without", [], nargs="*")[1]["type"]
    (<class 'int'>, <class 'str'>)
    """
    if default is False:
        given["action"] = "store_true"
    elif default is not None:
        given.setdefault("type", str if isinstance(default, list) else type(default))
        shown = default if isinstance(default, (str, int, float)) else ",".join(default)
        text = f"{text} ({shown})".lstrip()
    return name, dict(given, default=default, help=text)


def some_of(names):
    """A type for options: some of the names, with commas between."""

    def parse(text):
        wrong = sorted(set(text.split(",")) - set(names))
        if wrong:
            raise argparse.ArgumentTypeError(f"there is no {wrong[0]}: {', '.join(names)}")
        return text.split(",")

    return parse


def existing(path):
    """A type for options: the absolute path of something that is there."""
    if not os.path.exists(path):
        raise argparse.ArgumentTypeError(f"there is no {path}")
    return os.path.abspath(path)


MODEL = option(
    "model", None, "directory made by gloved-convert (default: of the sample)", nargs="?"
)
SEED = option("--seed", random.SystemRandom().randrange(1 << 32), "seed of random choices")


def program(*options):
    """Makes a function the program of its file, and runs it.

    The function gets the arguments, with an empty directory as `work`, and Verdicts. It returns
    figures for the last line, or None. The file's docstring is the help. The program ends with
    status 0 if all held, 1 if something did not or an exception came, 2 on wrong usage, and as
    skipped if the function has called skip()."""
    return lambda function: sys.exit(run_program(function, options))


def run_program(function, options):
    """Runs the function with the options of the command line; returns what sys.exit() takes."""
    parser = argparse.ArgumentParser(
        description=function.__globals__["__doc__"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "bin",
        type=os.path.abspath,
        help="the build's folder of programs, build/dev/bin; one with sanitizers is fine",
    )
    for name, given in options:
        parser.add_argument(name, **given)
    arguments = parser.parse_args()
    verdicts = Verdicts()
    threading.excepthook = verdicts.add_fault_of_thread
    with tempfile.TemporaryDirectory(prefix=f"gloved-{parser.prog}-") as arguments.work:
        try:
            figures = function(arguments, verdicts)
        except SystemExit as end:
            if not end.code:
                return "it ended before it had checked all"
            return 1 if verdicts.count and end.code == SKIPPED else end.code
    if not isinstance(figures, (str, type(None))):
        raise TypeError(f"{parser.prog} returns {figures!r}, no figures")
    if not (figures or verdicts.rows or verdicts.count):
        verdicts.add("nothing was checked")
    seed = f"seed {arguments.seed}" if hasattr(arguments, "seed") else None
    return verdicts.conclude(seed, figures)


def skip(reason):
    """Ends the program, which has checked nothing yet, because the machine does not allow it."""
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def need_program(name, package):
    """Ends the program if another one is missing: as skipped, or failed with GLOVED_NO_SKIP."""
    if shutil.which(name) is None:
        print(f"skipped: there is no {name} here (package {package})")
        sys.exit(1 if os.environ.get("GLOVED_NO_SKIP") else SKIPPED)


def want_descriptors(count):
    """Raises the limit of descriptors to `count`, or skips the program."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
        except (OSError, ValueError):
            skip(f"a process may have {hard} descriptors here, not {count} (ulimit -Hn)")
    elif soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def print_table(header, rows):
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        cells = [str(row[0]).ljust(widths[0])]
        cells += [
            str(cell).rjust(width) if str(cell).isdigit() else str(cell).ljust(width)
            for cell, width in zip(row[1:], widths[1:])
        ]
        print("  ".join(cells).rstrip())


class Verdicts:
    """A table with a row for each check, and failures, the first of which it prints at once."""

    SHOWN = 20

    def __init__(self, word="FAILED"):
        self.word = word
        self.count = 0
        self.rows = []
        self.watch = Stopwatch()

    def add(self, *complaints):
        for complaint in complaints:
            self.count += 1
            if self.count <= self.SHOWN:
                print(f"{self.word}: {complaint}", flush=True)

    def add_fault_of_thread(self, fault):
        threading.__excepthook__(fault)
        self.add(f"a thread ended by {fault.exc_type.__name__}: {fault.exc_value}")

    def judge(self, what, held, text):
        self.blame(what, [] if held else [text], text)

    def blame(self, what, complaints, text):
        """Adds a row; the check held if there are no complaints."""
        self.rows.append((what, "FAILED" if complaints else "held", text))
        self.add(*(f"{what}: {complaint}" for complaint in complaints))

    def leave_out(self, what, reason):
        self.rows.append((what, "not tried", reason))

    def conclude(self, *figures):
        """Prints the table and the figures that there are; returns the exit status."""
        if self.rows:
            print_table(("what", "", ""), self.rows)
        took = f"{self.count} failures, {self.watch.seconds():.0f} s"
        print(", ".join([each for each in figures if each] + [took]))
        return 1 if self.count else 0


def percentile(values, share):
    """The least value that is not below that share of the values; 0 of none. Nearest rank.

    >>> percentile(range(1, 101), 0.99), percentile(range(1, 101), 0.07), percentile([4, 1], 0.5)
    (99, 7, 1)
    >>> percentile([3, 1, 2], 0), percentile([3, 1, 2], 1), percentile([], 0.5)
    (1, 3, 0.0)
    """
    # 0.07 * 100 is a little above 7.
    rank = math.ceil(share * len(values) - 1e-9)
    return sorted(values)[max(rank, 1) - 1] if values else 0.0


class Stopwatch:
    def __init__(self):
        self.begun = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.begun


def wait_until(condition, within_s=PATIENCE_S):
    """Waits for the condition; returns whether it held in time."""
    watch = Stopwatch()
    while not condition():
        if watch.seconds() > within_s:
            return False
        time.sleep(POLL_S)
    return True


def run(command, **options):
    """Runs a command to its end, with an empty stdin."""
    given = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": PATIENCE_S}
    return subprocess.run(command, **{**given, "text": True, "errors": "replace", **options})


# ---- Requests and replies


class Broken(Exception):
    """The daemon breaks the protocol, or ends otherwise than it must."""


def quoted(word):
    """A word as a request has it.

    >>> quoted("king"), quoted(b'a"b'), quoted("caf\\udce9 x")
    (b'"king"', b'"a\\\\x22b"', b'"caf\\\\xe9\\\\x20x"')
    """
    data = word.encode(errors="surrogateescape") if isinstance(word, str) else word
    return b'"%s"' % re.sub(rb'[^!#-\[\]-~]', lambda found: b"\\x%02x" % found[0][0], data)


def end_of_reply(data, begin=0):
    """Where the reply that begins there ends; 0 if it is not whole. Raises Broken if it is none.

    >>> end_of_reply(b"OK 2\\na\\nb\\nOK 0\\n"), end_of_reply(b"OK 2\\na\\nb")
    (9, 0)
    >>> end_of_reply(b'PING\\n{"ok":true}\\n', 5), end_of_reply(b"ERR busy now\\nmore")
    (17, 13)
    >>> end_of_reply(b"FINE\\n")
    Traceback (most recent call last):
    harness.Broken: no status line: b'FINE'
    """
    end = data.find(b"\n", begin)
    if end < 0:
        return 0
    if data[begin] == ord("{"):  # JSON has one line
        return end + 1
    found = STATUS.match(data[begin:end])
    if not found:
        raise Broken(f"no status line: {data[begin : min(end, begin + 200)]!r}")
    lines = int(found[1] or 0)
    if lines > MANY_LINES and data.count(b"\n", end + 1) < lines:
        return 0
    for _ in range(lines):
        end = data.find(b"\n", end + 1)
        if end < 0:
            return 0
    return end + 1


class Replies:
    """Splits received bytes into replies."""

    def __init__(self):
        self.data = b""

    def take(self, data):
        """Adds received bytes; returns the replies that are complete."""
        self.data += data
        whole = []
        begin = 0
        while end := end_of_reply(self.data, begin):
            whole.append(self.data[begin:end])
            begin = end
        self.data = self.data[begin:]
        return whole


class Connection:
    """A connection whose waits all have a time limit."""

    def __init__(self, path, patience_s=PATIENCE_S):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(patience_s)
        self.got = b""
        limit = time.monotonic() + patience_s
        while True:
            try:
                self.socket.connect(str(path))
                return
            except BlockingIOError:
                # The backlog is full.
                if time.monotonic() > limit:
                    self.socket.close()
                    raise
                time.sleep(POLL_S)
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
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

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
        """Reads the next reply. Raises Broken if there is none."""
        while not (end := end_of_reply(self.got)):
            if not self.more():
                raise Broken(f"the end where a reply should be, behind {self.got[:200]!r}")
        reply, self.got = self.got[:end], self.got[end:]
        return reply

    def ask(self, line):
        self.send(line + b"\n")
        return self.reply()

    def read_to_end(self):
        """Returns all that comes."""
        while self.more():
            pass
        return self.got

    def expect_end(self):
        if self.read_to_end():
            raise Broken(f"more than was asked for: {self.got[:200]!r}")


def outcome(reply):
    """«OK», or the code of an ERR reply."""
    words = reply.split(None, 2)
    return "OK" if words[0] == b"OK" else words[1].decode()


def without_us(reply):
    """A reply without its time, so that equal questions have equal replies."""
    return US.sub(rb"\1N", reply)


def fields_of(reply):
    """The fields of an OK reply's status line. Raises Broken if it is none."""
    status = reply.partition(b"\n")[0]
    if not status.startswith(b"OK "):
        raise Broken(f"answered {status[:200]!r}")
    return dict(field.split("=", 1) for field in status.decode().split()[2:])


def lines_of(reply):
    """The lines behind an OK reply's status line, each as its columns."""
    fields_of(reply)
    return [line.split(b"\t") for line in reply.split(b"\n")[1:-1]]


def generation_of(reply):
    found = GENERATION.search(reply.partition(b"\n")[0])
    return found[1] if found else None


def stats(path):
    """The values of STATS, by name."""
    with Connection(path) as connection:
        lines = lines_of(connection.ask(b"STATS"))
    return {line[0].decode(): b"\t".join(line[1:]).decode() for line in lines}


# ---- Processes


def convert(bin_dir, source, model, *options):
    """Makes a model, over the one that is there; returns its directory."""
    done = run([os.path.join(bin_dir, "gloved-convert"), *options, source, model])
    if done.returncode != 0:
        sys.exit(f"gloved-convert fails: {done.stderr}")
    return model


def convert_sample(bin_dir, work):
    """Makes a model of the sample; returns its directory."""
    return convert(bin_dir, SAMPLE, os.path.join(work, "sample"))


def client(bin_dir, path, *words):
    """Runs gloved-client to its end."""
    return run([os.path.join(bin_dir, "gloved-client"), "--socket", path, *words])


def answers(path, process, patience_s=PATIENCE_S):
    """Waits until a daemon answers there; False if the process ends first or takes longer."""
    watch = Stopwatch()
    while process.poll() is None and watch.seconds() < patience_s:
        with contextlib.suppress(OSError, Broken), Connection(path, patience_s) as connection:
            # If this process has ended, another one may have answered.
            if connection.ask(b"PING") == b"OK 0\n" and process.poll() is None:
                return True
        time.sleep(POLL_S)
    return False


def status_fields(pid):
    """The fields of /proc/PID/stat behind the program's name, which may contain blanks."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()


def processor_s(pid):
    """The seconds of processor time that the process has used."""
    fields = status_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def device_memory():
    """MiB in use on all GPUs, as nvidia-smi reports; None without GPUs."""
    if not shutil.which("nvidia-smi"):
        return None
    told = run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"])
    return sum(int(line) for line in told.stdout.split()) if told.returncode == 0 else None


class Service:
    """A gloved that runs, and answers, in its `with` block, or from start() to stop().

    A block that calls neither stop(), kill() nor ended() ends by stop(), and raises Broken if that
    complains. With `waits` false, it need not answer. `given` goes to Popen."""

    def __init__(
        self, bin_dir, work, model, *options,
        path=None, log_path=None, program=None, engine="cpu", environment=None, waits=True,
        **given,
    ):  # fmt: skip
        self.path = path or os.path.join(work, "socket")
        self.log_path = log_path or os.path.join(work, "log")
        self.command = [program or os.path.join(bin_dir, "gloved"), "--socket", self.path]
        self.command += ["--model", model] if model else []
        self.command += ["--engine", engine] if engine else []
        threads = os.environ.get("GLOVED_TEST_IO_THREADS")
        self.command += ["--io-threads", threads] if threads else []
        self.command += options
        self.given = {"env": dict(os.environ, **(environment or {})), **given}
        self.waits = waits
        self.process = None
        self.is_judged = False
        with open(self.log_path, "wb"):
            pass

    def __enter__(self):
        self.start()
        return self

    def start(self):
        """Starts it, also again after its end; its log goes on."""
        self.is_judged = False
        with open(self.log_path, "ab") as log:
            given = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **self.given}
            self.process = subprocess.Popen(self.command, **given)
        if self.waits and not self.answers():
            self.kill()
            sys.exit(f"gloved does not serve: {self.log()}")

    def answers(self, patience_s=PATIENCE_S):
        """Waits until it answers; False if it ends first or takes longer."""
        return answers(self.path, self.process, patience_s)

    def __exit__(self, kind, *fault):
        try:
            complaints = [] if kind or self.is_judged else self.stop()
            if complaints:
                raise Broken("; ".join(complaints))
        finally:
            self.kill()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def alive(self):
        return self.process.poll() is None

    def statistics(self):
        """The values of STATS, by name."""
        return stats(self.path)

    def own_bytes(self):
        """Resident memory without mapped files, so without the model."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next(
                int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:")
            )

    def processor_s(self):
        return processor_s(self.process.pid)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def descriptors_back_to(self, count, within_s):
        """Seconds until at most `count` descriptors are open; None if not in time."""
        watch = Stopwatch()
        while self.alive() and self.descriptors() > count:
            if watch.seconds() > within_s:
                return None
            time.sleep(POLL_S)
        return watch.seconds() if self.alive() else None

    def kill(self):
        self.is_judged = True
        if self.alive():
            self.process.kill()
        self.process.wait()

    def ended(self, within_s):
        """Waits for an end that the test expects; returns the status, None if it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(within_s)
        self.is_judged = self.process.returncode is not None
        return self.process.returncode

    def stop(self, number=signal.SIGTERM):
        """Ends the daemon by a signal; returns complaints."""
        complaints = []
        if self.alive():
            self.process.send_signal(number)
            if self.ended(PATIENCE_S) is None:
                complaints.append(f"the daemon does not end within {PATIENCE_S} s")
                self.kill()
        else:
            complaints.append("the daemon ended by itself")
        self.is_judged = True
        if self.process.returncode != (-number if number == signal.SIGKILL else 0):
            complaints.append(
                f"the daemon ends with {self.process.returncode}: {self.log()[-2000:]}"
            )
        if REPORT.search(self.log()):
            complaints.append(f"a sanitizer reports: {self.log()[:4000]}")
        return complaints
