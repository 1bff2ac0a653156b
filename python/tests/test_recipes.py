"""Runs the Python of docs/python.md and docs/gensim.md, a script for each section, and compares
what it prints.

A block «text» after a block «python» shows the whole output of the blocks before it. The daemon
serves the sample twice, as the models glove and news. One constant of the pages is made smaller.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, List, NamedTuple

import pytest
from conftest import LISTS

import gloved

PROJECT = Path(__file__).resolve().parents[2]
PAGES = [PROJECT / "docs" / name for name in ("python.md", "gensim.md")]
READMES = ("README.md", "python/README.md")
TIMEOUT_SECONDS = 60

# What the page asks for takes minutes.
SMALLER = ("COUNT = 1_000_000", "COUNT = 500")
MANY = 15


class Recipe(NamedTuple):
    """The Python of a section of the page, and what it shows of the output."""

    title: str
    code: str
    output: str


def recipes(page: str) -> List[Recipe]:
    """The sections that have Python. ValueError: a block is neither python nor text."""
    found = []
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        code = output = ""
        for language, block in re.findall(r"^```(.*)\n((?:.*\n)*?)```$", section, re.MULTILINE):
            if language == "python":
                code += block
            elif language == "text":
                output += block
            else:
                raise ValueError(f"a block of «{language}»; blocks are python or text")
        if code:
            found.append(Recipe(section.split("\n", 1)[0], code, output))
    return found


def run(code: str, folder: Path, socket: str) -> "subprocess.CompletedProcess[str]":
    """Runs a script as a reader would: a file, in a process of its own."""
    script = folder / "recipe.py"
    script.write_text(code, encoding="utf-8")
    environment = dict(os.environ, GLOVED_SOCKET=socket, PYTHONPATH=str(PROJECT / "python"))
    return subprocess.run(
        [sys.executable, "-B", str(script)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )


RECIPES = [recipe for page in PAGES for recipe in recipes(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("recipe", RECIPES, ids=[recipe.title for recipe in RECIPES])
def test_recipe_prints_what_the_page_shows(
    recipe: Recipe, serve: Callable[..., Any], model_dir: Path, tmp_path: Path
) -> None:
    if "import pandas" in recipe.code and importlib.util.find_spec("pandas") is None:
        pytest.skip(f"{sys.executable} has no pandas (package python3-pandas)")
    models = (f"glove={model_dir}", f"news={model_dir}")
    daemon = serve(*(option for model in models for option in ("--model", model)), *LISTS)
    done = run(recipe.code.replace(*SMALLER), tmp_path, daemon.socket)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == recipe.output


def test_pages_have_their_recipes() -> None:
    assert len(RECIPES) == MANY
    assert all(recipe.output for recipe in RECIPES)
    assert sum(SMALLER[0] in recipe.code for recipe in RECIPES) == 1


def test_page_names_each_method_of_keyed_vectors(daemon: Any) -> None:
    with gloved.connect(daemon.socket) as vectors:
        names = {name for name in dir(type(vectors)) if not name.startswith("_")}
    text = PAGES[1].read_text(encoding="utf-8").split("## Methods")[1]
    assert names - set(re.findall(r"`(\w+)`", text)) == set()


@pytest.mark.parametrize("name", READMES)
def test_readme_runs(name: str, daemon: Any, tmp_path: Path) -> None:
    text = (PROJECT / name).read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    done = run(code, tmp_path, daemon.socket)
    assert done.returncode == 0, done.stderr
