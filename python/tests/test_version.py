"""The package has the version of the project, which CMakeLists.txt names."""

from __future__ import annotations

import re
from pathlib import Path

import gloved

PROJECT = Path(__file__).resolve().parents[2]


def test_version_is_the_projects() -> None:
    lists = (PROJECT / "CMakeLists.txt").read_text(encoding="utf-8")
    version = re.search(r"^project\(gloved\s+VERSION (\S+)$", lists, re.MULTILINE)
    assert version is not None
    assert gloved.__version__ == version[1]
