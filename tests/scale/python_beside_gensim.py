#!/usr/bin/env python3
"""Times gloved.KeyedVectors beside gensim's, and measures the memory of both.

    python_beside_gensim.py BIN_DIR GLOVE_TXT [--words N] [--processes N]

GLOVE_TXT is GloVe's text. This converts and serves it, and asks both libraries on the same machine,
one after another, each in processes of its own:

    first answer   from connecting or loading to the first most_similar(); imports are apart
    one at a time  most_similar() of one word after another
    bulk           most_similar_many() of N words (10,000), beside `gloved-client --lines`
                   the fastest of five rounds of each, in turn, and the passes over memory in
                   which the daemon answered it: with other passes, times say little of clients
    memory         N processes (4) that have asked once: Rss and Pss of /proc/PID/smaps_rollup

The table shows ratios and their targets. Exit status 1 if a target is missed. Needs Debian's
python3-gensim. Runs of other programs at the same time spoil the figures.
"""
import contextlib
import json
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../faults"))
import harness  # noqa: E402

PYTHON = os.path.join(HERE, "../../python")
ONE_AT_A_TIME = 300
ROUNDS = 5


def one_at_a_time(vectors, words):
    begun = time.perf_counter()
    for word in words:
        vectors.most_similar(word)
    return (time.perf_counter() - begun) / len(words)


def passes(client):
    """How many passes over memory the daemon has made: one answers many waiting requests."""
    return int(client.stats()["batches"])


def work(kind, source, words_file, saved):
    """The process of one library: prints what it measured, then waits to be ended."""
    with open(words_file, encoding="utf-8") as file:
        words = json.load(file)
    begun = time.perf_counter()
    if kind == "gloved":
        sys.path.insert(0, PYTHON)
        import gloved
    else:
        from gensim.models import KeyedVectors
    result = {"import": time.perf_counter() - begun}
    begun = time.perf_counter()
    if kind == "gloved":
        vectors = gloved.connect(source)
    elif kind == "text":
        vectors = KeyedVectors.load_word2vec_format(source, binary=False, no_header=True)
    else:
        vectors = KeyedVectors.load(source, mmap="r")
    vectors.most_similar(words[0])
    result["first"] = time.perf_counter() - begun
    if words[1:]:
        result["one"] = one_at_a_time(vectors, words[1:ONE_AT_A_TIME])
    if kind == "gloved" and words[1:]:
        before = passes(vectors.client)
        begun = time.perf_counter()
        answers = sum(1 for _ in vectors.most_similar_many(words))
        result["bulk"] = time.perf_counter() - begun, passes(vectors.client) - before
        assert answers == len(words)
        begun = time.perf_counter()
        vectors.get_vectors(words)
        result["vectors"] = time.perf_counter() - begun
    if saved:
        vectors.save(saved)
    print(json.dumps(result), flush=True)
    sys.stdin.read()


@contextlib.contextmanager
def worker(kind, source, words_file, saved=""):
    """A process that has done its work: its pid, and what it printed."""
    command = [sys.executable, os.path.abspath(__file__), "--worker", kind, source, words_file]
    process = subprocess.Popen(
        [*command, saved], stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True
    )
    try:
        line = process.stdout.readline()
        if not line:
            sys.exit(f"{' '.join(command)} failed")
        yield process.pid, json.loads(line)
    finally:
        process.stdin.close()
        process.wait()


def memory(pid):
    """Rss and Pss in bytes."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line and "kB" in line)
    return [1024 * int(fields[name].split()[0]) for name in ("Rss", "Pss")]


def memory_of(kind, source, words_file, processes, others=()):
    with contextlib.ExitStack() as stack:
        pids = [
            stack.enter_context(worker(kind, source, words_file))[0] for _ in range(processes)
        ]
        each = [memory(pid) for pid in [*pids, *others]]
    return [sum(column) for column in zip(*each)], each


def client_lines(bin_dir, socket, words, work_dir):
    """Seconds that gloved-client --lines takes for the same requests, and the daemon's passes."""
    import gloved

    client = gloved.Client(socket)
    path = os.path.join(work_dir, "requests")
    with open(path, "wb") as file:
        for word in words:
            file.write(b"NEAR k=10 norm=unit " + harness.quoted(word) + b"\n")
    before = passes(client)
    begun = time.perf_counter()
    with open(path, "rb") as requests:
        subprocess.run(
            [os.path.join(bin_dir, "gloved-client"), "--socket", socket, "--lines"],
            stdin=requests,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return time.perf_counter() - begun, passes(client) - before


def write_words(path, words):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(words, file)
    return path


def drawn_words(text, count):
    """The first word, and `count` words at random."""
    with open(text, "rb") as file:
        all_words = [line.split(b" ", 1)[0] for line in file]
    words = []
    for word in random.Random(20).sample(all_words, min(2 * count, len(all_words))):
        with contextlib.suppress(UnicodeDecodeError):
            words.append(word.decode("utf-8"))
    return [all_words[0].decode("utf-8"), *words[:count]]


class Table:
    def __init__(self, verdicts):
        self.verdicts = verdicts

    def row(self, what, ours, theirs, ratio, target=None, enough=True):
        if target is not None:
            self.verdicts.judge(what, enough, f"{ratio}, wanted {target}")
        wanted = "" if target is None else f"{target}: " + ("met" if enough else "MISSED")
        print(f"{what:<46} {ours:>12} {theirs:>12} {ratio:>9} {wanted}".rstrip(), flush=True)


def measure(arguments, table):
    work_dir = arguments.work
    words = drawn_words(arguments.text, arguments.words)
    words_file = write_words(os.path.join(work_dir, "words"), words)
    one_word = write_words(os.path.join(work_dir, "word"), words[:1])
    saved = os.path.join(work_dir, "gensim")
    with worker("text", arguments.text, words_file, saved) as (_, by_text):
        pass
    with worker("mmap", saved, words_file) as (_, by_mmap):
        pass
    model = harness.convert(arguments.bin, arguments.text, os.path.join(work_dir, "model"))
    begun = time.perf_counter()
    with harness.Service(arguments.bin, work_dir, model, engine=None) as daemon:
        start_seconds = time.perf_counter() - begun
        rounds, lines = [], []
        for _ in range(ROUNDS):
            with worker("gloved", daemon.path, words_file) as (_, result):
                rounds.append(result)
            lines.append(client_lines(arguments.bin, daemon.path, words, work_dir))
        ours = {name: min(each[name] for each in rounds) for name in rounds[0]}
        of_lines = min(lines)
        others = [daemon.process.pid]
        our_memory, each = memory_of(
            "gloved", daemon.path, one_word, arguments.processes, others
        )
    their_memory, _ = memory_of("mmap", saved, one_word, arguments.processes)
    ours.update(lines=of_lines, start=start_seconds)
    time_rows(table, ours, by_text, by_mmap, len(words))
    for name, our, their in zip(("Rss", "Pss"), our_memory, their_memory):
        table.row(
            f"{name} of {arguments.processes} processes (and the daemon); mmap, MB",
            f"{our / 1e6:.0f}",
            f"{their / 1e6:.0f}",
            f"{their / our:.1f}",
        )
    table.row("Pss of the daemon alone, MB", f"{each[-1][1] / 1e6:.0f}", "", "")


def time_rows(table, ours, by_text, by_mmap, count):
    print(f"{'':<46} {'gloved':>12} {'beside it':>12} {'ratio':>9} target")
    table.row("import, s", f"{ours['import']:.3f}", f"{by_text['import']:.3f}", "")
    table.row("start of the daemon, once, s", f"{ours['start']:.3f}", "", "")
    for name, other in (("text", by_text), ("mmap", by_mmap)):
        ratio = other["first"] / ours["first"]
        table.row(
            f"first answer; gensim loads {name}, s",
            f"{ours['first']:.4f}",
            f"{other['first']:.3f}",
            f"{ratio:.0f}",
            *((">= 100", ratio >= 100) if name == "text" else ()),
        )
        ratio = other["one"] / ours["one"]
        table.row(
            f"one at a time; gensim from {name}, ms",
            f"{1e3 * ours['one']:.3f}",
            f"{1e3 * other['one']:.2f}",
            f"{ratio:.1f}",
            ">= 5",
            ratio >= 5,
        )
    ours["bulk"], our_passes = ours["bulk"]
    ours["lines"], their_passes = ours["lines"]
    ratio = ours["lines"] / ours["bulk"]
    table.row(
        f"{count} words; gloved-client --lines, s",
        f"{ours['bulk']:.2f}",
        f"{ours['lines']:.2f}",
        f"{ratio:.2f}",
        ">= 0.8",
        ratio >= 0.8,
    )
    table.row("passes of the daemon for these", our_passes, their_passes, "")
    ratio = by_mmap["one"] * count / ours["bulk"]
    table.row(
        f"{count} words; gensim one at a time, s",
        f"{ours['bulk']:.2f}",
        f"{by_mmap['one'] * count:.0f}",
        f"{ratio:.1f}",
    )
    table.row(f"vectors of {count} words, s", f"{ours['vectors']:.2f}", "", "")


if sys.argv[1:2] == ["--worker"]:
    work(*sys.argv[2:])
    sys.exit()


@harness.program(
    harness.option("text", None, "GloVe's text"),
    harness.option("--words", 10_000, "words in bulk"),
    harness.option("--processes", 4, "processes whose memory counts"),
)
def main(arguments, verdicts):
    sys.path.insert(0, PYTHON)
    measure(arguments, Table(verdicts))
