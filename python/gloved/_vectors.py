"""Vectors of float32: numpy arrays where numpy is installed, array('f') where not."""

from __future__ import annotations

import base64
import sys
from array import array
from typing import TYPE_CHECKING, Any, Iterable, List, Sequence, Union

try:
    import numpy
except ImportError:  # pragma: no cover
    numpy = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = Union["NDArray[Any]", "array[float]", Sequence[float]]

_NATIVE_IS_LITTLE = sys.byteorder == "little"


def to_base64(vector: Vector) -> str:
    """A vector as the protocol sends it: base64 of its little-endian float32."""
    if numpy is not None:
        return base64.b64encode(numpy.asarray(vector, dtype="<f4").tobytes()).decode("ascii")
    floats = array("f", vector)
    if not _NATIVE_IS_LITTLE:
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode("ascii")


def from_base64(text: str) -> Any:
    """The vector of one text: an array of float32 that cannot be written to, or array('f')."""
    data = base64.b64decode(text)
    if numpy is not None:
        return numpy.frombuffer(data, dtype="<f4")
    floats = array("f", data)
    if not _NATIVE_IS_LITTLE:
        floats.byteswap()
    return floats


def rows_from_base64(texts: Iterable[str]) -> Any:
    """The vectors of several texts: an array of shape (texts, dim), or a list of array('f')."""
    vectors: List[Any] = [from_base64(text) for text in texts]
    if numpy is not None:
        return numpy.stack(vectors)
    return vectors
