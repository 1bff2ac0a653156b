"""Runs the Python and R of the pages of docs/, a script for each section, and compares what it
prints.

A block «text» after blocks «python», «r» or «sh» shows the whole output of those before it.
Commands of a section are run first. The daemon serves the sample twice, as the models glove and
news, and the model is models/glove in the folder of the script. One constant of the pages is made
smaller.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import pytest
from conftest import LISTS, REPOSITORY

import gloved

PROJECT = Path(__file__).resolve().parents[2]
PAGES = [
    PROJECT / "docs" / f"{name}.md" for name in ("python", "recipes", "gensim", "research")
]
READMES = ("README.md", "python/README.md")
TIMEOUT_SECONDS = 60

# What the page asks for takes minutes.
SMALLER = ("COUNT = 1_000_000", "COUNT = 500")
MANY = {"python": 22, "r": 2, "sh": 5}


class Recipe(NamedTuple):
    """The code of a section of a page in one language, and what it shows of the output."""

    title: str
    language: str
    commands: str
    code: str
    output: str


def recipes(page: str) -> List[Recipe]:
    """Those of a page. ValueError: a block is of another kind."""
    found = []
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title = section.split("\n", 1)[0]
        blocks: Dict[str, str] = {}
        of = ""
        for kind, block in re.findall(r"^```(.*)\n((?:.*\n)*?)```$", section, re.MULTILINE):
            if kind not in ("python", "r", "sh", "text"):
                raise ValueError(f"a block of «{kind}»; blocks are python, r, sh or text")
            if kind != "text":
                of = kind
            name = f"output of {of}" if kind == "text" else kind
            blocks[name] = blocks.get(name, "") + block
        found += [
            Recipe(title, kind, blocks.get("sh", ""), blocks.get(kind, ""), output)
            for kind in ("python", "r", "sh")
            for output in [blocks.get(f"output of {kind}", "")]
            if output or (kind in blocks and (kind != "sh" or len(blocks) == 1))
        ]
    return found


def run(
    language: str, code: str, folder: Path, socket: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Runs a script as a reader would: a file, in a process of its own."""
    script = folder / "recipe"
    script.write_text(code, encoding="utf-8")
    command = {
        "python": [sys.executable, "-B"],
        "r": ["Rscript", "--vanilla"],
        "sh": ["sh", "-e"],
    }[language]
    programs = os.environ.get("GLOVED_BIN", str(REPOSITORY / "build/dev/bin"))
    environment = dict(
        os.environ,
        GLOVED_SOCKET=socket,
        PYTHONPATH=str(PROJECT / "python"),
        PATH=f"{os.path.abspath(programs)}:{os.environ['PATH']}",
    )
    return subprocess.run(
        [*command, str(script)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )


def skip_without(recipe: Recipe) -> None:
    """Skips what needs a program or a module that is not here."""
    for module in ("pandas", "scipy"):
        if re.search(rf"^(import|from) {module}\b", recipe.code, re.MULTILINE):
            if importlib.util.find_spec(module) is None:
                pytest.skip(f"{sys.executable} has no {module} (package python3-{module})")
    if recipe.language == "r" and not shutil.which("Rscript"):
        pytest.skip("there is no Rscript (package r-base-core)")


RECIPES = [recipe for page in PAGES for recipe in recipes(page.read_text(encoding="utf-8"))]


NAMES = [f"{recipe.title} ({recipe.language})" for recipe in RECIPES]


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_recipe_prints_what_the_page_shows(
    recipe: Recipe, serve: Callable[..., Any], model_dir: Path, tmp_path: Path
) -> None:
    skip_without(recipe)
    models = (f"glove={model_dir}", f"news={model_dir}")
    daemon = serve(*(option for model in models for option in ("--model", model)), *LISTS)
    (tmp_path / "data").symlink_to(PROJECT / "data")
    if recipe.commands:
        shutil.copytree(model_dir, tmp_path / "models/glove")
        done = run("sh", recipe.commands, tmp_path, daemon.socket)
        assert done.returncode == 0, done.stderr
    if recipe.language != "sh":
        done = run(recipe.language, recipe.code.replace(*SMALLER), tmp_path, daemon.socket)
        assert done.returncode == 0, done.stderr
        # A conversion tells how it goes.
        assert done.stderr == "" or "gloved.convert(" in recipe.code
    assert done.stdout == recipe.output


ODD_WORDS = ('"', '""', "'", "#", "a#b", "NA", "nan", "null", "TRUE", "1e3", "a b", "king")


@pytest.mark.parametrize("language", ["python", "r"])
def test_files_of_odd_words_are_read_whole(
    language: str, convert: Callable[[Path, Path], Path], tmp_path: Path
) -> None:
    wanted = ("Density of all words", language)
    (recipe,) = [each for each in RECIPES if (each.title, each.language) == wanted]
    skip_without(recipe)
    text = "".join(f"{word} {i} 1 {i * i}\n" for i, word in enumerate(ODD_WORDS))
    (tmp_path / "text").write_text(text, encoding="utf-8")
    (tmp_path / "models").mkdir()
    convert(tmp_path / "text", tmp_path / "models/glove")
    assert run("sh", recipe.commands, tmp_path).returncode == 0
    done = run(language, recipe.code, tmp_path)
    assert done.stdout.startswith(f"{len(ODD_WORDS)} words; king 0."), done.stderr


def test_pages_have_their_recipes() -> None:
    languages = [recipe.language for recipe in RECIPES]
    assert {each: languages.count(each) for each in MANY} == MANY
    assert all(recipe.output for recipe in RECIPES)
    assert sum(SMALLER[0] in recipe.code for recipe in RECIPES) == 1


def test_page_names_each_method_of_keyed_vectors(daemon: Any) -> None:
    with gloved.connect(daemon.socket) as vectors:
        names = {name for name in dir(type(vectors)) if not name.startswith("_")}
    text = PAGES[2].read_text(encoding="utf-8").split("## Methods")[1]
    assert names - set(re.findall(r"`(\w+)`", text)) == set()


@pytest.mark.parametrize("name", READMES)
def test_readme_runs(name: str, daemon: Any, tmp_path: Path) -> None:
    text = (PROJECT / name).read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    done = run("python", code, tmp_path, daemon.socket)
    assert done.returncode == 0, done.stderr
