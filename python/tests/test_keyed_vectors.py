"""KeyedVectors against known answers of the sample, and against sums made here."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import threading
import time
from array import array
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

import gloved
from conftest import REPOSITORY, Daemon
from fake import Peer, serving
from gloved import KeyedVectors, UnknownWord, ZeroVector, _evaluation, _vectors

ODD_TEXT = b"""\
the 1 0 0
caf\xe9 0.9 0.1 0
zero 0 0 0
same 0 1 0
twin 0 1 0
c 0 0 1
caf\xc3\xa9 0.5 0.5 0.5
"quoted" 1 2 3
"""


@pytest.fixture
def kv(client: gloved.Client) -> KeyedVectors:
    return KeyedVectors(client)


@pytest.fixture(scope="module")
def shared_kv(daemon: Daemon) -> Iterator[KeyedVectors]:
    """For tests that read all words or vectors."""
    with gloved.connect(daemon.socket) as opened:
        yield opened


@pytest.fixture
def odd_kv(serve_text: Callable[[bytes], Daemon]) -> Iterator[KeyedVectors]:
    """Eight words: a zero vector, two equal ones, a word that is not UTF-8."""
    with gloved.connect(serve_text(ODD_TEXT).socket) as opened:
        yield opened


def words(hits: Any) -> List[str]:
    return [word for word, _ in hits]


def cosine(a: Any, b: Any) -> float:
    dot = sum(float(x) * float(y) for x, y in zip(a, b))
    return dot / math.sqrt(sum(float(x) ** 2 for x in a) * sum(float(y) ** 2 for y in b))


# most_similar


def test_most_similar_gives_pairs_of_word_and_cosine(kv: KeyedVectors) -> None:
    hits = kv.most_similar(positive=["king", "woman"], negative=["man"], topn=3)
    assert words(hits) == ["queen", "monarch", "throne"]
    assert [score for _, score in hits] == pytest.approx([0.769854, 0.684338, 0.675574], abs=1e-6)
    assert all(type(hit) is tuple and type(hit[1]) is float for hit in hits)


def test_a_key_may_stand_for_a_list(kv: KeyedVectors) -> None:
    expected = kv.most_similar(["king"], ["man"], topn=5)
    assert kv.most_similar("king", "man", 5) == expected
    assert kv.most_similar(positive="king", negative="man", topn=5) == expected


@pytest.mark.parametrize("dtype", ["str", "object"])
def test_an_array_of_words_is_a_list_of_them(kv: KeyedVectors, dtype: str) -> None:
    array = pytest.importorskip("numpy").array(["king", "woman"], dtype)
    expected = kv.most_similar(["king", "woman"], "man")
    assert kv.most_similar(array, "man") == expected


def test_a_weight_counts_as_it_stands_under_negative_too(kv: KeyedVectors) -> None:
    expected = kv.most_similar(["king"], ["man"])
    assert kv.most_similar(["king"], [("man", -1.0)]) == expected
    assert kv.most_similar([("king", 1), ("man", -1)]) == expected
    assert kv.most_similar(["king"], [("man", 1)]) == kv.most_similar(["king", "man"])
    assert kv.most_similar([("king", 2.5)]) != kv.most_similar([("king", -2.5)])


def test_words_of_the_query_are_not_in_the_answer(kv: KeyedVectors) -> None:
    hits = kv.most_similar(["king", "king"], ["queen", ("prince", 0.0)], topn=10002)
    assert len(hits) == 10002 - 3
    assert not {"king", "queen", "prince"} & set(words(hits))


def test_a_word_twice_counts_twice(kv: KeyedVectors) -> None:
    assert kv.most_similar(["king", "king", "man"]) == kv.most_similar([("king", 2.0), "man"])


def test_restrict_vocab_and_clip_end_search_frequent_words(kv: KeyedVectors) -> None:
    hits = kv.most_similar("king", topn=1000, restrict_vocab=100)
    assert len(hits) == 100
    assert all(kv.get_index(word) < 100 for word, _ in hits[:5])
    assert kv.most_similar("king", topn=1000, clip_end=100) == hits
    assert kv.most_similar("king", topn=1000, clip_end=7, restrict_vocab=100) == hits
    assert kv.most_similar("king", clip_start=5, restrict_vocab=100) == hits[:10]
    assert kv.most_similar("king", restrict_vocab=0) == kv.most_similar("king")
    with pytest.raises(ValueError):
        kv.most_similar("king", restrict_vocab=-1)


def test_no_words_are_wanted(kv: KeyedVectors) -> None:
    assert kv.most_similar("king", topn=0) == []
    assert kv.most_similar("no such word", topn=-1) == []
    assert kv.most_similar(topn=0) == []
    assert list(kv.most_similar_many(["king"], topn=0)) == [[]]


def test_what_is_not_answered_names_a_remedy(kv: KeyedVectors) -> None:
    with pytest.raises(NotImplementedError, match="distances"):
        kv.most_similar("king", topn=None)
    with pytest.raises(NotImplementedError, match="restrict_vocab"):
        kv.most_similar("king", clip_start=5)
    with pytest.raises(NotImplementedError, match="exact"):
        kv.most_similar("king", indexer=object())
    with pytest.raises(TypeError, match="topn"):
        kv.most_similar("king", topn=2.5)  # type: ignore[arg-type]


def test_wrong_arguments_raise_what_gensim_raises(kv: KeyedVectors) -> None:
    for arguments in ((), ([], []), (None, None)):
        with pytest.raises(ValueError):
            kv.most_similar(*arguments)
    for positive in (("king",), {"king"}, [None], [2.5], 2.5, [["king", "x"], []]):
        with pytest.raises((TypeError, ValueError)):
            kv.most_similar(positive)


def test_an_unknown_word_is_a_key_error_with_suggestions(kv: KeyedVectors) -> None:
    for call in (
        lambda: kv.most_similar("Kingg"),
        lambda: kv.get_vector("Kingg"),
        lambda: kv.get_index("Kingg"),
        lambda: kv["king", "Kingg"],
        lambda: kv.similarity("king", "Kingg"),
        lambda: kv.rank("king", "Kingg"),
        lambda: kv.most_similar_cosmul(["king", "king", "king"], ["Kingg"]),
        lambda: kv.get_mean_vector(["Kingg"], ignore_missing=False),
    ):
        with pytest.raises(KeyError) as raised:
            call()
        assert isinstance(raised.value, UnknownWord)
        assert raised.value.word == "Kingg"
        assert "king" in raised.value.suggestions


@pytest.mark.parametrize(
    "key",
    ["", "\ud800", "x" * 70_000, "\x00" * 20_000, -1, 10**9],
    ids=["empty", "surrogate", "long", "long escapes", "negative", "large"],
)
def test_a_key_that_no_model_has_is_unknown_too(kv: KeyedVectors, key: Any) -> None:
    assert key not in kv
    assert kv.get_index(key, 7) == 7
    for method in (kv.most_similar, kv.get_vector, kv.get_index, kv.similar_by_key):
        with pytest.raises(UnknownWord):
            method(key)


def test_an_int_is_the_word_of_that_frequency(shared_kv: KeyedVectors) -> None:
    index = shared_kv.get_index("king")
    assert shared_kv.index_to_key[index] == "king"
    assert shared_kv.most_similar([index, "woman"], ["man"]) == shared_kv.most_similar(
        ["king", "woman"], ["man"]
    )
    assert list(shared_kv[index]) == list(shared_kv["king"])
    assert index in shared_kv and 10002 not in shared_kv
    assert shared_kv.get_index(index) == index


def test_vectors_are_added_as_they_are(kv: KeyedVectors) -> None:
    king, man = kv.get_vector("king", norm=True), kv.get_vector("man", norm=True)
    by_words = kv.most_similar(["king", "woman"], ["man"], topn=5)
    by_vectors = kv.most_similar([king, "woman"], [man], topn=7)
    # Words are left out, the words of vectors are not.
    assert "woman" not in words(by_vectors) and "king" in words(by_vectors)
    rest = [hit for hit in by_vectors if hit[0] not in ("king", "man")]
    assert words(rest)[:5] == words(by_words)
    assert [s for _, s in rest][:5] == pytest.approx([s for _, s in by_words], abs=1e-6)
    assert kv.most_similar([(king, 2.0)], topn=1)[0] == ("king", pytest.approx(1.0))


def test_more_words_than_a_request_holds_are_added_here(shared_kv: KeyedVectors) -> None:
    many = shared_kv.index_to_key[:9000]
    hits = shared_kv.most_similar(many, topn=5)
    assert len(hits) == 5 and not set(words(hits)) & set(many)
    mean = shared_kv.get_mean_vector(many)
    assert hits[0][1] == pytest.approx(cosine(mean, shared_kv[hits[0][0]]), abs=1e-6)


def test_a_sum_of_zero_has_no_neighbours(kv: KeyedVectors) -> None:
    with pytest.raises(ZeroVector):
        kv.most_similar("king", "king")
    with pytest.raises(ZeroVector):
        kv.most_similar([kv["king"]], [kv["king"]])


def test_similar_by(kv: KeyedVectors) -> None:
    expected = kv.most_similar(["snake"], topn=3)
    assert words(expected) == ["dragon", "cat", "fish"]
    assert kv.similar_by_word("snake", 3) == expected
    assert kv.similar_by_key("snake", topn=3) == expected
    assert kv.similar_by_key("snake", 3, 1000) == kv.most_similar("snake", None, 3, 0, None, 1000)
    vector = kv["snake"]
    for form in (vector, list(vector), array("f", vector)):
        assert words(kv.similar_by_vector(form, topn=4)) == ["snake", "dragon", "cat", "fish"]
    with pytest.raises(ValueError):
        kv.similar_by_vector([1.0, 2.0])


# most_similar_cosmul


def test_cosmul_by_the_daemon_and_from_all_vectors_agree(shared_kv: KeyedVectors) -> None:
    for positive, negative in ((["king", "woman"], ["man"]), (["king"], [])):
        for top in (None, 500):
            by_daemon = shared_kv.most_similar_cosmul(positive, negative, 20, top)
            # Vectors are compared here.
            terms = [shared_kv.get_vector(word, norm=True) for word in positive]
            vectors = [shared_kv.get_vector(word, norm=True) for word in negative]
            here = shared_kv.most_similar_cosmul(terms, vectors, 20 + len(terms + vectors), top)
            asked = {*positive, *negative}
            here = [hit for hit in here if hit[0] not in asked][:20]
            assert words(by_daemon) == words(here)
            assert [s for _, s in by_daemon] == pytest.approx([s for _, s in here], rel=1e-6)


def test_cosmul_of_other_shapes(shared_kv: KeyedVectors) -> None:
    vector = shared_kv.get_vector("queen", norm=True)
    hits = shared_kv.most_similar_cosmul(["king", vector, "woman"], ["man", "man"], topn=4)

    def shifted(word: str, other: Any) -> float:
        return (1 + cosine(shared_kv[word], other)) / 2

    for word, score in hits:
        over = shifted(word, shared_kv["king"]) * shifted(word, vector)
        over *= shifted(word, shared_kv["woman"])
        expected = over / (shifted(word, shared_kv["man"]) ** 2 + 1e-6)
        assert score == pytest.approx(expected, rel=1e-6)
    assert hits[0][0] == "queen" and not {"king", "woman", "man"} & set(words(hits))
    assert [s for _, s in hits] == sorted((s for _, s in hits), reverse=True)


def test_cosmul_refuses(kv: KeyedVectors) -> None:
    assert kv.most_similar_cosmul("no such word", topn=0) == []
    for arguments in ((), ([], ["king"]), ([("king", 1.0)],)):
        with pytest.raises(ValueError):
            kv.most_similar_cosmul(*arguments)
    for no_key in (["king", 1.0], (kv["king"], 1.0)):
        with pytest.raises(TypeError):
            kv.most_similar_cosmul([no_key])
    with pytest.raises(KeyError):
        kv.most_similar_cosmul([], ["no such word"])
    with pytest.raises(NotImplementedError):
        kv.most_similar_cosmul("king", topn=None)


# Comparisons


def test_similarity_and_distance(kv: KeyedVectors) -> None:
    assert kv.similarity("king", "queen") == pytest.approx(0.750769, abs=1e-6)
    assert kv.distance("king", "queen") == 1 - kv.similarity("king", "queen")
    for word in ("king", "queen", "man", "woman", "snake"):
        assert kv.similarity(word, word) == 1


def test_rank_and_closer_than(kv: KeyedVectors) -> None:
    assert kv.rank("snake", "fish") == 3
    assert kv.closer_than("snake", "fish") == ["cat", "dragon"]  # cat is the more frequent word
    assert kv.rank("king", "king") == 1 and kv.closer_than("king", "king") == []
    assert kv.closer_than("snake", "dragon") == []
    for other in ("piano", "the"):
        assert len(kv.closer_than("snake", other)) == kv.rank("snake", other) - 1


def test_closer_than_of_more_words_than_an_answer_has(
    serve: Callable[..., Daemon], convert: Callable[[Path, Path], Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where cosines are equal, and where sums in another order cannot tell them apart."""

    def rounded(vector: Any, rows: Any) -> List[float]:
        exact = cosines(vector, rows)
        return [float(each) + (-1) ** row * 1e-12 for row, each in enumerate(exact)]

    cosines = _vectors.cosines
    monkeypatch.setattr(_vectors, "cosines", rounded)
    lines = [f"w{number} 1 {number * 1e-7:.9f} {number % 3}" for number in range(60)]
    lines += ["same 1 0.0000012 0", "twin 1 0.0000012 0", "zero 0 0 0", "back -1 0 0"]
    (tmp_path / "text").write_text("\n".join(lines) + "\n")
    model = str(convert(tmp_path / "text", tmp_path / "model"))
    with gloved.connect(serve("--model", model).socket) as kv, gloved.connect(
        serve("--model", model, "--max-k", "10").socket
    ) as small:
        for key in "w0", "w31", "same":
            for other in "w0", "w2", "w12", "w50", "w59", "same", "twin", "zero", "back":
                assert small.closer_than(key, other) == kv.closer_than(key, other), (key, other)
        assert len(kv.closer_than("w0", "w59")) > 5


def test_doesnt_match(kv: KeyedVectors) -> None:
    listed = "breakfast piano dinner lunch".split()
    assert kv.doesnt_match(listed) == "piano"
    assert kv.doesnt_match(["no such word", "", *listed]) == "piano"
    assert kv.doesnt_match(["no such word", "king"]) == "king"
    for nothing in ([], ["no such word"]):
        with pytest.raises(ValueError):
            kv.doesnt_match(nothing)


def test_rank_by_centrality(kv: KeyedVectors) -> None:
    ranked = kv.rank_by_centrality("breakfast piano dinner lunch xyzzy".split())
    assert ranked[-1] == (pytest.approx(0.514738, abs=1e-6), "piano")
    assert [score for score, _ in ranked] == sorted((s for s, _ in ranked), reverse=True)
    assert kv.rank_by_centrality(["dragon"], use_norm=False) == [
        (pytest.approx(5.374374, abs=1e-6), "dragon")
    ]


def test_ints_and_words_of_equal_scores(shared_kv: KeyedVectors) -> None:
    # Two words have the same cosine to their mean.
    for pair in itertools.product(["king", 5, "piano"], [654, 77, "snake"]):
        assert {key for _, key in shared_kv.rank_by_centrality(pair)} == set(pair)


def test_looks_words_up_strictly_whatever_the_daemon_does(
    serve: Callable[..., Daemon], model_dir: Path, kv: KeyedVectors
) -> None:
    lenient = serve("--model", str(model_dir), "--unknown", "skip", "--case", "ignore")
    calls: List[Callable[[KeyedVectors], Any]] = [
        lambda kv: "King" in kv,
        lambda kv: kv.get_index("King", -1),
        lambda kv: kv["King"],
        lambda kv: kv[["king", "zzzq", "queen"]],
        lambda kv: kv.get_mean_vector(["king", "zzzq"], ignore_missing=False),
        lambda kv: list(kv.get_mean_vector(["king", "King"])),
        lambda kv: kv.distances("king", ["King", "zzzq"]),
        lambda kv: kv.most_similar(["king", "zzzq"]),
        lambda kv: kv.most_similar(["King"]),
        lambda kv: list(kv.most_similar_many(["King"])),
        lambda kv: kv.most_similar(["king", "woman"], ["man"], topn=2),
        lambda kv: kv.most_similar_cosmul(["King", "woman"], ["man"]),
        lambda kv: kv.similarity("King", "queen"),
        lambda kv: kv.rank("King", "queen"),
        lambda kv: kv.closer_than("king", "Queen"),
        lambda kv: kv.doesnt_match(["breakfast", "Lunch", "piano", "dinner"]),
        lambda kv: kv.n_similarity(["King", "queen"], ["king", "man"]),
    ]

    def outcome(call: Callable[[KeyedVectors], Any], on: KeyedVectors) -> Any:
        try:
            return call(on)
        except (KeyError, ValueError) as error:
            return type(error), str(error)

    with gloved.connect(lenient.socket) as opened:
        for number, call in enumerate(calls):
            assert outcome(call, opened) == outcome(call, kv), number


def test_most_similar_to_given(kv: KeyedVectors) -> None:
    assert kv.most_similar_to_given("king", ["piano", "queen", "man", "queen"]) == "queen"
    with pytest.raises(ValueError):
        kv.most_similar_to_given("king", [])


def test_sets_of_words(kv: KeyedVectors) -> None:
    a, b = ["king", "queen", "no such word"], ["man", "woman", "man"]
    mean_a = [x + y for x, y in zip(kv["king"], kv["queen"])]
    mean_b = [2 * x + y for x, y in zip(kv["man"], kv["woman"])]
    assert kv.n_similarity(a, b) == pytest.approx(cosine(mean_a, mean_b), abs=1e-6)
    assert kv.n_similarity(["no such word"], b) == 0
    with pytest.raises(ZeroDivisionError):
        kv.n_similarity([], b)
    near = sum(score for _, score in kv.most_similar("king", topn=7))
    expected = kv.similarity("king", "man") / near
    assert kv.relative_cosine_similarity("king", "man", 7) == pytest.approx(expected)
    for word in "man", "", -1:
        with pytest.raises(ValueError):
            kv.relative_cosine_similarity("king", word, 0)


def test_get_mean_vector(kv: KeyedVectors) -> None:
    king, queen = kv["king"], kv["queen"]
    mean = kv.get_mean_vector(["king", queen, "no such word"], [2, -1, 9], pre_normalize=False)
    assert list(mean) == pytest.approx([(2 * x - y) / 3 for x, y in zip(king, queen)], abs=1e-6)
    unit = kv.get_mean_vector(["king"], post_normalize=True)
    assert list(unit) == pytest.approx(list(kv.get_vector("king", norm=True)), abs=1e-7)
    assert set(kv.get_mean_vector(["no such word"])) == {0.0}
    for keys, weights in (([], None), (["king"], [1, 2]), ([king[:5]], None)):
        with pytest.raises(ValueError):
            kv.get_mean_vector(keys, weights)


def test_distances(shared_kv: KeyedVectors) -> None:
    some = shared_kv.distances("king", ["queen", "king"])
    assert list(some) == pytest.approx([1 - 0.750769, 0], abs=1e-6)
    every = shared_kv.distances(shared_kv["king"])
    assert len(every) == 10002
    assert every[shared_kv.get_index("queen")] == pytest.approx(some[0], abs=1e-6)


# Words and vectors


def test_vectors_are_float32_and_read_only(kv: KeyedVectors) -> None:
    numpy = pytest.importorskip("numpy")
    vector = kv["king"]
    assert vector.shape == (100,) and vector.dtype == numpy.float32
    assert kv.vector_size == 100
    for each in (vector, kv.get_vector("king", norm=True), kv.vectors):
        with pytest.raises(ValueError):
            each[0] = 1
    assert kv[["king", "queen"]].shape == (2, 100)
    assert (kv[["queen", "king"]][1] == vector).all()
    assert numpy.linalg.norm(kv.get_vector("king", norm=True)) == pytest.approx(1)
    with pytest.raises(ValueError):
        kv[[]]


def test_words_and_indices(shared_kv: KeyedVectors) -> None:
    listed = shared_kv.index_to_key
    assert len(shared_kv) == len(listed) == len(set(listed)) == 10002
    assert shared_kv.key_to_index["king"] == shared_kv.get_index("king") == 654
    assert "king" in shared_kv and "King" not in shared_kv
    assert shared_kv.has_index_for("king") and None not in shared_kv  # type: ignore[operator]
    row = shared_kv.vectors[654]
    assert list(row) == list(shared_kv["king"])


@pytest.mark.parametrize("max_k", [30, 1000])
def test_all_words_are_found_by_prefixes(
    serve: Callable[..., Daemon], model_dir: Path, shared_kv: KeyedVectors, max_k: int
) -> None:
    started = serve("--model", str(model_dir), "--max-k", str(max_k))
    with gloved.connect(started.socket) as limited:
        assert limited.index_to_key == shared_kv.index_to_key


def test_odd_words_and_vectors(odd_kv: KeyedVectors) -> None:
    assert odd_kv.index_to_key == [
        "the", "caf\udce9", "zero", "same", "twin", "c", "café", '"quoted"'
    ]  # fmt: skip
    assert list(odd_kv["caf\udce9"]) == pytest.approx([0.9, 0.1, 0])
    assert list(odd_kv.vectors[6]) == [0.5, 0.5, 0.5]
    assert odd_kv.similarity("zero", "c") == odd_kv.similarity("c", "zero") == 0
    assert odd_kv.similarity("zero", "zero") == 0
    assert odd_kv.rank("zero", "c") == 1 and odd_kv.closer_than("zero", "c") == []
    assert all(math.isnan(x) for x in odd_kv.get_vector("zero", norm=True))
    assert odd_kv.most_similar(["zero", "the"]) == [
        hit for hit in odd_kv.most_similar("the") if hit[0] != "zero"
    ]
    assert odd_kv.doesnt_match(["zero", "zero", "zero"]) == "zero"
    assert odd_kv.most_similar_many(["zero", "c"], ignore_missing=True).__next__() == []
    with pytest.raises(ZeroVector):
        odd_kv.most_similar("zero")


def test_words_as_close_are_not_closer(odd_kv: KeyedVectors) -> None:
    assert odd_kv.closer_than("café", "twin") == ["caf\udce9", '"quoted"']


def test_get_vectors(shared_kv: KeyedVectors) -> None:
    listed = shared_kv.index_to_key[::7] * 2
    matrix = shared_kv.get_vectors(iter(listed))
    assert len(matrix) == len(listed)
    for place in (0, 128, 129, len(listed) - 1):
        assert list(matrix[place]) == list(shared_kv[listed[place]])
    with pytest.raises(UnknownWord):
        shared_kv.get_vectors([*listed, "no such word"])
    mixed = shared_kv.get_vectors(["king", "no such word", "", "queen"], ignore_missing=True)
    assert [any(row) for row in mixed] == [True, False, False, True]
    assert list(mixed[3]) == list(shared_kv["queen"])
    assert len(shared_kv.get_vectors([])) == 0


def test_most_similar_many(kv: KeyedVectors) -> None:
    listed = ["king", "snake", "queen", "king"]
    assert list(kv.most_similar_many(listed, 4)) == [kv.most_similar(w, topn=4) for w in listed]
    assert list(kv.most_similar_many(["king"], 4, 500)) == [
        kv.most_similar("king", topn=4, restrict_vocab=500)
    ]


def test_most_similar_many_takes_words_and_indices_on_one_connection(daemon: Daemon) -> None:
    with KeyedVectors(gloved.Client(daemon.socket, max_connections=1, timeout=5)) as kv:
        keys = ["king", 1, "queen", 2]
        expected = [kv.most_similar(key, topn=3) for key in keys]
    with KeyedVectors(gloved.Client(daemon.socket, max_connections=1, timeout=5)) as kv:
        assert list(kv.most_similar_many(keys, 3)) == expected


def test_most_similar_many_takes_words_as_it_goes(kv: KeyedVectors) -> None:
    endless = itertools.cycle(["king", "snake"])
    taken = itertools.islice(kv.most_similar_many(endless, 1), 5)
    assert [hits[0][0] for hits in taken] == ["prince", "dragon"] * 2 + ["prince"]


@pytest.mark.parametrize("unknown", ["no such word", "", 10**9])
def test_most_similar_many_raises_in_turn(kv: KeyedVectors, unknown: Any) -> None:
    answers = kv.most_similar_many(["king", unknown, "queen"])
    assert len(next(answers)) == 10
    with pytest.raises(UnknownWord):
        next(answers)
    some = kv.most_similar_many(["king", unknown, "queen"], ignore_missing=True)
    assert [len(hits) for hits in some] == [10, 0, 10]


# The daemon


def test_what_was_read_is_dropped_when_the_model_is_replaced(
    own_model_dir: Path,
    tmp_path: Path,
    convert: Callable[[Path, Path], Path],
    serve: Callable[..., Daemon],
) -> None:
    started = serve("--model", str(own_model_dir))
    text = tmp_path / "other.txt"
    text.write_bytes(ODD_TEXT)
    with gloved.connect(started.socket) as kv:
        assert len(kv.vectors) == len(kv.index_to_key) == 10002
        first = kv.index_to_key
        assert kv.index_to_key is first
        for file in own_model_dir.iterdir():
            file.unlink()
        own_model_dir.rmdir()
        convert(text, own_model_dir)
        kv.client.reload()
        time.sleep(0.11)
        assert kv.index_to_key[0] == "the" and len(kv.index_to_key) == 8
        assert len(kv.vectors) == len(kv) == 8 and kv.vector_size == 3
        assert list(kv[5]) == [0, 0, 1]


def test_a_restart_is_not_noticed(daemon: Daemon, kv: KeyedVectors) -> None:
    before = kv.most_similar("king")
    daemon.restart()
    assert kv.most_similar("king") == before


def test_connect_asks_at_once(daemon: Daemon, tmp_path: Path) -> None:
    with gloved.connect(daemon.socket) as kv:
        assert isinstance(kv.client, gloved.Client)
    with pytest.raises(ValueError):
        len(kv)
    with pytest.raises(gloved.ConnectionFailed):
        gloved.connect(tmp_path / "no socket", retries=0)
    with pytest.raises(gloved.UnknownModel):
        gloved.connect(daemon.socket, model="no such model")


def test_another_model(
    serve: Callable[..., Daemon],
    model_dir: Path,
    tmp_path: Path,
    convert: Callable[[Path, Path], Path],
) -> None:
    text = tmp_path / "odd.txt"
    text.write_bytes(ODD_TEXT)
    odd = convert(text, tmp_path / "odd")
    started = serve("--model", f"glove={model_dir}", "--model", f"odd={odd}")
    with gloved.connect(started.socket, model="odd") as kv:
        assert len(kv) == 8 and kv.vector_size == 3 and kv.vectors.shape == (8, 3)
    with gloved.connect(started.socket) as kv:
        assert len(kv) == 10002 and kv.vector_size == 100


def test_threads_share_one(daemon: Daemon) -> None:
    with gloved.connect(daemon.socket) as kv:
        results: List[Any] = []

        def use() -> None:
            results.append((kv.most_similar(["king", 5]), kv.vectors, kv.index_to_key))

        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 8
        # They read words and vectors once.
        assert len({(id(vectors), id(listed)) for _, vectors, listed in results}) == 1
        assert all(hits == results[0][0] for hits, _, _ in results)


# What gensim 4 documents of KeyedVectors, and of what it inherits from SaveLoad.
GENSIM = """
__contains__ __delitem__ __getitem__ __iter__ __len__ __setitem__ add_lifecycle_event add_vector
add_vectors allocate_vecattrs closer_than cosine_similarities distance distances doesnt_match
evaluate_word_analogies evaluate_word_pairs expandos fill_norms get_index get_mean_vector
get_normed_vectors get_vecattr get_vector has_index_for index2entity index2word index_to_key
init_sims intersect_word2vec_format key_to_index lifecycle_events load load_word2vec_format
log_accuracy log_evaluate_word_pairs mapfile_path most_similar most_similar_cosmul
most_similar_to_given n_similarity next_index norms rank rank_by_centrality
relative_cosine_similarity resize_vectors save save_word2vec_format set_vecattr similar_by_key
similar_by_vector similar_by_word similarity similarity_unseen_docs sort_by_descending_frequency
unit_normalize_all vector_size vectors vectors_for_all vectors_lockf vectors_norm vocab wmdistance
word_vec words_closer_than
"""
# Those of gensim 3 that old notebooks have.
GENSIM_3 = "accuracy add get_keras_embedding similarity_matrix syn0 syn0norm wv"


@pytest.mark.parametrize("name", (GENSIM + GENSIM_3).split())
def test_a_name_of_gensim_is_there_or_tells_what_to_use(shared_kv: KeyedVectors, name: str) -> None:
    for of in shared_kv, KeyedVectors:
        try:
            getattr(of, name)
        except AttributeError as error:
            prefix = f"gloved's KeyedVectors has no {name}: "
            assert str(error).startswith(prefix) and len(str(error)) > len(prefix)


def test_what_is_absent_names_what_to_use(kv: KeyedVectors) -> None:
    with pytest.raises(AttributeError, match="gloved.convert"):
        KeyedVectors.load_word2vec_format("file")
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        kv.no_such_thing
    for name in "get", "wv", "syn0", "syn0norm":
        with pytest.raises(AttributeError, match="use |leave out"):
            getattr(kv, name)
    with pytest.raises(TypeError, match="another model"):
        kv["king"] = kv["queen"]
    with pytest.raises(TypeError, match="another model"):
        del kv["king"]


def test_iteration_is_refused_at_once(kv: KeyedVectors) -> None:
    for loop in (list, iter, sorted, lambda each: [word for word in each]):
        with pytest.raises(TypeError, match="index_to_key has all words"):
            loop(kv)  # type: ignore[operator]


def test_repr_tells_the_model(kv: KeyedVectors) -> None:
    name = kv.client.models()[0].model
    told = f"KeyedVectors<vector_size=100, 10002 keys, model {name!r}>"
    with gloved.connect(kv.client._socket) as connected:
        assert repr(connected) == told
        # Another model has another size, which nobody has told.
        connected._cache.note("another generation")
        assert str(kv.client._socket) in repr(connected)
        assert connected.vector_size == 100
        assert repr(connected) == told


def test_repr_asks_nothing() -> None:
    with serving(Peer.ignore) as server:
        silent = KeyedVectors(gloved.Client(server.socket, model="some", timeout=0.2, retries=0))
        assert repr(silent) == f"KeyedVectors<Client({server.socket!r}, model='some')>"
        later = gloved.AsyncClient(server.socket, model="some")
        assert repr(later) == f"AsyncClient({server.socket!r}, model='some')"
    assert server.lines == []


def test_a_cosine_is_one_number(
    serve: Callable[..., Daemon], own_model_dir: Path, bin_dir: Path
) -> None:
    """Also where the daemon stored the neighbours, which it counts."""
    subprocess.run([bin_dir / "gloved-neighbors", own_model_dir], check=True, capture_output=True)
    daemon = serve("--model", str(own_model_dir))
    with gloved.connect(daemon.socket) as kv:
        listed = kv.index_to_key[::10]
        one_by_one = [kv.most_similar(word) for word in listed]
        assert kv.client.stats()["answers_neighbors"] == len(listed) > 1000
        assert list(kv.most_similar_many(listed)) == one_by_one
        assert kv.client.stats()["answers_neighbors"] == 2 * len(listed)
        for number, (word, hits) in enumerate(zip(listed, one_by_one)):
            near, score = hits[number % len(hits)]
            assert score == kv.similarity(word, near)
            assert 1 - score == kv.distance(word, near)


def test_restrict_vocab_may_be_the_words_to_search(kv: KeyedVectors) -> None:
    some = ["piano", "cat", "fish", "king", "snake"]
    hits = kv.most_similar("snake", restrict_vocab=some)
    assert words(hits) == ["cat", "fish", "king", "piano"]
    assert all(score == kv.similarity("snake", word) for word, score in hits)
    assert kv.similar_by_word("snake", 2, tuple(some)) == hits[:2]
    assert kv.most_similar("snake", restrict_vocab=[kv.get_index(word) for word in some]) == hits
    assert list(kv.most_similar_many(["snake"], 3, iter(some))) == [hits[:3]]
    every = dict(kv.most_similar(["king", "woman"], ["man"], topn=10002))
    sums = kv.most_similar(["king", "woman"], ["man"], restrict_vocab=some)
    assert dict(sums) == {word: every[word] for word in ("piano", "cat", "fish", "snake")}
    with pytest.raises(UnknownWord, match="qwfp"):
        kv.most_similar("snake", restrict_vocab=["cat", "qwfp"])
    with pytest.raises(NotImplementedError, match="cosine_similarities"):
        kv.similar_by_vector(kv["snake"], restrict_vocab=some)
    with pytest.raises(ValueError, match="empty list"):
        kv.most_similar("snake", restrict_vocab=[])


def test_restrict_vocab_is_a_number_elsewhere(kv: KeyedVectors) -> None:
    for no_number in ("king", 1.5):
        with pytest.raises(TypeError, match="restrict_vocab is a number.*within="):
            kv.most_similar("king", restrict_vocab=no_number)  # type: ignore[arg-type]
    for words_instead in (["king"], ("king",), [], {"king"}):
        with pytest.raises(TypeError, match="restrict_vocab is a number.*most_similar"):
            kv.most_similar_cosmul("king", restrict_vocab=words_instead)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="clip_end is a number"):
            kv.most_similar("king", clip_end=words_instead)  # type: ignore[arg-type]


# Evaluations


def test_evaluate_word_analogies(kv: KeyedVectors, tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(
        ": family\nman king woman queen\nMan King Woman Piano\nman king woman xyzzy\n"
        "only three words\n: capitals\nfrance paris germany berlin\n"
    )
    score, sections = kv.evaluate_word_analogies(path)
    assert score == 2 / 3
    assert sections == [
        {
            "section": "family",
            "correct": [("MAN", "KING", "WOMAN", "QUEEN")],
            "incorrect": [("MAN", "KING", "WOMAN", "PIANO")],
        },
        {
            "section": "capitals",
            "correct": [("FRANCE", "PARIS", "GERMANY", "BERLIN")],
            "incorrect": [],
        },
        {
            "section": "Total accuracy",
            "correct": [
                ("MAN", "KING", "WOMAN", "QUEEN"),
                ("FRANCE", "PARIS", "GERMANY", "BERLIN"),
            ],
            "incorrect": [("MAN", "KING", "WOMAN", "PIANO")],
        },
    ]
    assert kv.evaluate_word_analogies(path, dummy4unknown=True)[0] == 2 / 4
    assert kv.evaluate_word_analogies(path, case_insensitive=False)[0] == 1
    # berlin has rank 2,368: not all words of that question are among 2,000.
    assert kv.evaluate_word_analogies(path, restrict_vocab=2000)[1][1]["correct"] == []
    path.write_text("man king woman queen\n")
    with pytest.raises(ValueError, match="line 1"):
        kv.evaluate_word_analogies(path)


def test_analogies_are_asked_of_frequent_words(
    serve_text: Callable[[bytes], Daemon], tmp_path: Path
) -> None:
    # Six rare words are nearer than the answer. B is rarer than b, and its answer would be other.
    rare = "".join(f"rare{i} -1 1 1.00{i}\n" for i in range(6))
    text = (
        "a 1 0 0\nb 0 1 0\nc 0 0 1\nanswer -1 1 0.9\n"
        f"B 5 -5 5\nother -0.42 -0.58 1.58\n{rare}"
    )
    path = tmp_path / "questions.txt"
    path.write_text(": one\na b c answer\n")
    with gloved.connect(serve_text(text.encode()).socket) as kv:
        assert kv.evaluate_word_analogies(path, restrict_vocab=6)[0] == 1
        assert kv.evaluate_word_analogies(path)[0] == 0
        assert kv.evaluate_word_analogies(path, restrict_vocab=3)[1][0]["incorrect"] == []


def test_evaluate_word_pairs(kv: KeyedVectors, tmp_path: Path) -> None:
    lines = ["king\tqueen\t9.5", "King\tpiano\t1", "snake\tcat\t7.5", "dinner\tlunch\t9"]
    path = tmp_path / "pairs.tsv"
    path.write_text("# comment\n" + "\n".join([*lines, "king\txyzzy\t5", "bad line"]) + "\n")
    gold = [9.5, 1, 7.5, 9]
    ours = [kv.similarity(*line.lower().split("\t")[:2]) for line in lines]
    pearson, spearman, unknown = kv.evaluate_word_pairs(path)
    assert pearson == _evaluation.pearson(gold, ours)
    assert spearman[0] == pytest.approx(0.8)
    assert unknown == 20
    with_unknown = kv.evaluate_word_pairs(path, dummy4unknown=True)
    assert with_unknown[0] == _evaluation.pearson([*gold, 5], [*ours, 0])
    assert kv.evaluate_word_pairs(path, case_insensitive=False)[2] == 40
    with pytest.raises(ValueError):
        kv.evaluate_word_pairs(path, delimiter=",")


def test_how_likely_a_correlation_is() -> None:
    # Anscombe's first quartet; scipy.stats.pearsonr gives the same figures.
    x = [10.0, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
    y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
    assert _evaluation.pearson(x, y) == pytest.approx((0.81642052, 0.00216963), abs=1e-8)
    assert _evaluation.pearson([1, 2, 3], [2, 4, 6]) == (1.0, 0.0)
    with pytest.raises(ValueError):
        _evaluation.pearson([1], [2])


# Without numpy

WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
import gloved
from array import array
kv = gloved.connect(sys.argv[1])
king = kv["king"]
assert isinstance(king, array) and king.typecode == "f" and len(king) == 100
print([word for word, _ in kv.most_similar([king, "woman"], ["man"], topn=3)])
print([word for word, _ in kv.most_similar_cosmul(["king", "woman", "queen"], ["man"], topn=3)])
print(kv.doesnt_match(["breakfast", 5, "dinner", "lunch"]), len(kv[["king", "queen"]]))
print(round(kv.n_similarity(["king", "queen"], ["man"]), 6), kv.rank("snake", "fish"))
print([round(x, 6) for x in kv.distances("king", ["queen", "man"])], len(kv.distances("king")))
print([round(x, 6) for x in kv.get_mean_vector(["king", king], [1, -2])[:3]])
print([round(x, 6) for x in kv.get_vectors(["king", "xyzzy"], ignore_missing=True)[0][:3]])
print(round(kv.get_normed_vectors()[654][0], 6), round(kv.get_vector("king", True)[0], 6))
"""


def test_answers_without_numpy(daemon: Daemon) -> None:
    with_numpy = WITHOUT_NUMPY.replace('sys.modules["numpy"] = None', "")
    if "numpy" not in sys.modules:
        pytest.skip("there is no numpy to compare with")
    with_numpy = with_numpy.replace("assert isinstance", "0 and isinstance")
    printed: Dict[str, str] = {}
    for script in (WITHOUT_NUMPY, with_numpy):
        printed[script] = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, daemon.socket],
            check=True,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            env={"PYTHONPATH": str(REPOSITORY / "python")},
        ).stdout.replace("float32", "")
    assert printed[WITHOUT_NUMPY] == printed[with_numpy]
    assert "'queen'" in printed[WITHOUT_NUMPY].splitlines()[0]
