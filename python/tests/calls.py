"""Every call of the package that may ask several requests, and two models to tell answers apart.

The models have the same words and dimension. Vectors differ, and so do the words' ranks.
"""

from __future__ import annotations

import inspect
import os
import random
from pathlib import Path
from typing import Any, Callable, Dict, List

import gloved
from gloved import KeyedVectors
from gloved_explore.answers import Answers
from gloved_explore.neighborhood import gather

COUNT = 300
DIM = 4


def text_of_model(seed: int) -> bytes:
    """A model in GloVe's form."""
    pick = random.Random(seed)
    words = [f"w{number:03}" for number in range(COUNT)]
    pick.shuffle(words)
    rows = (" ".join(f"{pick.uniform(-1, 1):.4f}" for _ in range(DIM)) for _ in words)
    return "".join(f"{word} {row}\n" for word, row in zip(words, rows)).encode()


class Swap:
    """Two models, one of which is at `live`. swap() puts the other one there; then reload."""

    def __init__(self, live: Path, spare: Path) -> None:
        self.live, self.spare = live, spare

    def swap(self) -> None:
        """By renaming, as a deployment does."""
        between = self.live.with_name("between")
        os.rename(self.live, between)
        os.rename(self.spare, self.live)
        os.rename(between, self.spare)


# Some words, some indices, and more words than one request has.
MANY = [f"w{number:03}" for number in range(COUNT)] + ["no such word"]
ARGUMENTS: Dict[str, List[Dict[str, Any]]] = {
    "__contains__": [{"key": "w001"}, {"key": 7}],
    "__getitem__": [{"key_or_keys": 7}, {"key_or_keys": [3, "w001"]}, {"key_or_keys": MANY[:-1]}],
    "__len__": [{}],
    "close": [],
    "closer_than": [{"key1": "w001", "key2": "w002"}, {"key1": 1, "key2": 200}],
    "cosine_similarities": [],
    "distance": [{"w1": 1, "w2": 2}],
    "distances": [
        {"word_or_vector": "w001"},
        {"word_or_vector": 5, "other_words": ["w001", 9]},
        {"word_or_vector": "w001", "other_words": MANY[:-1]},
    ],
    "doesnt_match": [{"words": ["w001", "w002", "w003"]}, {"words": [1, 2, 3, "w001", "no"]}],
    "evaluate_word_analogies": [{"analogies": "questions"}],
    "evaluate_word_pairs": [{"pairs": "pairs"}],
    "get_index": [{"key": "w001"}, {"key": "no such word", "default": -1}],
    "get_mean_vector": [{"keys": MANY}, {"keys": [1, "w001"], "ignore_missing": False}],
    "get_normed_vectors": [{}],
    "get_vector": [{"key": "w001"}, {"key": 3, "norm": True}],
    "get_vectors": [{"words": MANY, "ignore_missing": True}, {"words": [*MANY[:-1], 5]}],
    "has_index_for": [{"key": "w001"}, {"key": 7}],
    "most_similar": [
        {"positive": ["w001", 3], "negative": ["w002"]},
        {"positive": ["w001"], "topn": 100_000},
        {"positive": MANY[:-1] * 25, "topn": 5},
    ],
    "most_similar_cosmul": [
        {"positive": ["w001", "w002"], "negative": ["w003"]},
        {"positive": ["w001", 2, "w003"], "negative": ["w004"]},
    ],
    "most_similar_many": [{"words": [*range(60), *MANY], "topn": 2, "ignore_missing": True}],
    "most_similar_to_given": [{"key1": 1, "keys_list": ["w001", "w002", 3]}],
    "n_similarity": [
        {"ws1": ["w001", "w002"], "ws2": ["w003"]},
        {"ws1": [1, "w002"], "ws2": ["w003", 5]},
    ],
    "rank": [{"key1": "w001", "key2": "w002"}, {"key1": 1, "key2": 2}],
    "rank_by_centrality": [{"words": ["w001", 2, "w003"]}],
    "relative_cosine_similarity": [{"wa": "w001", "wb": "w002"}, {"wa": 1, "wb": 2}],
    "similar_by_key": [{"key": 5}],
    "similar_by_vector": [{"vector": [1.0, 0.5, -0.5, 0.25]}],
    "similar_by_word": [{"word": "w001"}],
    "similarity": [{"w1": "w001", "w2": "w002"}, {"w1": 3, "w2": "w002"}],
}
PROPERTIES = ("index_to_key", "key_to_index", "vectors", "vector_size")
FORMS: Dict[str, List[Dict[str, str]]] = {
    "models": [{}],
    "near": [{"q": "w001 - w002"}],
    "analogy": [{"a": "w001", "b": "w002", "c": "W003"}],
    "odd": [{"words": "w001 w002 W003 w004"}],
    "sim": [{"a": "w001", "b": "W002"}],
}


def write_files(folder: Path) -> None:
    """The files of questions that ARGUMENTS name."""
    pick = random.Random(5)
    lines = [" ".join(pick.sample(MANY[:-1], 4)) for _ in range(40)]
    (folder / "questions").write_text(": one\n" + "\n".join(lines) + "\n")
    pairs = ["\t".join([*pick.sample(MANY[:-1], 2), str(pick.random())]) for _ in range(40)]
    (folder / "pairs").write_text("\n".join(pairs) + "\n")


Ask = Callable[[Any, KeyedVectors], Any]
"""A call; it gets a client, and KeyedVectors of it."""


def _method(name: str, given: Dict[str, Any], folder: Path) -> Ask:
    given = {
        key: folder / value if key in ("analogies", "pairs") else value
        for key, value in given.items()
    }
    return lambda client, vectors: getattr(vectors, name)(**given)


def _question(name: str, form: Dict[str, str]) -> Ask:
    return lambda client, vectors: Answers(client).ask(name, form)


def all_calls(folder: Path) -> Dict[str, Ask]:
    """Calls by name. KeyError: a method or question is new, and has no arguments above."""
    write_files(folder)
    calls: Dict[str, Ask] = {
        name: (lambda name: lambda client, vectors: getattr(vectors, name))(name)
        for name in PROPERTIES
    }
    for name, _ in inspect.getmembers(KeyedVectors, inspect.isfunction):
        if not name.startswith("_") or name in ("__contains__", "__getitem__", "__len__"):
            for number, given in enumerate(ARGUMENTS[name], 1):
                calls[f"{name} {number}"] = _method(name, given, folder)
    for name in Answers(gloved.Client("/nowhere")).questions:
        for form in FORMS[name]:
            calls[f"explore {name}"] = _question(name, form)
    calls["plot"] = lambda client, vectors: vars(
        gather(client, ["w001", "w002"], k=5, extra=MANY[:20], analogies=[("w001", "w002", "w003")])
    )
    return calls


def plain(value: Any) -> Any:
    """A value that can be compared, without what differs between two equal answers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key != "us"}
    if hasattr(value, "__next__") or isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value
