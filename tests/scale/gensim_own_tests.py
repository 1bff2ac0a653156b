#!/usr/bin/env python3
"""Runs gensim's tests of its KeyedVectors against gloved's.

    gensim_own_tests.py BIN_DIR TEST_KEYEDVECTORS_PY DATA_DIR

TEST_KEYEDVECTORS_PY is gensim/test/test_keyedvectors.py of gensim 4.2.0. Debian's python3-gensim
has it, in /usr/lib/python3/dist-packages. DATA_DIR is gensim/test/test_data, which only
gensim's sources have. The tests run unchanged, but load_word2vec_format() converts the file, starts
a daemon and returns a gloved.KeyedVectors.

Prints each test, and why some do not apply. Exit status 1 if a test fails, or if one that is named
here as not applicable would pass. Needs Debian's python3-gensim, which the tests import.
"""
import contextlib
import importlib.util
import os
import sys
import tempfile
import unittest

import gensim.models
import gensim.models.keyedvectors
import gensim.test.utils

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../python"), os.path.join(HERE, "../faults")]
import gloved  # noqa: E402
import harness  # noqa: E402

WRITES = "adds or replaces words: a model is read only"
SAVES = "makes a KeyedVectors of its own and saves it"
ATTRIBUTES = "reads attributes of words besides the vector (count)"
LOADS = "tests how gensim reads a file; gloved-convert has tests of its own"
NOT_APPLICABLE = {
    "TestKeyedVectors.test_add_single": WRITES,
    "TestKeyedVectors.test_add_multiple": WRITES,
    "TestKeyedVectors.test_add_type": WRITES,
    "TestKeyedVectors.test_set_item": WRITES,
    "TestKeyedVectors.test_save_reload": SAVES,
    "TestKeyedVectors.test_no_header": SAVES,
    "TestKeyedVectors.test_vectors_for_all_list": "makes a KeyedVectors of some words",
    "TestKeyedVectors.test_vectors_for_all_with_copy_vecattrs": ATTRIBUTES,
    "TestKeyedVectors.test_vectors_for_all_without_copy_vecattrs": ATTRIBUTES,
    "TestKeyedVectors.test_most_similar_topn": "asks topn=None; topn=5, 10 and 0 are asked below",
    "TestKeyedVectors.test_load_model_and_vocab_file_strict": LOADS,
    "TestKeyedVectors.test_load_model_and_vocab_file_replace": LOADS,
    "TestKeyedVectors.test_load_model_and_vocab_file_ignore": LOADS,
    "Gensim320Test.test": "loads a pickle of gensim 3.2",
    "LoadWord2VecFormatTest.test_load_word2vec_format_basic": LOADS,
    "LoadWord2VecFormatTest.test_load_word2vec_format_limit": LOADS,
    "LoadWord2VecFormatTest.test_load_word2vec_format_space_stripping": LOADS,
}


class Loader:
    """Stands for the class in the tests: loads a file by converting and serving it."""

    def __init__(self, bin_dir, directory, cleanup):
        self.bin_dir, self.directory, self.cleanup = bin_dir, directory, cleanup
        self.loaded = {}

    def __call__(self, *_, **__):
        raise NotImplementedError(SAVES)

    def load(self, *_, **__):
        raise NotImplementedError("gloved has no pickles")

    def load_word2vec_format(self, path, binary=False, **options):
        if options:
            raise NotImplementedError(LOADS)
        if path not in self.loaded:
            self.loaded[path] = self.serve(path)
        return self.loaded[path]

    def serve(self, path):
        work = tempfile.mkdtemp(dir=self.directory)
        model = harness.convert(self.bin_dir, path, os.path.join(work, "model"))
        service = harness.Service(self.bin_dir, work, model, engine=None)
        daemon = self.cleanup.enter_context(service)
        return self.cleanup.enter_context(gloved.connect(daemon.path))


def topn_without_none(vectors):
    """gensim's test_most_similar_topn but for topn=None."""
    import numpy

    return [len(vectors.most_similar("war", topn=n)) for n in (5, 10, 0, numpy.uint8(0))] == [
        5,
        10,
        0,
        0,
    ]


def tests_of(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from tests_of(each)
        else:
            yield each


@harness.program(
    harness.option("tests", None, "gensim's test_keyedvectors.py"),
    harness.option("data", None, "gensim's test_data"),
)
def main(arguments, verdicts):
    with contextlib.ExitStack() as cleanup:
        loader = Loader(arguments.bin, arguments.work, cleanup)
        gensim.models.KeyedVectors = loader
        gensim.models.keyedvectors.KeyedVectors = loader
        gensim.test.utils.datapath = lambda name: os.path.join(arguments.data, name)
        spec = importlib.util.spec_from_file_location("test_keyedvectors", arguments.tests)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        counts = {"passed": 0, "not applicable": 0, "failed": 0}
        for test in tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)):
            name = test.id().split(".", 1)[1]
            result = unittest.TestResult()
            test.run(result)
            reason = NOT_APPLICABLE.get(name)
            trouble = [text for _, text in result.failures + result.errors]
            kind = "not applicable" if reason and trouble else "failed" if trouble else "passed"
            if reason and not trouble:
                kind, trouble = "failed", ["it passes, and is named as not applicable"]
            counts[kind] += 1
            print(f"{kind:<15} {name}" + (f": {reason}" if kind == "not applicable" else ""))
            if kind == "failed":
                verdicts.add(f"{name}: {''.join(trouble)}")
        vectors = loader.load_word2vec_format(os.path.join(arguments.data, "euclidean_vectors.bin"))
        if not topn_without_none(vectors):
            verdicts.add("topn=5, 10, 0")
    verdicts.judge("gensim's tests", counts["passed"] > 0, str(counts))
