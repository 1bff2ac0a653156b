"""The evaluations of KeyedVectors: what is asked for a file of analogies or of word pairs."""

from __future__ import annotations

import logging
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _evaluation, _reply, requests
from ._keyed_call import Call
from ._wire import Request
from .errors import ZeroVector

_logger = logging.getLogger(__name__)


def _evaluated(call: Call, top: Optional[int], case_insensitive: bool) -> Dict[str, str]:
    """The words that questions may have, as files have them; each with its most frequent form."""
    words = call.snapshot().words[:top]
    return {word.upper() if case_insensitive else word: word for word in reversed(words)}


def _answered(
    call: Call,
    name: str,
    questions: List[Tuple[str, str, str, str]],
    known: Dict[str, str],
    top: Optional[int],
    case_insensitive: bool,
    dummy4unknown: bool,
) -> Dict[str, Any]:
    """The right and the wrong answers to the questions of a section."""
    right: Dict[Tuple[str, ...], bool] = {}
    asked = [each for each in questions if all(word in known for word in each)]
    answers = call.ask_all(
        (
            Request(
                requests.near(
                    [(known[b], 1.0), (known[c], 1.0), (known[a], -1.0)],
                    k=5,
                    top=top,
                    norm="unit",
                    unknown="error",
                    case="exact",
                ).line,
                _reply.hits,
            )
            for a, b, c, _ in asked
        ),
        accepted=(ZeroVector,),
    )
    for answer, question in zip(answers, asked):
        predicted = None
        for word, _ in [] if isinstance(answer, ZeroVector) else answer:
            predicted = word.upper() if case_insensitive else word
            if predicted in known and predicted not in question[:3]:
                break
        right[question] = predicted == question[3]
    section: Dict[str, Any] = {"section": name, "correct": [], "incorrect": []}
    for question in questions:
        if question in right or dummy4unknown:
            section["correct" if right.get(question) else "incorrect"].append(question)
    return section


def analogy_sections(
    call: Call,
    sections: Sequence[Tuple[str, List[Tuple[str, str, str, str]]]],
    top: Optional[int],
    case_insensitive: bool,
    dummy4unknown: bool,
) -> List[Dict[str, Any]]:
    """The right and the wrong answers to the questions of each section, as gensim returns them."""
    known = _evaluated(call, top, case_insensitive)
    return [
        _answered(call, name, questions, known, top, case_insensitive, dummy4unknown)
        for name, questions in sections
    ]


def pair_similarities(
    call: Call,
    pairs: Sequence[Tuple[str, str, float]],
    top: Optional[int],
    case_insensitive: bool,
) -> List[Optional[float]]:
    """The similarity of each pair of words; None if one is unknown."""
    known = _evaluated(call, top, case_insensitive)
    asked = [
        (known[first], known[second])
        for first, second, _ in pairs
        if first in known and second in known
    ]
    answers = iter(call.similarities(asked))
    return [
        next(answers) if first in known and second in known else None
        for first, second, _ in pairs
    ]


def with_total(sections: List[Dict[str, Any]]) -> Tuple[float, List[Dict[str, Any]]]:
    """The share of right answers of all sections, and these with one of all. Logs each."""
    total: Dict[str, Any] = {"section": "Total accuracy"}
    for outcome in ("correct", "incorrect"):
        total[outcome] = [each for section in sections for each in section[outcome]]
    for section in sections:
        _log_share(section)
    return _log_share(total), [*sections, total]


def _log_share(section: Dict[str, Any]) -> float:
    correct = len(section["correct"])
    counted = correct + len(section["incorrect"])
    if counted == 0:
        return 0.0
    _logger.info(
        "%s: %.1f%% (%d/%d)", section["section"], 100 * correct / counted, correct, counted
    )
    return correct / counted


def correlations(
    name: str,
    lines: List[Tuple[str, str, float]],
    similarities: List[Optional[float]],
    dummy4unknown: bool,
) -> Tuple[Tuple[float, float], Tuple[float, float], float]:
    """What evaluate_word_pairs returns for the lines of the file `name`. ValueError: no pair
    counts, or only one."""
    gold, ours = [], []
    for (_, _, score), similarity in zip(lines, similarities):
        if similarity is not None or dummy4unknown:
            gold.append(score)
            ours.append(similarity or 0.0)
    if not gold:
        raise ValueError(f"{name}: no pair has both words in the model")
    unknown_percent = 100 * similarities.count(None) / len(lines)
    pearson, spearman = _evaluation.pearson(gold, ours), _evaluation.spearman(gold, ours)
    _logger.info("%s: Pearson %.4f, Spearman %.4f", name, pearson[0], spearman[0])
    return pearson, spearman, unknown_percent
