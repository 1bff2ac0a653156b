"""Vectors of float32: numpy arrays where numpy is installed, array('f') where not."""

from __future__ import annotations

import base64
import heapq
import math
import sys
from array import array
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Sequence, Tuple, Union

try:
    import numpy as numpy
except ImportError:  # pragma: no cover
    numpy = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = Union["NDArray[Any]", "array[float]", Sequence[float]]

MAX_DIM = 4096
"""No model has longer vectors."""

_NATIVE_IS_LITTLE = sys.byteorder == "little"


def to_base64(vector: Vector) -> str:
    """A vector as the protocol sends it: base64 of its little-endian float32.

    TypeError, ValueError: it is not one row of real numbers.
    """
    if isinstance(vector, (str, bytes, bytearray)):
        raise TypeError(f"vector is a row of numbers, not {type(vector).__name__}")
    if numpy is not None:
        numbers = numpy.asarray(vector)
        if numbers.dtype.kind not in "biufO":
            raise TypeError(f"vector has real numbers, not {numbers.dtype}")
        if numbers.ndim != 1 or not numbers.size:
            raise ValueError(f"vector is one row of numbers, not of shape {numbers.shape}")
        try:
            return base64.b64encode(numbers.astype("<f4").tobytes()).decode("ascii")
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"vector has real numbers: {error}") from None
    try:
        floats = array("f", vector)
    except (TypeError, OverflowError) as error:
        raise TypeError(f"vector has real numbers: {error}") from None
    if not floats:
        raise ValueError("vector is one row of numbers, not an empty one")
    if not _NATIVE_IS_LITTLE:
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode("ascii")


def _bytes(text: str) -> bytes:
    """The bytes of one vector or several. ValueError: it is not whole float32 in base64."""
    data = base64.b64decode(text, validate=True)
    if not data or len(data) % 4 != 0 or len(data) > 4 * MAX_DIM:
        raise ValueError(f"{len(data)} bytes are no vector of up to {MAX_DIM} float32")
    return data


def from_base64(text: str) -> Any:
    """The vector of one text: an array of float32 that cannot be written to, or array('f')."""
    data = _bytes(text)
    if numpy is not None:
        return numpy.frombuffer(data, dtype="<f4")
    floats = array("f", data)
    if not _NATIVE_IS_LITTLE:
        floats.byteswap()
    return floats


def rows_from_base64(texts: Iterable[str]) -> Any:
    """The vectors of several texts: an array of shape (texts, dim), or a list of array('f').

    ValueError: there is none, or they have different lengths.
    """
    vectors: List[Any] = [from_base64(text) for text in texts]
    if len({len(each) for each in vectors}) != 1:
        raise ValueError("vectors of different lengths")
    if numpy is not None:
        return read_only(numpy.stack(vectors))
    return vectors


def is_vector(value: object) -> bool:
    """Whether a value is an array of numbers, and not a key."""
    return isinstance(value, array) or (numpy is not None and isinstance(value, numpy.ndarray))


def from_floats(values: Iterable[float]) -> Any:
    """A new float32 vector of these numbers."""
    if numpy is not None:
        return numpy.array(values, dtype=numpy.float32)
    return array("f", values)


def read_only(vectors: Any) -> Any:
    """The vector or matrix, not writeable where numpy can say so."""
    if numpy is not None:
        vectors.setflags(write=False)
    return vectors


def dot(a: Vector, b: Vector) -> float:
    """The dot product in float64."""
    if numpy is not None:
        return float(numpy.dot(numpy.asarray(a, numpy.float64), numpy.asarray(b, numpy.float64)))
    return sum(x * y for x, y in zip(a, b))


def norm(vector: Vector) -> float:
    """The Euclidean length in float64."""
    return math.sqrt(dot(vector, vector))


def divided(vector: Vector, divisor: float) -> Any:
    """The vector over a number, in float64: all NaN if the number is 0."""
    if numpy is not None:
        return numpy.asarray(vector, numpy.float64) / (divisor or math.nan)
    return array("d", (x / (divisor or math.nan) for x in vector))


def unit(vector: Vector) -> Any:
    """The vector at length 1, in float64. A zero vector stays zero."""
    return divided(vector, norm(vector) or 1.0)


def weighted_sum(vectors: Iterable[Vector], weights: Iterable[float], dim: int) -> Any:
    """The sum of weight times vector, in float64.

    ValueError: a vector does not have dim numbers.
    """
    total = numpy.zeros(dim) if numpy is not None else array("d", bytes(8 * dim))
    for vector, weight in zip(vectors, weights):
        if numpy is not None:
            addend = numpy.asarray(vector, numpy.float64)
            if addend.shape != (dim,):
                raise ValueError(f"a vector of shape {addend.shape}; the model has ({dim},)")
            total += weight * addend
        else:
            if len(vector) != dim:
                raise ValueError(f"a vector of {len(vector)} numbers; the model has {dim}")
            total = array("d", (x + weight * y for x, y in zip(total, vector)))
    return total


_BLOCK_ROWS = 8192


def row_norms(rows: Any) -> Any:
    """The length of each row, in float64.

    Rows become float64 some thousand at a time, so a large matrix is not copied.
    """
    if numpy is None:
        return array("d", map(norm, rows))
    norms = numpy.empty(len(rows))
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        block = numpy.asarray(rows[part], numpy.float64)
        norms[part] = numpy.sqrt(numpy.einsum("ij,ij->i", block, block))
    return norms


def _dots(rows: Any, vectors: Any) -> Iterator[Tuple[slice, Any]]:
    """The dot products of rows with vectors, shape (rows, vectors), some thousand rows a time."""
    columns = numpy.asarray(vectors, numpy.float64).T
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        yield part, numpy.asarray(rows[part], numpy.float64) @ columns


def cosines(vector: Vector, rows: Any) -> Any:
    """The cosine of a vector with each row in float64; NaN where a vector is zero.

    ValueError: the rows have another length than the vector.
    """
    if numpy is None:
        if any(len(row) != len(vector) for row in rows):
            raise ValueError("the rows have another length than the vector")
        length = norm(vector)
        return array("d", (dot(vector, row) / (length * norm(row) or math.nan) for row in rows))
    result = numpy.empty(len(rows))
    for part, dots in _dots(rows, vector):
        result[part] = dots
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return result / (norm(vector) * row_norms(rows))


def one_minus(values: Any) -> Any:
    """1 - each value, of the same type."""
    if numpy is not None:
        return 1 - values
    return array(values.typecode, (1 - each for each in values))


def like_inputs(values: Any, *inputs: Any) -> Any:
    """float64 values in the type that numpy gives a product of the inputs: mostly float32."""
    if numpy is None:
        return array("f", values)
    kind = numpy.result_type(*map(numpy.asarray, inputs))
    return values.astype(kind) if kind.kind == "f" else values


def unit_rows(rows: Any) -> Any:
    """Each row at length 1: a new float32 matrix. A zero row becomes NaN."""
    if numpy is None:
        return [from_floats(divided(row, norm(row))) for row in rows]
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return rows / row_norms(rows).astype(numpy.float32)[:, None]


def cosmul_scores(
    rows: Any, norms: Any, positive: List[Vector], negative: List[Vector], epsilon: float
) -> Any:
    """For each row, the product of x' over positive, over that over negative + epsilon; float64.

    x' is (1 + vector·row / norm) / 2; a zero row has vector·row / norm = 0. norms are row_norms().
    ValueError: a vector has another length than the rows.
    """
    for vector in positive + negative:
        if len(vector) != len(rows[0]):
            raise ValueError(f"a vector of {len(vector)} numbers; the model has {len(rows[0])}")
    if numpy is not None:
        scores = numpy.empty(len(rows))
        for part, dots in _dots(rows, positive + negative):
            lengths = numpy.where(norms[part] == 0, 1, norms[part])
            shifted = (1 + dots / lengths[:, None]) / 2
            over, under = numpy.split(shifted, [len(positive)], axis=1)
            scores[part] = over.prod(axis=1) / (under.prod(axis=1) + epsilon)
        return scores

    def product(vectors: List[Vector], row: Vector, length: float) -> float:
        result = 1.0
        for vector in vectors:
            result *= (1 + dot(vector, row) / (length or 1)) / 2
        return result

    return [
        product(positive, row, length) / (product(negative, row, length) + epsilon)
        for row, length in zip(rows, norms)
    ]


def join_base64(texts: Iterable[str]) -> bytes:
    """The bytes of the vectors of several texts, one after another. ValueError: as above."""
    vectors = [_bytes(text) for text in texts]
    if len({len(each) for each in vectors}) != 1:
        raise ValueError("vectors of different lengths")
    return b"".join(vectors)


def empty_rows(rows: int, dim: int) -> Any:
    """A matrix of zeros for put_rows: an array of shape (rows, dim), or a list of array('f')."""
    if numpy is not None:
        return numpy.zeros((rows, dim), dtype=numpy.float32)
    return [array("f", bytes(4 * dim)) for _ in range(rows)]


def put_rows(matrix: Any, places: Sequence[int], data: bytes) -> None:
    """Writes the little-endian float32 of several vectors into these rows of empty_rows()."""
    if numpy is not None:
        matrix[places] = numpy.frombuffer(data, dtype="<f4").reshape(len(places), -1)
        return
    floats = array("f", data)
    if not _NATIVE_IS_LITTLE:
        floats.byteswap()
    dim = len(floats) // len(places)
    for index, place in enumerate(places):
        start, stop = index * dim, (index + 1) * dim
        matrix[place] = floats[start:stop]


def largest(scores: Any, count: int) -> List[int]:
    """The indices of the largest scores, in any order; equal ones may be left out."""
    if numpy is None:
        return heapq.nlargest(count, range(len(scores)), key=scores.__getitem__)
    if count >= len(scores):
        return list(range(len(scores)))
    indices: List[int] = numpy.argpartition(scores, len(scores) - count)[-count:].tolist()
    return indices
