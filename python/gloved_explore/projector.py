"""Files for the embedding projector of TensorBoard: vectors, and metadata of the words."""

from __future__ import annotations

from typing import Tuple

from gloved._command import visible

from .neighborhood import Neighborhood

NAMES = ("vectors.tsv", "metadata.tsv")
HEADER = "word\trank\tasked\n"
"""The first line of the metadata. Vectors have none."""


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
