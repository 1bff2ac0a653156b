"""python3 -m gloved plot: what it draws, that it draws the same twice, and what it refuses."""

from __future__ import annotations

import csv
import io
import struct
import subprocess
import xml.etree.ElementTree as xml
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

import gloved
from conftest import REPOSITORY, Daemon, run_command, run_process
from gloved_explore import neighborhood, picture, projection

numpy = pytest.importorskip("numpy", reason="plot needs numpy (package python3-numpy)")
pytest.importorskip("matplotlib", reason="plot needs matplotlib (package python3-matplotlib)")

ODD_TEXT = b"""\
the 1 0 0 1
<script>alert(1)</script> 0.9 0.1 0 1
$x^2$ 0 1 0 1
caf\xe9 0.1 1 0 0
\x01\x1b[31m 0 1 0.2 0
\xe6\xbc\xa2\xe5\xad\x97 0 0 1 0
&amp; 0.5 0.5 0.5 0
]]> 0.5 0.4 0.5 0
"""


def plot(
    daemon: Daemon, *options: str, stdin: bytes = b"", cwd: Path = REPOSITORY
) -> subprocess.CompletedProcess[bytes]:
    return run_command("plot", "--socket", daemon.socket, *options, stdin=stdin, cwd=cwd)


def refused(done: subprocess.CompletedProcess[bytes], message: str, status: int = 1) -> bool:
    assert done.returncode == status, done.stderr
    assert message in done.stderr.decode(), done.stderr
    return True


def texts_of(svg: bytes) -> List[str]:
    tag = "{http://www.w3.org/2000/svg}text"
    return ["".join(each.itertext()).strip() for each in xml.fromstring(svg).iter(tag)]


def test_draws_words_and_their_neighbors(
    daemon: Daemon, client: gloved.Client, tmp_path: Path
) -> None:
    path = tmp_path / "words.svg"
    done = plot(daemon, "king", "snake", "-k", "5", "-o", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    texts = texts_of(path.read_bytes())
    wanted = ["king", "snake"]
    for word in ("king", "snake"):
        wanted += [each.word for each in client.near(word, k=5)]
    assert sorted(each for each in texts if each in set(wanted)) == sorted(set(wanted))
    assert "Nearest words of king, snake" in texts
    caption = next(each for each in texts if "principal components" in each)
    assert client.near("king").info.generation in caption


@pytest.mark.parametrize("form", ["svg", "png", "pdf", "html", "csv"])
def test_the_same_words_give_the_same_bytes(daemon: Daemon, tmp_path: Path, form: str) -> None:
    arguments = ("--socket", daemon.socket, "king", "paris", "-k", "7")
    arguments += ("--analogy", "man", "king", "woman")
    pictures = []
    for name, run in ("a", run_process), ("b", run_command):
        path = tmp_path / f"{name}.{form}"
        assert run("plot", *arguments, "-o", str(path)).returncode == 0
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1]
    assert str(tmp_path).encode() not in pictures[0]
    if form == "png":
        assert pictures[0].startswith(b"\x89PNG")
        assert struct.unpack(">II", pictures[0][16:24]) == (1080, 840)
    if form == "pdf":
        assert pictures[0].startswith(b"%PDF-")
        assert b"/TrueType" in pictures[0] or b"/CIDFontType2" in pictures[0]
        assert b"/Type3" not in pictures[0]


def test_coordinates_are_those_of_the_picture(
    client: gloved.Client, daemon: Daemon, tmp_path: Path
) -> None:
    path = tmp_path / "places.csv"
    assert plot(daemon, "king", "snake", "-k", "4", "-o", str(path)).returncode == 0
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["word", "rank", "asked", "x", "y"]
    found = neighborhood.gather(client, ["king", "snake"], k=4)
    points = projection.by_components(found.vectors).points
    assert len(rows) == len(found.places) == 10
    for row, place, point in zip(rows, found.places, points):
        assert row[:3] == [place.word, str(place.rank), "yes" if place.is_asked else "no"]
        assert [float(each) for each in row[3:]] == pytest.approx(point.tolist(), abs=1e-9)


def test_analogies_are_arrows_to_their_answers(client: gloved.Client) -> None:
    found = neighborhood.gather(
        client, [], analogies=[("man", "king", "woman"), ("france", "paris", "italy")]
    )
    words = [place.word for place in found.places]
    assert words == ["man", "king", "woman", "queen", "france", "paris", "italy", "rome"]
    assert found.arrows == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert [place.group for place in found.places] == [0] * 4 + [1] * 4
    assert found.links == []


def test_words_come_once(client: gloved.Client) -> None:
    found = neighborhood.gather(
        client, ["king", "queen", "king"], k=10, extra=["snake", "queen", "son"]
    )
    words = [place.word for place in found.places]
    assert len(words) == len(set(words))
    # The neighbours of both belong to the first that has them.
    queen = words.index("queen")
    assert found.places[queen].is_asked and found.places[queen].group == 1
    prince = words.index("prince")
    assert [asked for asked, other, _ in found.links if other == prince] == [0, queen]
    assert found.places[prince].group == 0
    assert found.places[words.index("snake")].group == -1
    # A neighbour that is asked for too.
    son = found.places[words.index("son")]
    assert son.is_asked and son.group == 0
    assert len(found.links) == 20 and found.vectors.shape == (len(words), 100)
    assert found.places[0].rank == 654


@pytest.mark.parametrize("chunk_rows", [7, 1000])
def test_components_are_those_of_the_covariance(
    monkeypatch: pytest.MonkeyPatch, chunk_rows: int
) -> None:
    monkeypatch.setattr(projection, "_CHUNK_ROWS", chunk_rows)
    random = numpy.random.default_rng(3)
    vectors = random.normal(size=(40, 12)) * numpy.linspace(3, 0.2, 12)
    found = projection.by_components(vectors)
    rows = vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)
    values, axes = numpy.linalg.eigh(numpy.cov(rows.T))
    for place in range(2):
        axis = axes[:, -1 - place]
        expected = (rows - rows.mean(axis=0)) @ axis
        expected *= numpy.sign(axis[numpy.argmax(numpy.abs(axis))])
        assert numpy.allclose(found.points[:, place], expected, atol=1e-9)
    share = 100 * values[-1] / values.sum()
    assert f"explain {share:.0f} % and" in found.caption


@pytest.mark.parametrize("count", [1, 2])
def test_few_words_are_drawn_too(daemon: Daemon, tmp_path: Path, count: int) -> None:
    path = tmp_path / "few.svg"
    words = ["king", "queen"][:count]
    assert plot(daemon, *words, "-k", "0", "-o", str(path)).returncode == 0
    assert set(words) <= set(texts_of(path.read_bytes()))


def test_labels_cover_each_other_as_little_as_may_be(client: gloved.Client) -> None:
    found = neighborhood.gather(client, ["king", "paris", "snake"], k=10)
    places = projection.by_components(found.vectors)
    drawing = picture._Drawing(found, places, "")
    drawing.draw()
    labels = [each for each in drawing._axes.texts if each.get_text()]
    assert len(labels) == len(found.places)
    boxes = [each.get_window_extent(drawing._renderer) for each in labels]
    covered = sum(
        a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1
        for i, a in enumerate(boxes)
        for b in boxes[:i]
    )
    assert covered == 0


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: List[str] = []
        self.addresses: List[Tuple[str, Any]] = []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        self.addresses += [each for each in attributes if each[0] in ("src", "href")]


def test_odd_words_are_text(serve_text: Callable[[bytes], Daemon], tmp_path: Path) -> None:
    daemon = serve_text(ODD_TEXT)
    for form in ("svg", "html", "png", "pdf", "csv"):
        done = plot(daemon, "the", "-k", "7", "-o", str(tmp_path / f"odd.{form}"))
        assert (done.returncode, done.stderr) == (0, b"")
    texts = texts_of((tmp_path / "odd.svg").read_bytes())
    for word in ("<script>alert(1)</script>", "$x^2$", "caf\\xe9", "漢字", "&amp;", "]]>"):
        assert word in texts
    assert "\\x01\\x1b[31m" in texts
    tags = _Tags()
    tags.feed((tmp_path / "odd.html").read_text(encoding="utf-8"))
    assert "script" not in tags.tags and "svg" in tags.tags and tags.tags.count("tr") == 8
    places = (tmp_path / "odd.csv").read_bytes().decode("utf-8", "surrogateescape")
    words = [row["word"] for row in csv.DictReader(io.StringIO(places, newline=""))]
    assert set(words) >= {"caf\udce9", "\x01\x1b[31m", "漢字"}
    # Nothing is loaded from elsewhere.
    assert all(str(value).startswith("#") for _, value in tags.addresses)


def test_files_for_a_projector(daemon: Daemon, client: gloved.Client, tmp_path: Path) -> None:
    directory = tmp_path / "new" / "projector"
    assert plot(daemon, "king", "-k", "3", "--tsv", str(directory)).returncode == 0
    rows = (directory / "vectors.tsv").read_text().splitlines()
    header, *metadata = (directory / "metadata.tsv").read_text().splitlines()
    assert header == "word\trank\tasked"
    words = [line.split("\t")[0] for line in metadata]
    assert words == ["king"] + [each.word for each in client.near("king", k=3)]
    assert metadata[0] == "king\t654\tyes" and metadata[1].endswith("\tno")
    read = numpy.array([line.split("\t") for line in rows], dtype="f4")
    assert numpy.array_equal(read, client.vec(words))
    # Its own files it overwrites.
    assert plot(daemon, "snake", "-k", "1", "--tsv", str(directory)).returncode == 0
    assert (directory / "metadata.tsv").read_text().splitlines()[1].startswith("snake\t")


def test_words_of_a_file(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"fish\r\n\nsnake\n")
    path = tmp_path / "words.svg"
    assert plot(daemon, "--words", str(tmp_path / "words"), "-o", str(path)).returncode == 0
    assert {"fish", "snake", "2 words"} <= set(texts_of(path.read_bytes()))
    assert plot(daemon, "--words", "-", "-o", str(path), stdin=b"king\n").returncode == 0
    assert "king" in texts_of(path.read_bytes())


def test_words_may_be_looked_up_leniently(daemon: Daemon, tmp_path: Path) -> None:
    path = str(tmp_path / "words.svg")
    done = plot(daemon, "King", "qwfp", "--case", "ignore", "--unknown", "skip", "-o", path)
    assert done.returncode == 0
    assert done.stderr.decode().splitlines() == [
        'python3 -m gloved: not in the model and left out: "qwfp"',
        'python3 -m gloved: taken in another case or Unicode form: "King" ("king")',
    ]
    # More than a reply tells of.
    with gloved.connect(daemon.socket) as vectors:
        words = [word for word in vectors.index_to_key[:300] if word.isalpha()]
    (tmp_path / "words").write_text("\n".join(words).upper())
    many = ("--words", str(tmp_path / "words"), "-k", "0", "--case", "ignore")
    done = plot(daemon, *many, "-o", str(tmp_path / "words.csv"))
    assert done.returncode == 0, done.stderr
    drawn = (tmp_path / "words.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in drawn] == words
    refused(plot(daemon, "Kingg", "-o", path), '"Kingg" is not in the model; near to it: "king"')
    refused(plot(daemon, "qwfp", "--unknown", "skip", "-o", path), "there is no word to draw")


def test_the_daemon_may_skip_unknown_words(
    serve: Callable[..., Daemon], model_dir: Path, tmp_path: Path
) -> None:
    lenient = serve("--model", str(model_dir), "--unknown", "skip")
    path = str(tmp_path / "words.csv")
    done = plot(lenient, "king", "qwfp", "-o", path)
    assert (done.returncode, b'not in the model and left out: "qwfp"' in done.stderr) == (0, True)
    strict = plot(lenient, "king", "qwfp", "--unknown", "error", "-o", path)
    refused(strict, '"qwfp" is not in the model')


@pytest.mark.parametrize("form", ["svg", "pdf", "csv"])
def test_files_of_others_stay(daemon: Daemon, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"mine.{form}"
    path.write_text("mine")
    refused(plot(daemon, "king", "-o", str(path)), "is not a file that this command made")
    assert path.read_text() == "mine"
    assert plot(daemon, "king", "-o", str(path), "--force").returncode == 0
    made = path.read_bytes()
    assert plot(daemon, "snake", "-o", str(path)).returncode == 0
    assert b"mine" != made != path.read_bytes()


def test_tables_of_others_stay(daemon: Daemon, tmp_path: Path) -> None:
    for name in ("vectors.tsv", "metadata.tsv"):
        directory = tmp_path / name.split(".")[0]
        directory.mkdir()
        (directory / name).write_text("mine\n")
        done = plot(daemon, "king", "--tsv", str(directory))
        refused(done, "is not a file that this command made")
        assert [each.name for each in directory.iterdir()] == [name]
        assert (directory / name).read_text() == "mine\n"


def test_long_words_are_shortened(
    serve_text: Callable[[bytes], Daemon], tmp_path: Path
) -> None:
    long = "x" * 5_000
    daemon = serve_text(f"king 1 2\nqueen 2 1\n{long} 1 1\n".encode())
    for form in "png", "svg":
        assert plot(daemon, long, "king", "-o", str(tmp_path / f"a.{form}")).returncode == 0
    texts = texts_of((tmp_path / "a.svg").read_bytes())
    assert "x" * 59 + "…" in texts and max(map(len, texts)) < 200


def test_refuses_what_it_cannot_do(daemon: Daemon, tmp_path: Path) -> None:
    path = str(tmp_path / "x.svg")
    refused(plot(daemon, "king"), "nothing to write: name a file with -o")
    refused(plot(daemon, "-o", path), "no word to draw")
    refused(plot(daemon, "king", "-o", str(tmp_path / "x.gif")), ".svg, .png, .pdf, .html or .csv")
    no_directory = tmp_path / "no" / "x.svg"
    told = f"{no_directory}: cannot write: No such file"
    refused(plot(daemon, "king", "-o", str(no_directory)), told)
    refused(plot(daemon, "--words", str(tmp_path / "no"), "-o", path), "No such file")
    refused(plot(daemon, "king", "--model", "none", "-o", path), 'no model "none" here')
    refused(plot(daemon, "king", "--analogy", "a", "b", "-o", path), "expected 3", status=2)
    assert list(tmp_path.iterdir()) == []


def test_tsne_is_the_same_for_a_seed(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "tsne.svg"
    done = plot(daemon, "king", "--method", "tsne", "--seed", "7", "-o", str(path))
    try:
        import sklearn  # noqa: F401
    except ImportError:
        refused(done, "--method tsne needs sklearn (package python3-sklearn)")
        return
    assert done.returncode == 0, done.stderr
    first = path.read_bytes()
    assert any("t-SNE of unit vectors" in each for each in texts_of(first))
    assert plot(
        daemon, "king", "--method", "tsne", "--seed", "7", "-o", str(path)
    ).returncode == 0
    assert path.read_bytes() == first


def test_the_pictures_of_the_guide_are_what_it_says(daemon: Daemon, tmp_path: Path) -> None:
    """The commands that docs/pictures.md shows make the pictures beside it, but for the fonts."""
    page = (REPOSITORY / "docs" / "pictures.md").read_text(encoding="utf-8")
    commands: Dict[str, List[str]] = {}
    for line in page.splitlines():
        words = line.split()
        if words[:4] == ["python3", "-m", "gloved", "plot"] and words[-1].startswith("plot-"):
            commands[words[-1]] = words[4:]
    assert sorted(commands) == ["plot-analogies.svg", "plot-words.svg"]
    for name, arguments in commands.items():
        assert plot(daemon, *arguments, cwd=tmp_path).returncode == 0
        made = texts_of((tmp_path / name).read_bytes())
        shown = texts_of((REPOSITORY / "docs" / name).read_bytes())
        # The daemon of the tests calls its model by another name.
        assert [each for each in made if "principal" not in each] == [
            each for each in shown if "principal" not in each
        ]
