"""Shared by the programs of this folder: strace, sources, comparing models by their bytes."""
import gzip
import hashlib
import os
import random
import re
import shutil
import sys
import tempfile
import zipfile

import harness

MODEL = "m"
MODEL_FILES = {"keys", "values", "planes", "report.json"}
STRAY = f".{MODEL}.gloved-"
# Runs to wait for a call that threads make in one run and not in another.
TRIES = 5
# Calls that change the disk, and those that decide about it. No occurrence is left out.
CHANGES = {
    "close", "copy_file_range", "fallocate", "fchmod", "fchmodat", "fchown", "fdatasync", "flock",
    "fremovexattr", "fsetxattr", "fsync", "ftruncate", "link", "linkat", "mkdir", "mkdirat",
    "openat", "pwrite64", "pwritev", "pwritev2", "rename", "renameat", "renameat2", "rmdir",
    "splice", "symlinkat", "sync", "sync_file_range", "syncfs", "unlink", "unlinkat", "write",
    "writev",
}  # fmt: skip
INPUT = harness.option(
    "--input", "text", "what gloved-convert reads", choices=("text", "gz", "zip")
)

# libarchive asks for the local time. Without TZ the C library reads a file for it, and ignores
# faults.
os.environ["TZ"] = "UTC0"


def packed(path, kind):
    """Packs a text as gz or zip; returns the path."""
    if kind == "gz":
        with open(path, "rb") as text, gzip.open(path + ".gz", "wb") as out:
            shutil.copyfileobj(text, out)
        return path + ".gz"
    if kind == "zip":
        with zipfile.ZipFile(path + ".zip", "w", zipfile.ZIP_DEFLATED) as out:
            out.write(path, os.path.basename(path))
        return path + ".zip"
    return path


def make_inputs(directory, rows, kind):
    """Writes two GloVe texts of different size, unsorted and with duplicates."""
    paths = []
    for number, (name, lines) in enumerate((("a", rows), ("b", rows - rows // 5))):
        path = os.path.join(directory, f"{name}.txt")
        numbers = random.Random(number)
        with open(path, "w", encoding="utf-8") as text:
            for line in range(lines):
                word = f"w{line * 7919 % 100003}" if line != 9 else f"w{7919 * 4 % 100003}"
                text.write(
                    word + "".join(f" {numbers.gauss(0, 0.4):.5g}" for _ in range(20)) + "\n"
                )
        paths.append(packed(path, kind))
    return paths


def make_large_text(path, rows, dim):
    """Writes a GloVe text of the words w0, w1 …, quickly: vectors are made of pieces of 10."""
    chance = random.Random(1)
    pieces = [" ".join(f"{chance.gauss(0, 0.4):.5g}" for _ in range(10)) for _ in range(3000)]
    with open(path, "w", encoding="ascii") as text:
        for row in range(rows):
            text.write(f"w{row} " + " ".join(chance.choices(pieces, k=dim // 10)) + "\n")


class Bench:
    """A directory with one name for a model, and two models that take turns there."""

    def __init__(self, arguments, work, rows=300, threads=2, parent=None):
        self.convert_program = os.path.join(arguments.bin, "gloved-convert")
        self.verify_program = os.path.join(arguments.bin, "gloved-verify")
        for program in (self.convert_program, self.verify_program):
            if not os.access(program, os.X_OK):
                sys.exit(f"{program}: there is no such program")
        self.threads = threads
        self.inputs = make_inputs(work, rows, arguments.input)
        self.parent = parent or os.path.join(work, "models")
        self.model = os.path.join(self.parent, MODEL)
        os.mkdir(self.parent)
        self.contents = []
        for input_path in self.inputs:
            done = self.convert(input_path)
            if done.returncode != 0:
                sys.exit(f"gloved-convert fails without any fault: {done.stderr}")
            self.contents.append(self.content(self.model))
        if self.contents[0] == self.contents[1]:
            sys.exit("both inputs give one model: nothing could be told apart")
        # The second model before it has planes, and after.
        self.with_planes = self.contents[1]
        os.remove(os.path.join(self.model, "planes"))
        self.without_planes = self.content(self.model)

    def command(self, input_path):
        # Without spool memory, small sources use the spool's file as large ones do. With --memory,
        # gloved-convert does not read the machine's memory size, whose faults do not matter.
        given = ["--threads", str(self.threads), "--memory", "256M", "--spool-memory", "0"]
        return [self.convert_program, *given, input_path, self.model]

    def planes_command(self):
        """Planes for the second model, which has none: see take_planes_away."""
        return [self.convert_program, "--threads", str(self.threads), "--planes-only", self.model]

    def take_planes_away(self):
        if self.content(self.model) not in (self.with_planes, self.without_planes) or self.strays():
            self.convert(self.inputs[1])
        if self.content(self.model) == self.with_planes:
            os.remove(os.path.join(self.model, "planes"))
        if self.content(self.model) != self.without_planes or self.strays():
            sys.exit(f"an undisturbed run does not bring the model back; beside it {self.strays()}")

    def convert(self, input_path, **options):
        return harness.run(self.command(input_path), **options)

    @staticmethod
    def content(directory):
        """A checksum over a model's files, but its report. None if there is no directory."""
        if not os.path.isdir(directory):
            return None
        digest = hashlib.sha256()
        for name in ("keys", "values"):
            try:
                with open(os.path.join(directory, name), "rb") as file:
                    digest.update(file.read() + b"|")
            except FileNotFoundError:
                return f"no {name} in it"
        planes = os.path.join(directory, "planes")
        if os.path.exists(planes):
            with open(planes, "rb") as file:
                digest.update(file.read() + b"|")
        return digest.hexdigest()

    def snapshot(self):
        """Every file of the model, with the report, which differs from run to run."""
        files = {}
        if os.path.isdir(self.model):
            for name in sorted(os.listdir(self.model)):
                with open(os.path.join(self.model, name), "rb") as file:
                    files[name] = file.read()
        return files

    def strays(self):
        """Names beside the model and in it that belong to no model."""
        inside = os.listdir(self.model) if os.path.isdir(self.model) else []
        return sorted(
            [name for name in os.listdir(self.parent) if name != MODEL]
            + [name for name in inside if name not in MODEL_FILES]
        )

    def clear(self):
        shutil.rmtree(self.parent)
        os.mkdir(self.parent)

    def verified(self, directory=None):
        """None if gloved-verify accepts it, else its output."""
        done = harness.run([self.verify_program, directory or self.model])
        return None if done.returncode == 0 else (done.stdout + done.stderr).strip()


class Call:
    """One call of a traced run."""

    def __init__(self, pid, name, text, is_main):
        self.name = name
        self.text = text
        self.is_main = is_main
        self.injected = "(INJECTED" in text
        self.pid = pid
        self.occurrence = 0


LINE = re.compile(r"^(\d+) +([a-z_0-9]+)\((.*)$")


def calls_of(log_path):
    """The calls of a trace by strace -f -o, in order. `occurrence` counts calls of a name in a
    thread, as strace does."""
    calls = []
    counts = {}
    main = None
    with open(log_path, encoding="utf-8", errors="replace") as log:
        for line in log:
            found = LINE.match(line)
            if not found:
                # If another thread's call interrupts a line, the mark is on its second part.
                resumed = re.match(r"^(\d+) +<\.\.\. ([a-z_0-9]+) resumed>", line)
                if resumed and "(INJECTED" in line:
                    for call in reversed(calls):
                        if call.pid == resumed[1] and call.name == resumed[2]:
                            call.injected = True
                            break
                continue
            pid, name, rest = found.groups()
            main = main or pid
            call = Call(pid, name, rest, pid == main)
            key = (pid, name)
            counts[key] = call.occurrence = counts.get(key, 0) + 1
            calls.append(call)
    return calls


def strace_command(log_path, *injections):
    command = ["strace", "-f", "-qq", "-s", "64", "-o", log_path]
    for injection in injections:
        command += ["-e", f"inject={injection}"]
    return command


def has_gpu():
    """Whether a driver answers; its device file may be left from another kernel."""
    try:
        os.close(os.open("/dev/nvidiactl", os.O_RDWR))
    except OSError:
        return False
    return True


def need_strace():
    harness.need_program("strace", "strace")
    with tempfile.TemporaryDirectory() as work:
        log = os.path.join(work, "log")
        probe = harness.run(strace_command(log, "close:error=EIO:when=1") + ["/bin/true"])
        if not os.path.exists(log) or not any(call.injected for call in calls_of(log)):
            why = probe.stderr.strip() or "it injects nothing"
            harness.skip(f"strace cannot trace here ({why})")


def first_own_call(calls, input_path):
    """The index of the first call of main(); the loader and the C library made those before."""
    for index, call in enumerate(calls):
        if call.name == "openat" and "/" + os.path.basename(input_path) + '"' in call.text:
            return index
    sys.exit("the trace shows no opening of the input")


def spread(numbers, count):
    """At most `count` of the numbers: the first, the last, and evenly chosen ones between."""
    if len(numbers) <= count:
        return list(numbers)
    if count == 1:
        return [numbers[0]]
    return sorted({numbers[round(i * (len(numbers) - 1) / (count - 1))] for i in range(count)})
