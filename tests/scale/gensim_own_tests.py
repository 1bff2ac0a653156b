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
import argparse
import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import gensim.models
import gensim.models.keyedvectors
import gensim.test.utils

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import gloved  # noqa: E402

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
        model = os.path.join(self.directory, f"model{len(self.loaded)}")
        socket = model + ".sock"
        subprocess.run(
            [os.path.join(self.bin_dir, "gloved-convert"), path, model],
            check=True,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        daemon = subprocess.Popen(
            [os.path.join(self.bin_dir, "gloved"), "--model", model, "--socket", socket],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.cleanup.callback(daemon.wait, 60)
        self.cleanup.callback(daemon.terminate)
        return self.cleanup.enter_context(gloved.connect(socket))


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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bin_dir", metavar="BIN_DIR")
    parser.add_argument("tests", metavar="TEST_KEYEDVECTORS_PY")
    parser.add_argument("data", metavar="DATA_DIR")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as cleanup:
        directory = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="gloved-gensim-"))
        loader = Loader(arguments.bin_dir, directory, cleanup)
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
                print("".join(f"    {line}\n" for line in "".join(trouble).splitlines()), end="")
        vectors = loader.load_word2vec_format(os.path.join(arguments.data, "euclidean_vectors.bin"))
        if not topn_without_none(vectors):
            counts["failed"] += 1
            print("failed          topn=5, 10, 0")
        print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
