"""Runs small programs on harness: whatever goes wrong in one, its status tells. Needs no build."""
import doctest
import os
import subprocess
import sys
import tempfile
import unittest

import harness

PROGRAM = '''"""Says what it does."""
import sys, threading, time
sys.path.insert(0, {folder!r})
import harness


@harness.program(harness.SEED, harness.option("--count", 3, "how many"))
def main(arguments, verdicts):
    {body}
'''
# In the place of gloved. What it does wrong is in the environment.
STAND_IN = """#!/usr/bin/env python3
import os, signal, socket, sys
how = os.environ["STAND_IN"]
if how == "refuses":
    sys.exit("refused")
signal.signal(signal.SIGTERM, lambda *_: os._exit(3 if how == "status" else 0))
if how == "report":
    print("ERROR: AddressSanitizer", file=sys.stderr, flush=True)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[sys.argv.index("--socket") + 1])
listener.listen()
while True:
    with listener.accept()[0] as peer:
        while peer.recv(100):
            peer.sendall(b"OK 0\\n")
    if how == "ends":
        sys.exit()
"""
SERVICE = 'with harness.Service(arguments.bin, arguments.work, "m") as daemon:\n        '
WAITS = SERVICE + "while daemon.alive(): time.sleep(0.01)\n    "
# What a program does, its status, and words of its output.
CASES = (
    ('verdicts.judge("a check", True, "fine")', 0, "0 failures"),
    ('return f"{arguments.count} of 3"', 0, "3 of 3, 0 failures"),
    ('verdicts.leave_out("a check", "no way here")', 0, "not tried"),
    ('harness.skip("no way here")', 77, "skipped: no way here"),
    ('verdicts.judge("a check", False, "wrong")', 1, "FAILED: a check: wrong"),
    ('verdicts.blame("a check", ["this", "that"], "")', 1, "2 failures"),
    ('verdicts.add("wrong"); return "figures"', 1, "figures, 1 failures"),
    ('verdicts.add(*["wrong"] * 21)', 1, "21 failures"),
    ('raise OSError("wrong")', 1, "OSError: wrong"),
    ('assert False, "wrong"', 1, "AssertionError: wrong"),
    ('sys.exit("wrong")', 1, "wrong"),
    ("pass", 1, "nothing was checked"),
    # None of these may hide that something failed, or that not all was checked.
    ('verdicts.judge("a check", True, ""); sys.exit()', 1, "before it had checked all"),
    ('verdicts.judge("a check", True, ""); sys.exit(0)', 1, "before it had checked all"),
    ('verdicts.add("wrong"); harness.skip("no way here")', 1, "FAILED: wrong"),
    ('verdicts.judge("a check", True, ""); return 1', 1, "no figures"),
    ('verdicts.judge("a check", True, ""); return False', 1, "no figures"),
    (
        'verdicts.judge("a check", True, "")\n    '
        "thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()",
        1,
        "a thread ended by ZeroDivisionError",
    ),
)
# The same with a daemon, whose name says what it does wrong.
SERVICE_CASES = (
    ("nothing", SERVICE + 'return "fine"', 0, "fine"),
    ("nothing", SERVICE + 'verdicts.add(*daemon.stop()); return "fine"', 0, "fine"),
    ("nothing", SERVICE + 'raise OSError("wrong")', 1, "OSError: wrong"),
    ("nothing", SERVICE + "daemon.process.kill(); daemon.process.wait()", 1, "by itself"),
    ("nothing", SERVICE + 'daemon.kill(); return "on purpose"', 0, "on purpose"),
    ("refuses", SERVICE + 'return "fine"', 1, "gloved does not serve: refused"),
    ("status", SERVICE + 'return "fine"', 1, "the daemon ends with 3"),
    ("status", SERVICE + 'verdicts.add(*daemon.stop()); return "fine"', 1, "ends with 3"),
    ("report", SERVICE + 'return "fine"', 1, "a sanitizer reports"),
    ("ends", WAITS + 'return "fine"', 1, "the daemon ended by itself"),
    ("ends", SERVICE + 'daemon.ended(60); return "on purpose"', 0, "on purpose"),
)


class Programs(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = directory.name
        self.write("gloved", STAND_IN)

    def write(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def run_program(self, body, *arguments, stand_in="nothing"):
        folder = os.path.dirname(os.path.abspath(__file__))
        path = self.write("tried", PROGRAM.format(folder=folder, body=body))
        given = {"STAND_IN": stand_in, "TMPDIR": self.work}
        return subprocess.run(
            [sys.executable, "-B", path, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
            env=dict(os.environ, **given),
        )  # fmt: skip

    def expect(self, body, status, words, *arguments, **given):
        with self.subTest(body=body, **given):
            done = self.run_program(body, *arguments, **given)
            self.assertEqual(status, done.returncode, done.stdout)
            self.assertIn(words, done.stdout)
            self.assertEqual(["gloved", "tried"], sorted(os.listdir(self.work)))

    def test_endings(self):
        for body, status, words in CASES:
            self.expect(body, status, words, self.work)

    def test_daemons(self):
        for stand_in, body, status, words in SERVICE_CASES:
            self.expect(body, status, words, self.work, stand_in=stand_in)

    def test_usage(self):
        self.expect("pass", 0, "Says what it does.", "--help")
        self.expect("pass", 0, "how many (3)", "--help")
        for wrong in ((), ("bin", "--counts"), ("bin", "--count", "x"), ("bin", "more")):
            self.expect("pass", 2, "usage: tried", *wrong)


def load_tests(_, tests, __):
    tests.addTests(doctest.DocTestSuite(harness))
    return tests


if __name__ == "__main__":
    unittest.main()
