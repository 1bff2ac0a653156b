"""Vectors as points of a plane: by principal components, or by t-SNE where sklearn is there."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from ._vectors import numpy


@dataclass(frozen=True)
class Projection:
    """Points of a plane, and how they came about."""

    points: Any
    """float64, shape (vectors, 2)."""
    caption: str


def _unit_rows(vectors: Any) -> Any:
    rows = numpy.asarray(vectors, dtype="f8")
    lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
    return rows / numpy.where(lengths == 0, 1, lengths)


def by_components(vectors: Any) -> Projection:
    """The first two principal components of the unit vectors.

    A component's sign is free: here its largest part is positive, so that the same vectors give the
    same picture.
    """
    rows = _unit_rows(vectors)
    centered = rows - rows.mean(axis=0)
    _, sizes, components = numpy.linalg.svd(centered, full_matrices=False)
    axes = numpy.zeros((2, rows.shape[1]))
    axes[: min(2, len(components))] = components[:2]
    for axis in axes:
        if axis[numpy.argmax(numpy.abs(axis))] < 0:
            axis *= -1
    variances = sizes**2
    total = float(variances.sum()) or 1.0
    shares = [100 * float(variance) / total for variance in variances[:2]] + [0.0, 0.0]
    return Projection(
        centered @ axes.T,
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
