"""python3 -m gloved map: all words on a plane, with their neighbours, for embedding-atlas."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Tuple, TypeVar

from gloved import _reply, _snapshot, requests
from gloved._command import Commands, Fault, new_command, say, visible, whole_number
from gloved._one_model import OneModel
from gloved._vectors import numpy
from gloved._wire import Request
from gloved.client import Client
from gloved.errors import Internal, ZeroVector

from . import files, projection

_MAP = """Writes the words of a model with places on a plane and their nearest words, a line of
JSON each, as embedding-atlas reads them.

The daemon answers from the neighbours that gloved-neighbors stored, if the model has them; without
them it searches, which takes long for a large model. Needs numpy."""

_MAP_EXAMPLES = """examples:
  python3 -m gloved map -o words.jsonl
  python3 -m gloved map --top 100000 --method umap -o words.jsonl
  embedding-atlas words.jsonl --text word --x x --y y --neighbors neighbors

A file that map did not make is not overwritten without --force."""

_MEMBERS = ["word", "rank", "x", "y", "neighbors"]
_SECONDS_BETWEEN_TOLD = 5.0
_DECIMALS = 6

_Item = TypeVar("_Item")


def add_to(commands: Commands) -> None:
    """Adds the command to a command line."""
    parser = new_command(
        commands, "map", "write all words with places and neighbours", _MAP, _MAP_EXAMPLES
    )
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="a file .jsonl")
    parser.add_argument(
        "-k", type=whole_number(1), default=10, help="neighbours of each word (default: 10)"
    )
    parser.add_argument(
        "--top", type=whole_number(1), help="only the most frequent TOP words (default: all)"
    )
    parser.add_argument(
        "--method",
        choices=("pca", "umap"),
        default="pca",
        help="places by principal components (the default), or by UMAP from the neighbours, "
        "which needs umap-learn and takes long",
    )
    parser.add_argument("--seed", type=whole_number(0), default=1, help="of UMAP (default: 1)")
    parser.add_argument("--force", action="store_true", help="overwrite a file of others too")
    parser.set_defaults(run=_run)


def _is_own(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline(1 << 20)
    try:
        return list(json.loads(first)) == _MEMBERS
    except (ValueError, TypeError):
        return False


class _Progress:
    """Tells now and then how far the work is."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._next = time.monotonic() + _SECONDS_BETWEEN_TOLD

    def tell(self, done: int) -> None:
        if time.monotonic() >= self._next:
            say(f"{self._what} of {done:,} of {self._total:,} words")
            self._next = time.monotonic() + _SECONDS_BETWEEN_TOLD

    def watch(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """The items, one a word."""
        for done, item in enumerate(items, 1):
            yield item
            self.tell(done)


def _neighbors(
    one_model: OneModel, snapshot: _snapshot.Snapshot, count: int, k: int
) -> Tuple[Any, Any]:
    """Numbers and cosine distances of the neighbours of the first `count` words, both (count, k).

    A word whose vector is zero has none: the number -1. ModelReplaced: that happened meanwhile.
    """
    top = count if count < len(snapshot.words) else None
    asked: Iterable[Request[Any]] = (
        Request(
            requests.near(word, k=k, top=top, unknown="error", case="exact").line,
            _reply.hits,
        )
        for word in snapshot.words[:count]
    )
    ids = numpy.full((count, k), -1, dtype="i4")
    distances = numpy.ones((count, k), dtype="f4")
    answers = one_model.ask_all(asked, accepted=(ZeroVector,))
    for row, answer in enumerate(_Progress("neighbours", count).watch(answers)):
        if isinstance(answer, ZeroVector):
            continue
        if len(answer) > k:
            raise Internal(f"gloved showed {len(answer)} neighbours of a word, not {k}")
        ids[row, : len(answer)] = [snapshot.place(word) for word, _ in answer]
        distances[row, : len(answer)] = [1 - score for _, score in answer]
    return ids, distances


def _by_umap(vectors: Any, ids: Any, distances: Any, seed: int) -> projection.Projection:
    """UMAP (McInnes, Healy and Melville, 2018) of known neighbours, by umap-learn."""
    try:
        umap = importlib.import_module("umap")
        sparse = importlib.import_module("scipy.sparse")
    except ImportError:
        raise Fault("--method umap needs umap-learn (package umap-learn)") from None
    count, k = ids.shape
    # A matrix of the distances that are known, which UMAP wants symmetric. That adds no neighbour
    # to a word's k nearest: those are exact, so a word that names it from afar is further away.
    if (ids < 0).any():
        raise Fault("--method umap needs neighbours of every word; a vector is zero")
    known = sparse.csr_matrix(
        (distances.ravel(), ids.ravel(), numpy.arange(count + 1) * k), shape=(count, count)
    )
    model = umap.UMAP(
        n_neighbors=k,
        metric="precomputed",
        init=projection.by_components(vectors).points,
        random_state=seed,
    )
    warnings.filterwarnings("ignore", category=UserWarning, module="umap")
    return projection.Projection(
        numpy.asarray(model.fit_transform(known.maximum(known.T)), dtype="f8"),
        f"UMAP of {k} neighbours, seed {seed}",
    )


def _lines(words: List[str], points: Any, ids: Any, distances: Any) -> Iterator[bytes]:
    for row, word in enumerate(words):
        x, y = (round(float(each), _DECIMALS) for each in points[row])
        known = ids[row] >= 0
        neighbors = {
            "ids": ids[row][known].tolist(),
            "distances": [round(float(each), _DECIMALS) for each in distances[row][known]],
        }
        values = (visible(word), row, x, y, neighbors)
        yield json.dumps(dict(zip(_MEMBERS, values)), ensure_ascii=False).encode() + b"\n"


def _read(
    client: Client, one_model: OneModel, top: Optional[int]
) -> Tuple[_snapshot.Snapshot, int, Any]:
    """All words, how many of them are wanted, and the vectors of these."""
    snapshot = _snapshot.read_words(client, one_model)
    count = min(top or len(snapshot.words), len(snapshot.words))
    progress = _Progress("vectors", count)
    return snapshot, count, _snapshot.rows(one_model, snapshot.words[:count], progress.tell)


def _tell_searches(client: Client, options: argparse.Namespace) -> None:
    """What takes long: stored neighbours answer for all words alone."""
    asked = requests.stats(model=options.model).line
    stored = client.ask(Request(asked, _reply.stored_neighbors))
    if options.top is not None:
        say("--top: the daemon searches for each word; what is stored is among all words")
    elif stored < options.k:
        say(
            f"the daemon searches for each word: {stored} neighbours are stored; "
            f"gloved-neighbors --k {options.k} stores them"
        )


def _run(options: argparse.Namespace) -> None:
    if numpy is None:
        raise Fault("map needs numpy (package python3-numpy)")
    path = Path(options.output)
    if path.suffix != ".jsonl":
        # embedding-atlas tells the form by the name.
        raise Fault(f"-o takes a name that ends with .jsonl, not {options.output!r}")
    files.refuse_foreign(path, _is_own, options.force)
    with Client(options.socket, model=options.model) as client:
        _tell_searches(client, options)
        # All of it is of one model: if it is replaced, the work has to begin again.
        one_model = OneModel(client)
        snapshot, count, vectors = _read(client, one_model, options.top)
        k = min(options.k, count - 1)
        if k < 1:
            raise Fault("a map needs two words or more")
        ids, distances = _neighbors(one_model, snapshot, count, k)
    if options.method == "umap":
        places = _by_umap(vectors, ids, distances, options.seed)
    else:
        places = projection.by_components(vectors)
    lines = _lines(snapshot.words[:count], places.points, ids, distances)
    files.replace(path, _Progress("lines", count).watch(lines))
    print(f"{path}: {count:,} words, {places.caption}", file=sys.stderr)
