"""python3 -m gloved map: its lines, its places, and what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, List

import pytest

import gloved
from conftest import Daemon, run_command, run_process
from gloved import __main__
from gloved_explore import word_map

numpy = pytest.importorskip("numpy", reason="map needs numpy (package python3-numpy)")


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def draw_map(daemon: Daemon, *options: str) -> Done:
    done = run_command("map", "--socket", daemon.socket, *options)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def read(path: Path) -> List[Any]:
    # As embedding-atlas's documentation has it: one JSON object a line.
    return [json.loads(line) for line in path.read_bytes().decode().splitlines()]


@pytest.fixture(scope="module")
def stored(
    bin_dir: Path, convert: Callable[[Path, Path], Path], serve_all: Callable[..., Daemon],
    tmp_path_factory: pytest.TempPathFactory,
) -> Daemon:
    """A daemon with a small model that has stored neighbours."""
    work = tmp_path_factory.mktemp("stored")
    random = numpy.random.default_rng(5)
    rows = [f"w{i} " + " ".join(f"{x:.4f}" for x in random.normal(size=8)) for i in range(300)]
    (work / "text").write_text("\n".join(rows) + "\n")
    model = convert(work / "text", work / "model")
    subprocess.run(
        [str(bin_dir / "gloved-neighbors"), "--engine", "cpu", "--k", "7", str(model)],
        check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    return serve_all("--model", str(model))


def test_lines_have_all_words_and_their_neighbors(stored: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "words.jsonl"
    done = draw_map(stored, "-k", "7", "-o", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"{path}: 300 words, principal components")
    lines = read(path)
    assert [list(each) for each in lines] == [["word", "rank", "x", "y", "neighbors"]] * 300
    assert [each["word"] for each in lines] == [f"w{i}" for i in range(300)]
    with gloved.Client(stored.socket) as client:
        assert client.stats()["answers_neighbors"] == 300
        for row in (0, 17, 299):
            assert lines[row]["rank"] == row
            expected = client.near(f"w{row}", k=7)
            found = lines[row]["neighbors"]
            # Zero-based numbers of lines, and cosine distances.
            assert [lines[i]["word"] for i in found["ids"]] == [each.word for each in expected]
            distances = [1 - each.score for each in expected]
            assert numpy.allclose(found["distances"], distances, atol=1e-6)
        vectors = client.vec([each["word"] for each in lines])
    rows = vectors / numpy.linalg.norm(vectors.astype("f8"), axis=1, keepdims=True)
    rows -= rows.mean(axis=0)
    _, _, axes = numpy.linalg.svd(rows, full_matrices=False)
    for key, axis in zip("xy", axes):
        expected = rows @ (axis * numpy.sign(axis[numpy.argmax(numpy.abs(axis))]))
        assert numpy.allclose([each[key] for each in lines], expected, atol=1e-5)


def test_the_most_frequent_words_alone(stored: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "words.jsonl"
    done = draw_map(stored, "-k", "3", "--top", "50", "-o", str(path))
    assert done.returncode == 0 and "the daemon searches for each word" in done.stderr
    lines = read(path)
    assert len(lines) == 50
    assert all(0 <= i < 50 for each in lines for i in each["neighbors"]["ids"])
    with gloved.Client(stored.socket) as client:
        assert [lines[i]["word"] for i in lines[9]["neighbors"]["ids"]] == [
            each.word for each in client.near("w9", k=3, top=50)
        ]


def test_the_same_model_gives_the_same_bytes(stored: Daemon, tmp_path: Path) -> None:
    maps = []
    for name, run in ("a.jsonl", run_process), ("b.jsonl", run_command):
        done = run("map", "--socket", stored.socket, "-o", str(tmp_path / name))
        assert done.returncode == 0
        maps.append((tmp_path / name).read_bytes())
    assert maps[0] == maps[1]


def test_long_work_tells_how_far_it_is(
    stored: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(word_map, "_SECONDS_BETWEEN_TOLD", 0.0)
    path = str(tmp_path / "words.jsonl")
    assert __main__.main(["map", "--socket", stored.socket, "-k", "7", "-o", path]) == 0
    told = capsys.readouterr().err.splitlines()
    for what in ("vectors", "neighbours", "lines"):
        lines = [each for each in told if each.startswith(f"python3 -m gloved: {what} of ")]
        assert lines[-1].endswith(" of 300 of 300 words")
        assert len(lines) > 1
        assert lines == sorted(lines, key=lambda each: int(each.split()[5]))


def test_umap_puts_neighbors_together(stored: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "words.jsonl"
    done = draw_map(stored, "-k", "7", "--method", "umap", "-o", str(path))
    try:
        import umap  # noqa: F401
    except ImportError:
        assert done.returncode == 1 and "needs umap-learn (package umap-learn)" in done.stderr
        return
    assert done.returncode == 0 and "UMAP of 7 neighbours, seed 1" in done.stderr
    lines = read(path)
    places = numpy.array([[each["x"], each["y"]] for each in lines])
    near = [
        numpy.linalg.norm(places[row] - places[i])
        for row, each in enumerate(lines)
        for i in each["neighbors"]["ids"]
    ]
    far = numpy.linalg.norm(places[:150] - places[150:], axis=1)
    assert numpy.median(near) < 0.5 * numpy.median(far)


def test_refuses_what_it_cannot_do(
    stored: Daemon, serve_text: Callable[[bytes], Daemon], tmp_path: Path
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"word": "mine"}\n')
    done = draw_map(stored, "-o", str(path))
    assert done.returncode == 1 and "is not a file that this command made" in done.stderr
    assert path.read_text() == '{"word": "mine"}\n'
    assert draw_map(stored, "-o", str(path), "--force").returncode == 0
    # Its own file it overwrites.
    assert draw_map(stored, "-k", "1", "-o", str(path)).returncode == 0
    assert len(read(path)[0]["neighbors"]["ids"]) == 1
    done = draw_map(stored, "-o", str(tmp_path / "words.json"))
    assert done.returncode == 1 and "ends with .jsonl" in done.stderr
    done = draw_map(stored, "-o", str(tmp_path / "no" / "x.jsonl"))
    assert done.returncode == 1 and "No such file" in done.stderr
    done = draw_map(serve_text(b"alone 1 2\n"), "-o", str(tmp_path / "alone.jsonl"))
    assert done.returncode == 1 and "two words or more" in done.stderr
    assert not (tmp_path / "alone.jsonl").exists()


@pytest.mark.parametrize(
    "option",
    ["map -k", "map --top", "map --seed", "explore --port", "plot -k", "plot --seed"],
)
def test_numbers_of_options(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    for text in "x", "-1", "+1", "1_0", "\u0661", "1.5", " 1", "9" * 30, "4294967296":
        with pytest.raises(SystemExit) as ended:
            __main__.main([*option.split(), text, *(["-o", "x.jsonl"] if "map" in option else [])])
        assert ended.value.code == 2
        assert re.search(f"a number from [01] to [0-9]+, not {re.escape(text)}; see",
                         capsys.readouterr().err)


def test_words_without_a_direction_have_no_neighbors(
    serve_text: Callable[[bytes], Daemon], tmp_path: Path
) -> None:
    daemon = serve_text(b"a 1 0\nzero 0 0\ncaf\xe9 1 1\n")
    path = tmp_path / "words.jsonl"
    done = draw_map(daemon, "-o", str(path))
    assert done.returncode == 0, done.stderr
    lines = read(path)
    assert [each["word"] for each in lines] == ["a", "zero", "caf\\xe9"]
    assert lines[1]["neighbors"] == {"ids": [], "distances": []}
    assert lines[0]["neighbors"]["ids"][0] == 2
