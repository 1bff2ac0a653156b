"""Tables of a neighbourhood for other programs: vectors and metadata for the embedding projector of
TensorBoard, and places as CSV."""

from __future__ import annotations

from typing import Any, Tuple

from gloved._command import as_csv, visible

from .neighborhood import Neighborhood

NAMES = ("vectors.tsv", "metadata.tsv")
HEADER = "word\trank\tasked\n"
"""The first line of the metadata. Vectors have none."""
COORDINATES = b"word,rank,asked,x,y\n"
"""The first line of the places."""


def coordinates(found: Neighborhood, points: Any) -> bytes:
    """The places of all words as CSV, where words have their bytes.

    Nine decimals: further digits may differ where numpy is another one.
    """
    text = as_csv(
        (place.word, place.rank, "yes" if place.is_asked else "no", f"{x:.9f}", f"{y:.9f}")
        for place, (x, y) in zip(found.places, points)
    )
    return COORDINATES + text.encode("utf-8", "surrogateescape")


def tables(found: Neighborhood) -> Tuple[bytes, bytes]:
    """The content of both files, a line for each word.

    Numbers are the shortest decimals that read back to the same float32.
    """
    vectors = "".join("\t".join(str(number) for number in row) + "\n" for row in found.vectors)
    metadata = HEADER + "".join(
        f"{visible(place.word)}\t{place.rank}\t{'yes' if place.is_asked else 'no'}\n"
        for place in found.places
    )
    return vectors.encode(), metadata.encode()
