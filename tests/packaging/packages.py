"""Shared by the programs of this folder: commands that must succeed, packages and their suites."""
import os
import re
import subprocess

PROJECT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
IN_ROOT = os.path.join(PROJECT, "scripts/in_root")
SUITES = {"deb12": "bookworm", "deb13": "trixie"}


class Failed(Exception):
    """A check failed."""


def expect(held, otherwise):
    if not held:
        raise Failed(otherwise)


def must(command, **options):
    """Runs a command; returns its output."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options
    )
    if done.returncode != 0:
        raise Failed(
            f"{' '.join(command)} ends with {done.returncode}:"
            f" {(done.stdout + done.stderr).strip()[-2000:]}"
        )
    return done.stdout


def fresh_root(suite, *lists):
    """The directory of a fresh Debian with these lists of packages, which must not be changed."""
    chosen = ["--with", ",".join(lists)] if lists else []
    return must([IN_ROOT, *chosen, "--path", suite]).strip()


def suite_of(package):
    """The suite that a package's version names, or None."""
    version = must(["dpkg-deb", "--field", package, "Version"])
    found = re.search(r"~(deb\d+)u", version)
    return SUITES.get(found.group(1)) if found else None
