"""Files of words, questions and pairs as editors and other systems write them."""

from __future__ import annotations

import gzip
import os
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
from conftest import Daemon, run_command

import gloved
from gloved import KeyedVectors, _evaluation
from gloved._command import Fault, words_of_file
from gloved._lines import lines_of

MARK = b"\xef\xbb\xbf"


@pytest.fixture(scope="module")
def kv(daemon: Daemon) -> Iterator[KeyedVectors]:
    with gloved.connect(daemon.socket) as opened:
        yield opened


PAIRS = b"king\tqueen\t9.5\nking\tpiano\t1\nsnake\tcat\t7.5\n"
QUESTIONS = b": family\nman king woman queen\n: capitals\nfrance paris germany berlin\n"
SAME: Dict[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda data: MARK + data,
    "CR LF": lambda data: data.replace(b"\n", b"\r\n"),
    "no final newline": lambda data: data[:-1],
    "mark, CR LF, no end": lambda data: MARK + data.replace(b"\n", b"\r\n")[:-2],
    "blank lines": lambda data: data.replace(b"\n", b"\n\n"),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_the_same_text_in_another_form(
    kv: KeyedVectors, change: Callable[[bytes], bytes], tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "file"
    path.write_bytes(PAIRS)
    pairs = kv.evaluate_word_pairs(path)
    path.write_bytes(change(PAIRS))
    assert kv.evaluate_word_pairs(path) == pairs
    path.write_bytes(change(QUESTIONS))
    share, sections = kv.evaluate_word_analogies(path)
    assert share == 1 and [each["section"] for each in sections][:2] == ["family", "capitals"]
    assert not caplog.records


def test_utf_16_is_read_where_it_is_named(kv: KeyedVectors, tmp_path: Path) -> None:
    path = tmp_path / "pairs"
    path.write_bytes(PAIRS)
    expected = kv.evaluate_word_pairs(path)
    for encoding in "utf-16", "utf-16-le", "UTF-8-SIG", "utf-32":
        path.write_bytes(PAIRS.decode().encode(encoding))
        assert kv.evaluate_word_pairs(path, encoding=encoding) == expected
    path.write_bytes("Äther\tÖl\t3\nking\tqueen\t2\nking\tpiano\t1\n".encode("latin-1"))
    assert kv.evaluate_word_pairs(path, encoding="latin-1")[2] == pytest.approx(100 / 3)


WRONG = {
    "UTF-16": (QUESTIONS.decode().encode("utf-16"), "UTF-16.*iconv"),
    "UTF-16 without a mark": (QUESTIONS.decode().encode("utf-16-le"), "line 1 .*NUL"),
    "NUL": (QUESTIONS + b"a b\0 c d\n", "line 5 .*NUL"),
    "not UTF-8": (QUESTIONS + b"caf\xe9 b c d\n", "line 5 is not utf-8"),
    "a long line": (QUESTIONS + b"x" * 10_000_000, "line 5 has more than 1,048,576 bytes"),
}


@pytest.mark.parametrize("data, message", WRONG.values(), ids=WRONG)
def test_what_cannot_be_read_names_file_and_line(
    kv: KeyedVectors, data: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "questions"
    path.write_bytes(data)
    calls: List[Callable[[], Any]] = [
        lambda: kv.evaluate_word_analogies(path),
        lambda: kv.evaluate_word_pairs(path, encoding="utf-8"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"{path}.*{message}"):
            call()


def test_a_cut_archive_names_file_and_line(kv: KeyedVectors, tmp_path: Path) -> None:
    path = tmp_path / "questions.gz"
    path.write_bytes(gzip.compress(QUESTIONS)[:-12])
    with pytest.raises(ValueError, match=f"{path}: line [0-9]+: "):
        kv.evaluate_word_analogies(path)


def test_lines_of_another_form_are_told(
    kv: KeyedVectors, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"# a comment\nWord 1\tWord 2\tScore\n" + PAIRS + b"no score\tat all\n")
    kv.evaluate_word_pairs(path)
    path.write_bytes(QUESTIONS + b"three words only\n")
    kv.evaluate_word_analogies(path)
    told = [record.getMessage() for record in caplog.records]
    assert "2 lines" in told[0] and "line 2" in told[0]
    assert "1 lines" in told[1] and "line 5" in told[1]


def test_another_delimiter_is_named(kv: KeyedVectors, tmp_path: Path) -> None:
    path = tmp_path / "pairs"
    path.write_bytes(PAIRS.replace(b"\t", b" "))
    with pytest.raises(ValueError, match=f"{path}: line 1 .*delimiter=.*king queen 9.5"):
        kv.evaluate_word_pairs(path)
    assert kv.evaluate_word_pairs(path, delimiter=" ")[2] == 0
    with pytest.raises(ValueError, match="delimiter"):
        kv.evaluate_word_pairs(path, delimiter="")


def test_a_pipe_is_read_once(kv: KeyedVectors, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=(QUESTIONS,))
    thread.start()
    assert kv.evaluate_word_analogies(path)[0] == 1
    thread.join()


def test_lines_of_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_bytes(MARK + b"caf\xe9\r\n\xef\xbb\xbfb")
    with path.open("rb") as file:
        found = list(lines_of(file, "words", errors="surrogateescape"))
    # A mark is one at the beginning alone.
    assert found == [(1, "caf\udce9"), (2, "\ufeffb")]


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_plot_reads_words(
    daemon: Daemon, change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "words").write_bytes(change(b"king\nqueen\nsnake\n"))
    done = run_command(
        "plot", "--socket", daemon.socket, "--words", str(tmp_path / "words"),
        "--tsv", str(tmp_path / "tables"),
    )
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "tables" / "metadata.tsv").read_text().split("\n")
    assert [row.split("\t")[0] for row in table[1:4]] == ["king", "queen", "snake"]


def test_plot_names_the_line_of_an_unknown_word(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "words"
    for data, told in {
        b"king\n\nKingg\n": b"line 3: \"Kingg\" is not in the model",
        b"king\nque\0en\n": b"line 2 has a NUL",
        "king\nqueen\n".encode("utf-16"): b"is UTF-16",
        b"king\n" + b"x" * 2_000_000: b"line 2 has more than",
        b"king\n" + b"x" * 100_000: b"a word",
    }.items():
        path.write_bytes(data)
        done = run_command(
            "plot", "--socket", daemon.socket, "--words", str(path),
            "--tsv", str(tmp_path / "tables"),
        )
        assert done.returncode == 1 and told in done.stderr, done.stderr


def test_a_file_of_words_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Fault, match="stdin is closed"):
        words_of_file("-")
    with pytest.raises(Fault, match="/proc/self/mem: cannot read: Input/output error"):
        words_of_file("/proc/self/mem")


def test_plot_takes_more_words_than_a_request_has(daemon: Daemon, tmp_path: Path) -> None:
    with gloved.connect(daemon.socket) as vectors:
        words = vectors.index_to_key[:9_000]
    path = tmp_path / "words"
    path.write_text("\n".join(words), errors="surrogateescape")
    done = run_command(
        "plot", "--socket", daemon.socket, "--words", str(path), "--tsv", str(tmp_path / "tables")
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "tables" / "vectors.tsv").read_text().splitlines()) == 9_000


def test_a_file_of_questions_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(MARK)
    assert list(_evaluation.analogies(path, True)) == []
    assert _evaluation.pairs(path, "\t", "utf8", True) == []
