"""What gensim's KeyedVectors has and gloved's has not, and what to use instead."""

from __future__ import annotations

from typing import Any, NoReturn

OTHER_MODEL = (
    "another set of words is another model: write a text file, and convert it behind the"
    " download, gloved.convert(download, own, model=name)"
)
_LOADING = "gloved.serve(gloved.convert(file)) does so; gloved.connect() asks a daemon that runs"
_NO_EVENTS = "a model does not change; report.json in its directory tells what it was made of"
_NO_ATTRIBUTES = "gloved keeps words and vectors alone; get_index() tells the frequency rank"
_INSTEAD = {
    "accuracy": "use evaluate_word_analogies(file)",
    "add": OTHER_MODEL,
    "add_lifecycle_event": _NO_EVENTS,
    "add_vector": OTHER_MODEL,
    "add_vectors": OTHER_MODEL,
    "allocate_vecattrs": _NO_ATTRIBUTES,
    "expandos": _NO_ATTRIBUTES,
    "fill_norms": "the daemon has the norms; get_vector(key, norm=True) gives a vector of length 1",
    "get": "use get_vector(key) and except KeyError, or get_index(key, default)",
    "get_keras_embedding": "make a layer whose weights are [vectors]",
    "get_vecattr": _NO_ATTRIBUTES,
    "index2entity": "use index_to_key",
    "index2word": "use index_to_key",
    "init_sims": "nothing needs to be prepared: leave it out",
    "intersect_word2vec_format": OTHER_MODEL,
    "lifecycle_events": _NO_EVENTS,
    "load": _LOADING,
    "load_word2vec_format": _LOADING,
    "log_accuracy": "evaluate_word_analogies() returns the figures; gloved-eval prints them",
    "log_evaluate_word_pairs": "evaluate_word_pairs() returns the figures; gloved-eval prints them",
    "mapfile_path": _LOADING,
    "next_index": OTHER_MODEL,
    "norms": "numpy.linalg.norm(vectors, axis=1) computes them from vectors",
    "resize_vectors": OTHER_MODEL,
    "save": "the model's files are the daemon's; gloved-convert --export writes them as text",
    "save_word2vec_format": "gloved-convert --export writes a model as text",
    "set_vecattr": _NO_ATTRIBUTES,
    "similarity_matrix": "client.matrix(words) gives the cosine of every word with every word",
    "similarity_unseen_docs": "it is a method of gensim's Doc2Vec alone",
    "sort_by_descending_frequency": "words are in order of frequency already",
    "syn0": "use vectors",
    "syn0norm": "use get_normed_vectors()",
    "unit_normalize_all": "get_normed_vectors() gives vectors of length 1",
    "vectors_for_all": "get_vectors(words) gives the vectors of words as one array",
    "vectors_lockf": OTHER_MODEL,
    "vectors_norm": "use get_normed_vectors()",
    "vocab": "use key_to_index and index_to_key",
    "wmdistance": "«Word Mover's Distance» in docs/recipes.md has a function for it",
    "word_vec": "use get_vector(key)",
    "words_closer_than": "use closer_than(key1, key2)",
    "wv": "this object is the KeyedVectors: leave out .wv",
}


def explain_absent(name: str) -> NoReturn:
    """Raises the AttributeError of a name that KeyedVectors has not."""
    if name in _INSTEAD:
        raise AttributeError(f"gloved's KeyedVectors has no {name}: {_INSTEAD[name]}")
    raise AttributeError(f"gloved's KeyedVectors has no attribute {name!r}")


class ExplainsAbsent(type):
    """The type of KeyedVectors, so that KeyedVectors.load(…) tells what to do instead, too."""

    def __getattr__(cls, name: str) -> Any:
        explain_absent(name)
