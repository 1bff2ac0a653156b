"""python3 -m gloved plot: draws words and their nearest words."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Callable, List, Tuple

from gloved._command import (
    Commands,
    Fault,
    new_command,
    say_how_found,
    whole_number,
    words_of_file,
)
from gloved._vectors import numpy
from gloved.client import Client
from gloved.errors import UnknownWord

from . import files, picture, projection, projector
from .neighborhood import Analogy, Neighborhood, gather

_FORMS = ("svg", "png", "pdf", "html", "csv")
# At both ends of a file, where the mark of one's own is looked for.
_MARKED_BYTES = 16384

_PLOT = """Draws words and their nearest words in two dimensions.

Each WORD is drawn with its neighbours. Words of --words and of analogies are drawn alone. The same
words of the same model give the same bytes. A file .csv has the places instead: a line for each
word. Needs numpy, and for pictures matplotlib."""

_PLOT_EXAMPLES = """examples:
  python3 -m gloved plot king queen snake -o words.svg
  python3 -m gloved plot --analogy man king woman --analogy france paris italy -o capitals.png
  python3 -m gloved plot king -k 30 --method tsne --seed 7 -o king.html
  python3 -m gloved plot king queen -o coordinates.csv
  python3 -m gloved plot king queen --tsv projector

A file that plot did not make is not overwritten without --force."""


def add_to(commands: Commands) -> None:
    """Adds the command to a command line."""
    plot = new_command(
        commands, "plot", "draw words and their nearest words", _PLOT, _PLOT_EXAMPLES
    )
    plot.add_argument("words", nargs="*", metavar="WORD", help="a word, drawn with its neighbours")
    plot.add_argument(
        "-o", "--output", metavar="FILE", help="a file .svg, .png, .pdf, .html or .csv"
    )
    plot.add_argument(
        "--tsv", metavar="DIR", help="write vectors.tsv and metadata.tsv for a projector"
    )
    plot.add_argument(
        "-k", type=whole_number(0, 1000), default=10, help="neighbours of each WORD (default: 10)"
    )
    plot.add_argument(
        "--words", dest="file", metavar="FILE", help="further words, one a line; - is stdin"
    )
    plot.add_argument(
        "--analogy",
        nargs=3,
        action="append",
        default=[],
        metavar=("A", "B", "C"),
        help="arrows from A to B, and from C to the answer; repeat for several",
    )
    plot.add_argument(
        "--method",
        choices=("pca", "tsne"),
        default="pca",
        help="pca (the default), or t-SNE by sklearn",
    )
    plot.add_argument("--seed", type=whole_number(0), default=1, help="of t-SNE (default: 1)")
    plot.add_argument("--title", help="above the picture (default: the words)")
    plot.add_argument("--case", choices=("exact", "ignore"), help="take words in another case")
    plot.add_argument("--unknown", choices=("error", "skip"), help="leave unknown words out")
    plot.add_argument("--force", action="store_true", help="overwrite files of others too")
    plot.set_defaults(run=_run)


def _is_own_output(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.read(_MARKED_BYTES)
        # A PDF has its mark behind the picture.
        file.seek(max(0, path.stat().st_size - _MARKED_BYTES))
        return picture.MARK in first + file.read() or first.startswith(projector.COORDINATES)


def _is_own_table(path: Path) -> bool:
    # vectors.tsv has no place for a mark: it belongs to the metadata beside it.
    with path.with_name("metadata.tsv").open("rb") as file:
        return file.readline() == projector.HEADER.encode()


def _check_files(options: argparse.Namespace) -> None:
    """Refuses to overwrite files of somebody else, before anything is asked or written."""
    checks: List[Tuple[Path, Callable[[Path], bool]]] = []
    if options.output is not None:
        checks.append((Path(options.output), _is_own_output))
    if options.tsv is not None:
        checks += [(Path(options.tsv, name), _is_own_table) for name in projector.NAMES]
    for path, is_own in checks:
        files.refuse_foreign(path, is_own, options.force)


def _project(options: argparse.Namespace, found: Neighborhood) -> projection.Projection:
    if options.method == "pca":
        return projection.by_components(found.vectors)
    try:
        return projection.by_tsne(found.vectors, options.seed)
    except ImportError:
        raise Fault("--method tsne needs sklearn (package python3-sklearn)") from None


def _title(options: argparse.Namespace, found: Neighborhood) -> str:
    if options.title is not None:
        return str(options.title)
    if options.words:
        shown = ", ".join(options.words[:6]) + (", …" if len(options.words) > 6 else "")
        return f"Nearest words of {shown}"
    words = [[found.places[number].word for number in arrow] for arrow in found.arrows[:6]]
    pairs = [f"{a} : {b} = {c} : {d}" for (a, b), (c, d) in zip(words[::2], words[1::2])]
    return "; ".join(pairs) or f"{len(found.places)} words"


def _output(options: argparse.Namespace, found: Neighborhood, form: str) -> bytes:
    places = _project(options, found)
    if form == "csv":
        return projector.coordinates(found, places.points)
    try:
        return picture.picture(found, places, _title(options, found), form)
    except ImportError:
        raise Fault("pictures need matplotlib (package python3-matplotlib)") from None


def _run(options: argparse.Namespace) -> None:
    if options.output is None and options.tsv is None:
        raise Fault("nothing to write: name a file with -o, or a directory with --tsv")
    form = Path(options.output or "").suffix.lstrip(".").lower()
    if options.output is not None and form not in _FORMS:
        raise Fault(
            "-o takes a name that ends with .svg, .png, .pdf, .html or .csv, not"
            f" {options.output!r}"
        )
    if numpy is None:
        raise Fault("plot needs numpy (package python3-numpy)")
    analogies: List[Analogy] = [(a, b, c) for a, b, c in options.analogy]
    extra = words_of_file(options.file)
    if not options.words and not extra and not analogies:
        raise Fault("no word to draw: name some, or use --words or --analogy")
    _check_files(options)
    # A font that lacks a letter draws a box; in SVG and HTML the reader's fonts have it.
    warnings.filterwarnings("ignore", message="Glyph .* missing from current font")
    with Client(options.socket, model=options.model) as client:
        try:
            found = gather(
                client,
                options.words,
                k=options.k,
                extra=list(extra),
                analogies=analogies,
                unknown=options.unknown,
                case=options.case,
            )
        except UnknownWord as error:
            if error.word not in extra:
                raise
            raise Fault(f"{options.file}: line {extra[error.word]}: {error}") from None
    say_how_found(found.skipped, found.replaced)
    if options.output is not None:
        files.replace(Path(options.output), [_output(options, found, form)])
    if options.tsv is not None:
        Path(options.tsv).mkdir(parents=True, exist_ok=True)
        for name, data in zip(projector.NAMES, projector.tables(found)):
            files.replace(Path(options.tsv, name), [data])
