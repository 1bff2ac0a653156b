"""python3 -m gloved eval: what it reads, asks and prints."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

import gloved
from conftest import REPOSITORY, Daemon, run_command
from fake import Peer, serving
from gloved import _command, _connection, _eval, _eval_files, _eval_words, _evaluation, _retry
from gloved._command import Fault

PROGRAM = str(REPOSITORY / "python" / "gloved-eval")
HEAD = "section\tkind\tcorrect\tasked\tskipped\tpercent\n"


class Done:
    """What a run said, and its figures."""

    def __init__(self, done: "subprocess.CompletedProcess[bytes]") -> None:
        self.status = done.returncode
        self.out = done.stdout.decode("utf-8", "surrogateescape")
        self.err = done.stderr.decode()


def evaluate(socket: str, *arguments: str, stdin: str = "") -> Done:
    given = stdin.encode("utf-8", "surrogateescape")
    return Done(run_command("eval", "--socket", socket, *arguments, stdin=given))


def read(function: Callable[[str], Any], tmp_path: Path, text: str, name: str = "file") -> Any:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return function(str(path))


# Files


def test_sections_of_questions(tmp_path: Path) -> None:
    sections = read(
        _eval_files.read_analogies,
        tmp_path,
        "\ufeffx y z w\n: capital-common\r\nAthens Greece\tOslo  Norway\r\n\n  \n:gram1 x\n"
        ": empty\n: gram1 x\na,b,c,d\na, b, c, d\na,b c\td\n1,000 b, , d\nnew york,b,c,d",
        "capital-common-countries.txt",
    )
    assert [(each.name, each.kind, each.questions) for each in sections] == [
        ("capital-common-countries", "semantic", [("x", "y", "z", "w")]),
        ("capital-common", "semantic", [("Athens", "Greece", "Oslo", "Norway")]),
        ("gram1 x", "syntactic", []),
        ("empty", "semantic", []),
        (
            "gram1 x", "syntactic",
            [("a", "b", "c", "d")] * 3 + [("1,000", "b,", ",", "d"), ("new york", "b", "c", "d")],
        ),
    ]


def test_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = read(
        _eval_files.read_pairs,
        tmp_path,
        "# comment\nWord 1,Word 2,Human (mean)\nnew york\tbig, city\t7.35\r\n\n  tiger   cat  1e1\n"
        "love,sex,6.77\nlove, sex, -2\nnew york,big apple,7\n1,000 x .5\n",
    )
    assert [tuple(each) for each in pairs] == [
        ("new york", "big, city", 7.35), ("tiger", "cat", 10.0), ("love", "sex", 6.77),
        ("love", "sex", -2.0), ("new york", "big apple", 7.0), ("1,000", "x", 0.5),
    ]
    assert '"Word 1,Word 2,Human (mean)" is taken for a header' in capsys.readouterr().err


LONG = "d" * (_eval_files.MAX_WORD_BYTES + 1)
FAULTS = [
    ("analogies", ": s\n\na b c\n", r'line 3: 3 words where a question has four, "a b c"; correct'),
    ("analogies", ": s\na\n", r"line 2: 1 word where"),
    ("analogies", ": s\na b c d e\n", r"line 2: 5 words"),
    ("analogies", ": s\na b c " + LONG, "4097 bytes"),
    ("analogies", ": s\na b c \udcff\n", "line 2 is not utf-8"),
    ("analogies", ": s\na b\0 c d\n", "line 2 has a NUL byte"),
    *[("analogies", text, "holds no questions") for text in ("", "\n \n", ": s\n: t\n")],
    ("pairs", "a\tb\t1\nword1\tword2\tscore\n", 'line 2: the score "score" is not a number'),
    ("pairs", "one\ttwo\tscore\nword1\tword2\tscore\n", 'line 2: the score "score" is'),
    ("pairs", "a\tb\n", "line 1: 2 fields where a pair has three"),
    ("pairs", "a\tb\t1\t2\n", "line 1: 4 fields where"),
    *[("pairs", f"a b 1\na b {each}", "is not a number") for each in ("nan", "inf", "1e999", "1x")],
    *[("pairs", text, "holds no pairs") for text in ("", "# nothing\n", "word1\tword2\tscore\n")],
]


@pytest.mark.parametrize("task, text, message", FAULTS)
def test_a_fault_names_file_line_and_remedy(
    task: str, text: str, message: str, tmp_path: Path
) -> None:
    function = getattr(_eval_files, f"read_{task}")
    with pytest.raises((Fault, ValueError), match=rf"/file.*{message}"):
        read(function, tmp_path, text)


def test_the_longest_word_is_read(tmp_path: Path) -> None:
    assert read(_eval_files.read_analogies, tmp_path, ": s\na b c " + LONG[1:])


def test_a_fifo_is_waited_for_and_told(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_command, "_SECONDS_BEFORE_TOLD", 0.05)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Timer(0.5, fifo.write_text, ("a b c d\n",))
    writer.start()
    assert _eval_files.read_analogies(str(fifo))[0].questions == [("a", "b", "c", "d")]
    writer.join()
    assert "waiting for a program that writes to this FIFO" in capsys.readouterr().err


# Figures


@pytest.mark.parametrize(
    "x, y, pearson, spearman",
    [
        # Σab = 8, Σaa = 10, Σbb = 10 around the means 3 and 3.
        ([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], 0.8, 0.8),
        ([1, 2, 3], [3, 2, 1], -1, -1),
        ([0, 1, 0, 1], [0, 0, 1, 1], 0, 0),
        ([0.1, 0.1, 0.1], [1, 2, 3], None, None),
        # Order alone counts. Σab = 1543.5, Σaa = 5, Σbb = 701520.75.
        ([1, 2, 3, 4], [1, 10, 100, 1000], 1543.5 / (5 * 701520.75) ** 0.5, 1),
        # Ranks 1 2.5 2.5 4 and 1 2 3 4: Σab = 4.5, Σaa = 4.5, Σbb = 5.
        ([1, 2, 2, 3], [1, 2, 3, 4], 0.9486833, 4.5 / (4.5 * 5) ** 0.5),
        # Squares and sums beyond the range of float64, and below it.
        ([1e308, 1.1e308, 1.2e308], [3, 2, 1], -1, -1),
        ([1e-200, 2e-200, 3e-200], [1e200, 2e200, 3e200], 1, 1),
    ],
)
def test_correlations(
    x: List[float], y: List[float], pearson: Optional[float], spearman: Optional[float]
) -> None:
    for function, expected in (_evaluation.pearson, pearson), (_evaluation.spearman, spearman):
        found = function(x, y)[0]
        assert found != found if expected is None else found == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    "word, expected",
    [
        ("king", "king KING King"), ("McDonald", "McDonald mcdonald MCDONALD Mcdonald"), ("7", "7"),
        ("Évry", "Évry évry ÉVRY"), ("йод", "йод ЙОД Йод"), ("ện", "ện ỆN Ện"), ("ÿ€", "ÿ€ Ÿ€"),
        # A final sigma folds to a sigma.
        ("μῦς", "μῦς μῦσ ΜῦΣ Μῦσ"),
        # One for one.
        ("ß", "ß"), ("İ", "İ"),
    ],
)
def test_spellings(word: str, expected: str) -> None:
    assert _eval_words.spellings(word) == expected.split()


# The sample


def nearest(client: gloved.Client, a: str, b: str, c: str, **options: Any) -> List[str]:
    found = client.near(
        gloved.Expression(f"{b} - {a} + {c}"), k=8, norm="unit", exclude="none", **options
    )
    return [each.word for each in found if each.word not in (a, b, c)]


GIVEN = ["man king woman", "france paris germany", "good better bad", "walk walked play"]


def test_counts_what_single_answers_say(daemon: Daemon, client: gloved.Client) -> None:
    hits = [(given, nearest(client, *given.split())) for given in GIVEN]
    right = "".join(f"{given} {best[0]}\n" for given, best in hits)
    wrong = "".join(f"{given} {best[1]}\n" for given, best in hits)
    file = f": capital\n{right}man king woman xyzzy\n: gram1-x\n{wrong}: empty\n"
    done = evaluate(daemon.socket, "analogies", "-", stdin=file)
    assert (done.status, done.err) == (0, "")
    assert done.out == (
        HEAD + "capital\tsemantic\t4\t4\t1\t100.00\ngram1-x\tsyntactic\t0\t4\t0\t0.00\n"
        "empty\tsemantic\t0\t0\t0\t-\n*\tsemantic\t4\t4\t1\t100.00\n*\tsyntactic\t0\t4\t0\t0.00\n"
        "*\ttotal\t4\t8\t1\t50.00\n"
    )
    found = evaluate(daemon.socket, "--json", "analogies", "-", stdin=file).out
    none = '"correct":0,"asked":0,"skipped":0,"percent":null'
    total = '"correct":4,"asked":8,"skipped":1,"percent":50'
    generation = client.models()[0].generation
    assert found.startswith(
        f'{{"model":"model","generation":"{generation}","top":300000,"case":"ignore",'
        '"method":"add","sections":[{"section":"capital","kind":"semantic","correct":4,'
    )
    assert f'{{"section":"empty","kind":"semantic",{none}}}],"semantic":{{' in found
    assert found.endswith(f'"total":{{{total}}}}}\n')

    lines = evaluate(daemon.socket, "--questions", "analogies", "-", stdin=file).out.split("\n")
    assert lines[:2] + lines[5:7] == [
        "section\ta\tb\tc\texpected\tanswer\tresult",
        f"capital\tman\tking\twoman\t{hits[0][1][0]}\t{hits[0][1][0]}\tcorrect",
        "capital\tman\tking\twoman\txyzzy\t-\tskipped",
        f"gram1-x\tman\tking\twoman\t{hits[0][1][1]}\t{hits[0][1][0]}\twrong",
    ]
    both = evaluate(daemon.socket, "--questions", "--json", "analogies", "-", stdin=file).out
    assert json.loads(both)["questions"][4] == {
        "section": "capital", "a": "man", "b": "king", "c": "woman", "expected": "xyzzy",
        "answer": None, "result": "skipped",
    }


def total_of(daemon: Daemon, *arguments: str, stdin: str) -> str:
    done = evaluate(daemon.socket, *arguments, "analogies", "-", stdin=stdin)
    return done.out.rpartition("*\ttotal\t")[2].replace("\t", " ").strip() or done.err


def test_options_change_figures(daemon: Daemon, client: gloved.Client) -> None:
    best = nearest(client, "man", "king", "woman")[0]
    file = f": s\nMan KING woman {best.capitalize()}\n"
    assert total_of(daemon, stdin=file) == "1 1 0 100.00"
    assert "nothing to ask: each of 1 questions" in total_of(daemon, "--case", "exact", stdin=file)

    # «berlin» has rank 2368: no answer among the 2,000 most frequent words, and no word of a
    # question.
    assert nearest(client, "france", "paris", "germany")[0] == "berlin"
    other = nearest(client, "france", "paris", "germany", top=2000)[0]
    file = f": s\nfrance paris germany {other}\nfrance paris germany berlin\n"
    assert total_of(daemon, "--top", "2000", stdin=file) == "1 1 1 100.00"
    assert total_of(daemon, stdin=file) == "1 2 0 50.00"

    words = ("hospital", "country", "money")
    by_mul, by_add = (client.analogy(*words, k=1, method=each)[0].word for each in ("mul", "add"))
    assert by_mul != by_add
    file = f": s\n{' '.join(words)} {by_mul}\n"
    assert total_of(daemon, "--method", "mul", stdin=file) == "1 1 0 100.00"

    # More than are sent ahead, right and wrong ones in turn.
    many = (f"man king woman {best if number % 5 else 'snake'}\n" for number in range(1000))
    assert total_of(daemon, stdin=": s\n" + "".join(many)) == "800 1000 0 80.00"


def test_pairs_go_with_sim(daemon: Daemon, client: gloved.Client) -> None:
    pairs = ["king queen 9", "paris france 7", "dog cat 8", "snake president 1", "music guitar 6.5"]
    people = [float(each.split()[2]) for each in pairs]
    cosines = [client.sim(*each.split()[:2]) for each in pairs]
    file = "word1\tword2\tscore\n" + "\n".join([*pairs, "king xyzzy 5"])
    done = evaluate(daemon.socket, "--json", "--questions", "pairs", "-", stdin=file)
    assert "stdin: \"word1\\x09word2\\x09score\" is taken for a header" in done.err
    found = json.loads(done.out)
    assert list(found)[4:] == [
        "pairs", "skipped", "skipped_percent", "pearson", "spearman", "questions",
    ]
    assert (found["pairs"], found["skipped"]) == (5, 1)
    # Pearson's formula in another form.
    n, a, b = len(pairs), sum(people), sum(cosines)
    ab = sum(x * y for x, y in zip(people, cosines))
    aa, bb = sum(x * x for x in people), sum(y * y for y in cosines)
    expected = (n * ab - a * b) / ((n * aa - a * a) * (n * bb - b * b)) ** 0.5
    assert found["pearson"] == pytest.approx(expected, abs=1e-12)
    assert found["questions"][0] == {
        "word1": "king", "word2": "queen", "score": 9, "cosine": cosines[0], "result": "compared",
    }
    table = evaluate(daemon.socket, "--questions", "pairs", "-", stdin=file).out.split("\n")
    assert table[1] == f"king\tqueen\t9\t{cosines[0]:.6f}\tcompared"
    assert table[6] == "king\txyzzy\t5\t-\tskipped"
    ordered = (f"{each.rsplit(' ', 1)[0]} {-100 * cos:f}\n" for each, cos in zip(pairs, cosines))
    done = evaluate(daemon.socket, "pairs", "-", stdin="".join(ordered))
    assert done.out == (
        "pairs\tskipped\tskipped_percent\tpearson\tspearman\n5\t0\t0.00\t-1.000000\t-1.000000\n"
    )
    done = evaluate(daemon.socket, "pairs", "-", stdin="king queen 1\ndog cat 1\n")
    assert done.out.endswith("2\t0\t0.00\t-\t-\n")


@pytest.mark.parametrize(
    "arguments, stdin, message",
    [
        (["analogies", "/nowhere/nix"], "", "/nowhere/nix: cannot open: No such file"),
        (["analogies", "/tmp"], "", "is a directory"),
        (["pairs", "-"], "king queen 5\nking xyzzy 5\n", "one pair is left, 1 have unknown words"),
        (["--top", "1", "pairs", "-"], "king queen 5\n", "nothing to ask: each of 1 pairs"),
        (["--model", "nix", "pairs", "-"], "king queen 5\n", "unknown_model: "),
    ],
)
def test_faults(daemon: Daemon, arguments: List[str], stdin: str, message: str) -> None:
    done = evaluate(daemon.socket, *arguments, stdin=stdin)
    assert (done.status, done.out) == (1, "")
    assert message in done.err


WRONG_USAGE = [
    "", "analogies", "analogies a b", "synonyms f", "--top 0 analogies f",
    "--top 4294967296 analogies f", "--method div analogies f", "--method mul pairs f",
    "--case upper analogies f", "--timeout 0 analogies f", "--retry -1 analogies f",
    "--model= analogies f", "--socket= analogies f", "--nix analogies f",
]


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage(line: str) -> None:
    done = Done(run_command("eval", *line.split()))
    assert (done.status, done.out) == (2, "")
    assert re.fullmatch(r"python3 -m gloved: .*; see python3 -m gloved eval --help\n", done.err)


def test_the_program(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("king queen 5\ndog cat 4\nsnake music 1\n")
    done = subprocess.run(
        [PROGRAM, "pairs", "pairs", "--socket", daemon.socket],
        capture_output=True, text=True, cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[1].startswith("3\t0\t0.00\t")
    done = subprocess.run([PROGRAM, "--nix"], capture_output=True, text=True)
    assert (done.returncode, done.stderr[:13]) == (2, "gloved-eval: ")
    done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"gloved-eval {gloved.__version__}\n")


def test_sigint_ends_the_program_itself(daemon: Daemon) -> None:
    command = [PROGRAM, "--socket", daemon.socket, "analogies", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdin is not None and program.stderr is not None
        program.stdin.write(b"a b c d\n")
        program.stdin.flush()
        # It waits for more lines: it is killed within the read.
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        assert program.wait(10) == -signal.SIGINT


def test_a_terminal_gets_progress_and_no_control_bytes(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(": a\x1b[31m\n" + "man king woman queen\n" * 30)
    # However fast the daemon is.
    program = "from gloved import _eval; _eval._SECONDS_BETWEEN_TOLD = 0; _eval.main()"
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program, "--socket", daemon.socket, "analogies", "file"],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")},
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 65536):
                said += piece
        except OSError:
            pass  # The terminal's end.
        assert process.wait(60) == 0
    os.close(ours)
    assert rb"a\x1b[31m" in said and b"\x1b[31m" not in said
    assert b"asking  " in said


# A scripted daemon


def ok(results: Any, generation: str = "01") -> bytes:
    head = {"ok": True, "us": 1, "rows": 9, "model": "m", "generation": generation}
    text = json.dumps({**head, "results": results}, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def script(answer: Callable[[bytes], bytes]) -> Callable[[Peer], None]:
    """HAS knows all words but «nix…», in lower case alone."""

    def run(peer: Peer) -> None:
        while line := peer.line():
            if line.startswith(b"HAS "):
                words = re.findall(rb' "([^"]+)"', line)
                known = [not word.startswith(b"nix") and word == word.lower() for word in words]
                ranks = {True: {"rank": 5}, False: {}}
                peer.send(ok([{"word": "w", "known": each, **ranks[each]} for each in known]))
            elif line.startswith(b"STATS"):
                peer.send(ok([{"single_query_us": 100}]))
            elif line.startswith((b"FORMAT", b"USE")):
                peer.send(ok([]))
            else:
                peer.send(answer(line))

    return run


def hits(*words: str) -> bytes:
    return ok([{"word": word, "score": 0.5} for word in words])


def test_asks_what_the_options_say() -> None:
    with serving(script(lambda line: hits("A", "d"))) as server:
        done = evaluate(
            server.socket, "--top", "77", "--method", "mul", "analogies", "-",
            stdin=": s\na b c D\nnix b c d\n",
        )
        assert "s\tsemantic\t1\t1\t1\t100.00\n" in done.out
        evaluate(server.socket, "--case", "exact", "analogies", "-", stdin=": s\na b c d\n")
    first, second = server.lines
    assert b"STATS" in first and b'ANALOGY case=exact k=5 top=77 method=mul "a" "b" "c"' in first
    asked = b'HAS fields="rank" case="exact" "a" "A" "b" "B" "c" "C" "D" "d" "nix" "NIX" "Nix"'
    assert asked in first
    assert b'ANALOGY case=exact k=1 top=300000 method=add "a" "b" "c"' in second


@pytest.mark.parametrize(
    "words, case, correct",
    [
        (["D"], "ignore", 1), (["A", "B", "d", "x"], "ignore", 1), (["x", "d"], "ignore", 0),
        (["A", "b"], "ignore", 0), ([], "ignore", 0), (["D"], "exact", 0), (["d"], "exact", 1),
        # Its JSON has escapes.
        (["\\", "d"], "ignore", 0), (['A"', "d"], "ignore", 0),
    ],
)
def test_the_first_hit_not_given_counts(words: List[str], case: str, correct: int) -> None:
    with serving(script(lambda line: hits(*words))) as server:
        done = evaluate(server.socket, "--case", case, "analogies", "-", stdin=": s\na b c d\n")
    assert f"s\tsemantic\t{correct}\t1\t0\t" in done.out


def test_bytes_of_words_are_kept() -> None:
    word = "\U0010ffffq"  # As JSON shows the byte 0xff.
    escaped = hits(word).replace(word[0].encode(), b"\\udbff\\udfff")
    with serving(script(lambda line: escaped)) as server:
        arguments = "--questions", "analogies", "-"
        done = evaluate(server.socket, *arguments, stdin=": s\na b c d\n")
        assert "\t\udcffq\twrong\n" in done.out
        done = evaluate(server.socket, "--json", *arguments, stdin=": s\na b c d\n")
        assert json.loads(done.out)["questions"][0]["answer"] == word


ZERO = b'{"ok":false,"code":"zero_vector","message":""}\n'


def test_a_zero_vector_is_a_wrong_answer_and_no_similarity() -> None:
    def sim(line: bytes) -> bytes:
        return ZERO if b'"b"' in line else ok([{"score": 0.25 if b'"d"' in line else 0.5}])

    with serving(script(lambda line: ZERO)) as server:
        done = evaluate(server.socket, "analogies", "-", stdin=": s\na b c d\n")
        assert "s\tsemantic\t0\t1\t0\t0.00\n" in done.out
    with serving(script(sim)) as server:
        done = evaluate(server.socket, "pairs", "-", stdin="a b 0\nc d 1\nc e 2\n")
        assert "3\t0\t0.00\t1.000000\t1.000000\n" in done.out
    assert b'SIM unknown=error case=exact "a" "b"' in server.all_lines


def test_tells_of_skipped_words_that_are_not_composed() -> None:
    with serving(script(lambda line: hits("d"))) as server:
        for stdin, status, told in (
            (": s\na b c d\nnixe\u0301 b c d\n", 0, f": {_eval_words.NOT_COMPOSED}\n"),
            (": s\nnixe\u0301 b c d\n", 1, f"most frequent; {_eval_words.NOT_COMPOSED}\n"),
            (": s\na b c d\nnix b c d\n", 0, ""),
        ):
            done = evaluate(server.socket, "analogies", "-", stdin=stdin)
            assert done.status == status
            assert done.err.endswith(told) and (told or not done.err)


@pytest.mark.parametrize(
    "reply, message",
    [
        (b'{"ok":false,"code":"timeout","message":"waited"}\n', "timeout: waited"),
        (ok([], "02"), "the model was replaced while it was evaluated; start again"),
        (ok([{"word": "d", "score": 1.5}], "02"), "the model was replaced"),
        (b'{"ok":true,"generation":"01","model":"m"}\n', "cannot be read: KeyError('results')"),
        (b'{"ok":true,"generation":7,"results":[]}\n', "cannot be read"),
        (ok([{"word": 5}]), "cannot be read"),
        (ok([{}]), "cannot be read: KeyError('word')"),
        (b'{"ok":true,\n', "not gloved"),
        (b"OK 0\n", "not gloved"),
    ],
)
def test_ends_at_what_spoils_the_figures(reply: bytes, message: str) -> None:
    with serving(script(lambda line: reply)) as server:
        done = evaluate(server.socket, "analogies", "-", stdin=": s\na b c d\n")
    assert (done.status, done.out) == (1, "")
    assert message in done.err


def test_outlasts_a_busy_daemon_when_told() -> None:
    asked: Dict[str, int] = {"times": 0}

    def answer(line: bytes) -> bytes:
        asked["times"] += 1
        busy = b'{"ok":false,"code":"busy","message":""}\n'
        return busy if asked["times"] <= 2 else hits("d")

    file = ": s\na b c d\na b c e\n"
    with serving(script(answer)) as server:
        done = evaluate(server.socket, "analogies", "-", stdin=file)
        assert (done.status, done.err) == (1, "python3 -m gloved: busy: \n")
        done = evaluate(server.socket, "--retry", "20", "analogies", "-", stdin=file)
    assert "s\tsemantic\t1\t2\t0\t50.00\n" in done.out


@pytest.mark.parametrize("seconds, retries", [(0, 0), (0.001, 1), (1, 7), (1.3, 8), (20, 26)])
def test_seconds_of_retries(seconds: float, retries: int) -> None:
    assert _retry.retries_within(seconds) == retries


def test_takes_the_most_frequent_spelling(serve_text: Callable[[bytes], Daemon]) -> None:
    socket = serve_text(b"x 1 0\noslo 0.6 0.8\nOslo 0 1\nOSLO -1 0\n").socket
    for options, cosines in (
        ([], ["0.600000", "0.600000"]),
        (["--top", "2"], ["0.600000", "0.600000"]),
        (["--case", "exact"], ["-1.000000", "0.000000"]),
    ):
        done = evaluate(socket, *options, "--questions", "pairs", "-", stdin="OSLO x 1\nOslo x 2\n")
        assert [line.split("\t")[3] for line in done.out.splitlines()[1:]] == cosines
    done = evaluate(socket, "--case", "exact", "--top", "2", "pairs", "-", stdin="OSLO x 1\n")
    assert "nothing to ask" in done.err


def test_long_words_are_asked_for_in_several_requests(daemon: Daemon) -> None:
    # A control byte is four bytes of a request.
    stdin = "".join("\1" * 4090 + f"{number} king 1\n" for number in range(40))
    assert "nothing to ask: each of 40 pairs" in evaluate(
        daemon.socket, "pairs", "-", stdin=stdin
    ).err


@pytest.mark.parametrize("single_query_us, ahead", [(0, 64), (100, 256), (100_000, 30), (1e7, 4)])
def test_fewer_searches_are_sent_ahead_to_a_slow_daemon(single_query_us: float, ahead: int) -> None:
    def answer(peer: Peer) -> None:
        while peer.line():
            peer.send(ok([{"single_query_us": single_query_us}]))

    with serving(answer) as server, gloved.Client(server.socket) as client:
        assert _eval._searches_ahead(client) == ahead
        opened = _connection.Connection(server.socket, None, 1.0)
        opened._take_requests(_retry.Asked(iter([gloved.requests.ping()] * 300), ahead))
        assert len(opened.conversation.unanswered) == ahead
        opened.close()
