"""python3 -m gloved weat, similarity and density, against sums made here by numpy."""

from __future__ import annotations

import csv
import io
import itertools
import json
import statistics
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

import gloved
from conftest import Daemon, run_command, run_process
from weat_words import PUBLISHED

numpy = pytest.importorskip("numpy", reason="needs numpy (package python3-numpy)")

SETS = PUBLISHED["flowers and insects"].sets

ODD_TEXT = b'king 1 0 2\n"q",r 0 1 1\ncaf\xe9 1 1 0\nzero 0 0 0\nqueen 1 0.5 2\n'


def ask(daemon: Daemon, command: str, *options: str, **more: Any) -> Any:
    """What a command prints as JSON."""
    done = run_command(command, "--socket", daemon.socket, "--format", "json", *options, **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(daemon: Daemon, command: str, *options: str) -> str:
    done = run_command(command, "--socket", daemon.socket, *options)
    assert (done.returncode, done.stdout) == (1, b"")
    return done.stderr.decode()


def options_of(sets: Dict[str, List[str]]) -> List[str]:
    return [word for name, words in sets.items() for word in (f"--{name}", *words)]


@pytest.fixture
def garden(serve_text: Callable[[bytes], Daemon]) -> Daemon:
    """All words of the test, with vectors that lean to pleasant or unpleasant ones a little."""
    drawn = numpy.random.default_rng(7)
    lines = []
    for name, words in SETS.items():
        lean = {"x": 0.1, "a": 0.3, "y": -0.1, "b": -0.3}[name]
        for word in words:
            numbers = drawn.normal(size=20) + lean
            lines.append(" ".join([word, *(f"{each:.5f}" for each in numbers)]))
    return serve_text(("\n".join(lines) + "\n").encode())


def associations(daemon: Daemon, sets: Dict[str, List[str]]) -> List[Any]:
    """s of the words of X, and of Y, by the formula."""
    with gloved.Client(daemon.socket) as client:
        x, y, a, b = (client.vec(words).astype(numpy.float64) for words in sets.values())
    x, y, a, b = (each / numpy.linalg.norm(each, axis=1, keepdims=True) for each in (x, y, a, b))
    return [(of @ a.T).mean(axis=1) - (of @ b.T).mean(axis=1) for of in (x, y)]


def effect_size(x: Any, y: Any) -> float:
    return float((x.mean() - y.mean()) / numpy.concatenate([x, y]).std(ddof=1))


def test_weat_over_all_divisions(garden: Daemon) -> None:
    sets = {**SETS, "x": SETS["x"][:7], "y": SETS["y"][:6]}
    answer = ask(garden, "weat", *options_of(sets))
    (row,) = answer["results"]
    x, y = associations(garden, sets)
    every = numpy.concatenate([x, y])
    assert row["effect_size"] == pytest.approx(effect_size(x, y), abs=1e-9)
    assert row["statistic"] == pytest.approx(x.sum() - y.sum(), abs=1e-9)
    sums = numpy.array([every[list(half)].sum() for half in itertools.combinations(range(13), 7)])
    assert row["divisions"] == len(sums) == 1716
    assert row["p"] == (sums > x.sum() + 1e-12).mean() > 0
    assert [row[name] for name in SETS] == [7, 6, 25, 25]
    with gloved.Client(garden.socket) as client:
        assert answer["generation"] == client.models()[0].generation


def test_weat_over_random_divisions(garden: Daemon) -> None:
    x, y = associations(garden, SETS)
    every = numpy.concatenate([x, y])

    def figures(*options: str) -> Dict[str, Any]:
        (row,) = ask(garden, "weat", *options_of(SETS), "--samples", "20000", *options)["results"]
        return row  # type: ignore[no-any-return]

    row = figures()
    assert row["effect_size"] == pytest.approx(effect_size(x, y), abs=1e-9)
    drawn = numpy.random.default_rng(3)
    sums = numpy.array([drawn.permutation(every)[: len(x)].sum() for _ in range(20000)])
    assert row["divisions"] == 20000
    # Five standard deviations of the difference of two such shares.
    expected = (sums > x.sum()).mean()
    assert 0 < expected and abs(row["p"] - expected) < 5 * (2 * expected / 20000) ** 0.5
    assert figures() == row != figures("--seed", "2")


# How many words of each set the sample has.
KNOWN = {
    "flowers and insects": [1, 4, 19, 18],
    "instruments and weapons": [5, 12, 19, 18],
    "mathematics and arts": [3, 8, 8, 7],
    "science and arts": [6, 8, 8, 7],
}


@pytest.mark.parametrize("test", PUBLISHED)
def test_weat_of_real_words(daemon: Daemon, tmp_path: Path, test: str) -> None:
    published = PUBLISHED[test].sets
    for name, words in published.items():
        (tmp_path / name).write_text("\n".join(words) + "\n\n")
    files = [option for name in published for option in (f"--{name}-file", str(tmp_path / name))]
    assert "not in the model: " in refusal(daemon, "weat", *files)
    answer = ask(daemon, "weat", *files, "--unknown", "skip")
    every = [word for words in published.values() for word in words]
    with gloved.Client(daemon.socket) as client:
        known = {word: client.has([word])[0].known for word in every}
    sets = {name: [word for word in words if known[word]] for name, words in published.items()}
    assert answer["skipped"] == [word for word in known if not known[word]]
    x, y = associations(daemon, sets)
    (row,) = answer["results"]
    assert row["effect_size"] == pytest.approx(effect_size(x, y), abs=1e-9)
    assert [row[each] for each in sets] == KNOWN[test]


def test_similarity_is_the_mean_cosine(daemon: Daemon) -> None:
    a, b = ["king", "queen", "piano"], ["man", "woman", "king", "snake"]
    answer = ask(daemon, "similarity", "--a", *a, "king", "--b", *b[:2], "--b", *b[2:])
    with gloved.Client(daemon.socket) as client:
        cosines = numpy.array(client.matrix([*a, *b]))[: len(a), len(a) :]
    (row,) = answer["results"]
    assert row == {"mean_cosine": pytest.approx(cosines.mean(), abs=1e-9), "a": 3, "b": 4}


def test_density_is_the_mean_cosine_to_the_nearest(
    serve: Callable[..., Daemon], own_model_dir: Path, bin_dir: Path, tmp_path: Path
) -> None:
    subprocess.run([bin_dir / "gloved-neighbors", own_model_dir], check=True, capture_output=True)
    daemon = serve("--model", str(own_model_dir))
    (tmp_path / "words").write_bytes(b"snake\r\n\nking\nmonday\n")
    answer = ask(daemon, "density", "king", "--words", str(tmp_path / "words"), "-k", "7")
    with gloved.connect(daemon.socket) as kv:
        assert kv.client.stats()["answers_neighbors"] == 3
        for row, word in zip(answer["results"], ("king", "snake", "monday")):
            mean = sum(score for _, score in kv.most_similar(word, topn=7)) / 7
            assert row == {"word": word, "density": pytest.approx(mean, abs=1e-12), "neighbours": 7}
    assert len(answer["results"]) == 3


@pytest.mark.parametrize("heading", ["word", "Words"])
def test_a_heading_counts_as_a_word_and_is_told(
    daemon: Daemon, tmp_path: Path, heading: str
) -> None:
    path = tmp_path / "words"
    path.write_bytes(b"\xef\xbb\xbf%s\r\nking\r\nqueen\r\n" % heading.encode())
    to_set = ("--socket", daemon.socket, "--a-file", str(path), "--b", "man", "--case", "ignore")
    done = run_command("similarity", *to_set)
    assert done.stdout.split()[-2:] == [b"3", b"1"]
    told = f'{path}: line 1: "{heading}" is taken for a word; if it is a heading, remove it'
    assert told in done.stderr.decode()
    path.write_bytes(b"king\nword\n")
    assert run_command("similarity", *to_set).stderr == b""


def test_unknown_words_of_a_file_in_latin_1_are_told(daemon: Daemon) -> None:
    words = "king\nKöln\n".encode("latin-1")
    for lenient in (), ("--unknown", "skip"):
        options = ("--socket", daemon.socket, "--words", "-", *lenient)
        told = run_command("density", *options, stdin=words).stderr.decode()
        assert '"K\\xf6ln"; \\xHH is not UTF-8: convert a file with `iconv -f LATIN1' in told
    assert "UTF-8" not in refusal(daemon, "density", "Köln")


def test_words_in_another_case(daemon: Daemon) -> None:
    """A reply tells of 64 replaced words: more are asked in smaller requests."""
    with gloved.connect(daemon.socket) as kv:
        typed = [word.upper() for word in kv.index_to_key[:300] if word.isalpha()]
        expected = [kv.most_similar(word.lower(), topn=2) for word in typed]
    lenient = ("--case", "ignore", "--unknown", "skip", "-k", "2")
    answer = ask(daemon, "density", *typed, "qwfp", "king", *lenient)
    assert answer["replaced"] == [{"word": word, "by": word.lower()} for word in typed]
    assert answer["skipped"] == ["qwfp"]
    assert [row["word"] for row in answer["results"]] == [*typed, "qwfp", "king"]
    for row, near in zip(answer["results"], expected):
        mean = statistics.fmean(score for _, score in near)
        assert row["density"] == pytest.approx(mean, abs=1e-12)
    assert answer["results"][-2] == {"word": "qwfp", "density": None, "neighbours": None}
    sets = {"a": ["King", "king", "Queen"], "b": ["man"]}
    upper = ask(daemon, "similarity", *options_of(sets), "--case", "ignore")
    lower = ask(daemon, "similarity", *options_of({"a": ["king", "queen"], "b": ["man"]}))
    assert upper["results"] == lower["results"]


def test_forms_hold_odd_words(serve_text: Callable[[bytes], Daemon]) -> None:
    daemon = serve_text(ODD_TEXT)
    words = ["king", '"q",r', "caf\udce9", "zero"]
    with gloved.connect(daemon.socket) as kv:
        means = [
            statistics.fmean(score for _, score in kv.most_similar(word)) for word in words[:3]
        ]

    def density(form: str) -> str:
        stdin = "\n".join(words).encode("utf-8", "surrogateescape")
        options = ("--socket", daemon.socket, "--format", form, "--words", "-")
        done = run_command("density", *options, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode("utf-8", "surrogateescape")

    expected = [[word, repr(mean), "4"] for word, mean in zip(words, means)]
    head, *rows = csv.reader(io.StringIO(density("csv")))
    assert head == ["word", "density", "neighbours"]
    assert rows == [*expected, ["zero", "", "0"]]
    assert '"""q"",r"' in density("csv") and "\r" not in density("csv")
    lines = [line.split("\t") for line in density("tsv").splitlines()]
    assert lines == [head, *expected, ["zero", "-", "0"]]
    assert [line.split()[0] for line in density("text").splitlines()] == ["word", *words]
    assert f"{means[0]:.6f}" in density("text")
    assert "word" in json.loads(density("json"))["results"][2]


def test_a_word_of_the_command_line_stays_in_its_cell(daemon: Daemon) -> None:
    words = ["king", "a\tb\nc"]
    for form, line in {"tsv": b"a b c\t-\t-", "text": b"a b c  -         -"}.items():
        options = ("--socket", daemon.socket, "--unknown", "skip", "--format", form)
        assert run_command("density", *words, *options).stdout.splitlines()[2:] == [line]


def test_refusals(daemon: Daemon, garden: Daemon, tmp_path: Path) -> None:
    assert "set b has no word: use --b or --b-file" in refusal(daemon, "similarity", "--a", "king")
    assert "there is no word" in refusal(daemon, "density")
    done = run_command("similarity", "--socket", daemon.socket, "king", "queen")
    assert (done.returncode, done.stderr.decode()) == (
        2,
        "python3 -m gloved: unrecognized arguments: king queen; see python3 -m gloved similarity"
        " --help\n",
    )
    unknown = refusal(daemon, "density", "king", "qwfp", " King")
    assert 'not in the model: "qwfp", " King"; --unknown skip leaves such words out' in unknown
    assert unknown.endswith(", --case ignore finds them in another case\n")
    assert "--case" not in refusal(daemon, "density", "qwfp", "--case", "ignore")
    none = refusal(daemon, "similarity", "--a", "king", "--b", "qwfp", "--unknown", "skip")
    assert 'the model has no word of the set "qwfp"' in none
    assert "one set alone" in refusal(daemon, "similarity", "--a-file", "-", "--b-file", "-")
    assert "missing" in refusal(daemon, "density", "--words", str(tmp_path / "missing"))
    alike = options_of({"x": ["rose"], "y": ["rose"], "a": SETS["a"], "b": SETS["b"]})
    assert "same association" in refusal(garden, "weat", *alike)


@pytest.mark.parametrize("command", ["weat", "similarity", "density"])
def test_help_has_an_example(command: str) -> None:
    done = run_process(command, "--help")
    assert f"  python3 -m gloved {command} " in done.stdout.decode()
