"""Files of analogies and of word pairs, and correlations."""

from __future__ import annotations

import gzip
import math
import os
from typing import IO, Iterator, List, Sequence, Tuple, Union

Path = Union[str, "os.PathLike[str]"]


def _open(path: Path, encoding: str) -> IO[str]:
    opener = gzip.open if os.fspath(path).endswith(".gz") else open
    opened: IO[str] = opener(path, "rt", encoding=encoding)  # type: ignore[operator]
    return opened


def analogies(path: Path, upper: bool) -> Iterator[Tuple[str, List[Tuple[str, str, str, str]]]]:
    """The sections of a file of analogies: a name, and its questions a b c expected.

    A section begins with a line «: name». Lines that have not four words are skipped.
    ValueError: a question comes before the first section.
    """
    section = None
    questions: List[Tuple[str, str, str, str]] = []
    with _open(path, "utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith(": "):
                if section is not None:
                    yield section, questions
                section, questions = line.lstrip(": ").strip(), []
                continue
            if section is None:
                raise ValueError(f"{os.fspath(path)}: line {number} comes before any «: section»")
            words = (line.upper() if upper else line).split()
            if len(words) == 4:
                questions.append((words[0], words[1], words[2], words[3]))
    if section is not None:
        yield section, questions


def pairs(
    path: Path, delimiter: str, encoding: str, upper: bool
) -> Iterator[Tuple[str, str, float]]:
    """The lines of a file of word pairs: two words, and people's score of their similarity.

    Lines that begin with # are skipped, and lines that have another form.
    """
    with _open(path, encoding) as file:
        for line in file:
            if line.startswith("#"):
                continue
            fields = (line.upper() if upper else line).split(delimiter)
            try:
                first, second, score = fields
                gold = float(score)
            except ValueError:
                continue
            yield first, second, gold


def pearson(x: Sequence[float], y: Sequence[float]) -> Tuple[float, float]:
    """Pearson's correlation and its two-tailed p-value (Student's t, n - 2 degrees of freedom).

    Both are NaN if all x or all y are equal. ValueError: there are fewer than two numbers.
    """
    n = len(x)
    if n < 2:
        raise ValueError("a correlation needs at least two pairs")
    mean_x, mean_y = math.fsum(x) / n, math.fsum(y) / n
    dx, dy = [value - mean_x for value in x], [value - mean_y for value in y]
    scale = math.sqrt(math.fsum(d * d for d in dx) * math.fsum(d * d for d in dy))
    if not scale > 0:
        return math.nan, math.nan
    r = max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(dx, dy)) / scale))
    if n == 2:
        return r, 1.0
    # t² = r² (n - 2) / (1 - r²), whose tail is an incomplete beta function.
    return r, _incomplete_beta((n - 2) / 2, 0.5, (1 - r) * (1 + r))


def spearman(x: Sequence[float], y: Sequence[float]) -> Tuple[float, float]:
    """Spearman's rank correlation, equal numbers at their mean rank, and its p-value."""
    return pearson(_ranks(x), _ranks(y))


def _ranks(values: Sequence[float]) -> List[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        stop = start
        while stop < len(order) and values[order[stop]] == values[order[start]]:
            stop += 1
        # A NaN equals nothing: it takes the place it has.
        stop = max(stop, start + 1)
        for place in order[start:stop]:
            ranks[place] = (start + stop - 1) / 2 + 1
        start = stop
    return ranks


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        # The fraction converges fast only below the mean.
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log1p(-x)
    # Lentz's algorithm; no denominator may become 0.
    tiny = 1e-300
    numerator, denominator = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    fraction = denominator
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        factor = 1.0
        for coefficient in (even, odd):
            denominator = 1 / ((1 + coefficient * denominator) or tiny)
            numerator = (1 + coefficient / numerator) or tiny
            factor = numerator * denominator
            fraction *= factor
        if abs(factor - 1) < 1e-15:
            break
    return math.exp(log_front) * fraction / a
