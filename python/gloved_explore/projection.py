"""Vectors as points of a plane: by principal components, or by t-SNE where sklearn is there."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Iterator

from gloved._vectors import numpy


@dataclass(frozen=True)
class Projection:
    """Points of a plane, and how they came about."""

    points: Any
    """float64, shape (vectors, 2)."""
    caption: str


# Rows at a time: 16,384 of 300 numbers are 39 MB in float64.
_CHUNK_ROWS = 16_384


def _unit_rows(vectors: Any) -> Any:
    rows = numpy.asarray(vectors, dtype="f8")
    lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
    return rows / numpy.where(lengths == 0, 1, lengths)


def _chunks(vectors: Any) -> Iterator[slice]:
    return (slice(i, i + _CHUNK_ROWS) for i in range(0, len(vectors), _CHUNK_ROWS))


def by_components(vectors: Any) -> Projection:
    """The first two principal components of the unit vectors: axes of their covariance.

    A component's sign is free: here its largest part is positive, so that the same vectors give the
    same picture. Takes little memory besides the vectors, however many there are.
    ValueError: a vector is not finite.
    """
    dim = vectors.shape[1]
    mean = sum(_unit_rows(vectors[part]).sum(axis=0) for part in _chunks(vectors)) / len(vectors)
    scatter = numpy.zeros((dim, dim))
    for part in _chunks(vectors):
        centered = _unit_rows(vectors[part]) - mean
        scatter += centered.T @ centered
    if not numpy.isfinite(scatter).all():
        raise ValueError("a vector is not finite: it has no place")
    # Smallest first.
    variances, columns = numpy.linalg.eigh(scatter)
    axes = numpy.zeros((2, dim))
    axes[: min(2, dim)] = columns.T[::-1][:2]
    for axis in axes:
        if axis[numpy.argmax(numpy.abs(axis))] < 0:
            axis *= -1
    total = float(numpy.trace(scatter)) or 1.0
    # A variance of nothing may be a little below 0.
    shares = [100 * max(0.0, float(each)) / total for each in variances[::-1][:2]] + [0.0]
    points = [(_unit_rows(vectors[part]) - mean) @ axes.T for part in _chunks(vectors)]
    return Projection(
        numpy.vstack(points),
        "principal components of unit vectors, which explain "
        f"{shares[0]:.0f} % and {shares[1]:.0f} % of their variance",
    )


def by_tsne(vectors: Any, seed: int) -> Projection:
    """t-SNE (van der Maaten and Hinton, 2008) of the unit vectors, by sklearn.

    ImportError: there is no sklearn. ValueError: too few vectors.
    """
    rows = _unit_rows(vectors)
    if len(rows) < 4:
        raise ValueError(f"t-SNE needs at least 4 words, not {len(rows)}")
    manifold = importlib.import_module("sklearn.manifold")
    perplexity = min(30.0, (len(rows) - 1) / 3)
    model = manifold.TSNE(
        n_components=2,
        perplexity=perplexity,
        init="pca",
        learning_rate="auto",
        method="exact",
        random_state=seed,
    )
    return Projection(
        numpy.asarray(model.fit_transform(rows), dtype="f8"),
        f"t-SNE of unit vectors, perplexity {perplexity:.0f}, seed {seed}",
    )
