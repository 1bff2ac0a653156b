"""Files of analogies and of word pairs, and correlations."""

from __future__ import annotations

import gzip
import logging
import math
import os
from typing import Iterator, List, Sequence, Tuple, Union

from ._lines import lines_of

_logger = logging.getLogger(__name__)

Path = Union[str, "os.PathLike[str]"]


def _lines(path: Path, encoding: str) -> Iterator[Tuple[int, str]]:
    name = os.fspath(path)
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path, "rb") as file:  # type: ignore[operator]
        yield from lines_of(file, name, encoding)


def _tell_skipped(path: Path, skipped: List[int], wanted: str) -> None:
    if skipped:
        _logger.warning(
            "%s: %d lines have not %s and are skipped; the first is line %d",
            os.fspath(path), len(skipped), wanted, skipped[0],
        )


def analogies(path: Path, upper: bool) -> Iterator[Tuple[str, List[Tuple[str, str, str, str]]]]:
    """The sections of a file of analogies: a name, and its questions a b c expected.

    A section begins with a line «: name». Other lines that have not four words are skipped, and a
    warning is logged. ValueError: a question comes before the first section.
    """
    section = None
    questions: List[Tuple[str, str, str, str]] = []
    skipped: List[int] = []
    for number, line in _lines(path, "utf-8"):
        if not line.strip():
            continue
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
        else:
            skipped.append(number)
    _tell_skipped(path, skipped, "four words")
    if section is not None:
        yield section, questions


def pairs(path: Path, delimiter: str, encoding: str, upper: bool) -> List[Tuple[str, str, float]]:
    """The lines of a file of word pairs: two words, and people's score of their similarity.

    Lines that begin with # are skipped. So are lines that have another form, and a warning is
    logged. ValueError: no line has the form.
    """
    if not isinstance(delimiter, str) or not delimiter:
        raise ValueError(f"delimiter is a str such as a tab, not {delimiter!r}")
    found: List[Tuple[str, str, float]] = []
    skipped: List[int] = []
    example = ""
    for number, line in _lines(path, encoding):
        if line.startswith("#") or not line.strip():
            continue
        try:
            first, second, score = (line.upper() if upper else line).split(delimiter)
            found.append((first, second, float(score)))
        except ValueError:
            example = example or line
            skipped.append(number)
    if skipped and not found:
        raise ValueError(
            f"{os.fspath(path)}: line {skipped[0]} has not two words and a score with"
            f" {delimiter!r} between, and no other line has: name what is between them with"
            f" delimiter=. The line is {example[:80]!r}"
        )
    _tell_skipped(path, skipped, f"two words and a score with {delimiter!r} between")
    return found


def pearson(x: Sequence[float], y: Sequence[float]) -> Tuple[float, float]:
    """Pearson's correlation and its two-tailed p-value (Student's t, n - 2 degrees of freedom).

    Both are NaN if all x or all y are equal. ValueError: there are fewer than two numbers.
    """
    n = len(x)
    if n < 2:
        raise ValueError("a correlation needs at least two pairs")
    # The mean of equal numbers may be rounded, which would look like variance.
    if min(x) == max(x) or min(y) == max(y):
        return math.nan, math.nan
    dx, dy = _deviations(x), _deviations(y)
    scale = math.sqrt(math.fsum(d * d for d in dx) * math.fsum(d * d for d in dy))
    if not scale > 0:
        return math.nan, math.nan
    r = max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(dx, dy)) / scale))
    if n == 2:
        return r, 1.0
    # t² = r² (n - 2) / (1 - r²), whose tail is an incomplete beta function.
    return r, _incomplete_beta((n - 2) / 2, 0.5, (1 - r) * (1 + r))


def _deviations(values: Sequence[float]) -> List[float]:
    """The differences to the mean, times the power of two at which their squares are near 1."""
    scaled = _scaled(values)
    mean = math.fsum(scaled) / len(scaled)
    return _scaled([value - mean for value in scaled])


def _scaled(values: Sequence[float]) -> List[float]:
    _, exponent = math.frexp(max(abs(value) for value in values))
    return [math.ldexp(value, -exponent) for value in values]


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
