"""Lines of a Jupyter notebook: convert, serve and ask. No daemon stays when its kernel ends."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import harness
from conftest import PATIENCE_SECONDS, REPOSITORY, is_gone

nbformat = pytest.importorskip(
    "nbformat", reason="a notebook needs nbformat (package python3-nbclient)"
)
nbclient = pytest.importorskip(
    "nbclient", reason="a notebook needs nbclient (package python3-nbclient)"
)
pytest.importorskip("ipykernel", reason="a notebook needs ipykernel (package python3-ipykernel)")

CELLS = [
    "import gloved",
    f"vectors = gloved.serve(gloved.convert({str(harness.SAMPLE)!r}), engine='cpu')",
    "vectors.most_similar('king', topn=1)",
    "vectors",
    "import os; [os.getpid(), vectors._daemon._process.pid]",
]


@pytest.fixture
def notebook(bin_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of a notebook of CELLS, whose files are all below tmp_path."""
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"):
        (tmp_path / name[0]).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name[0]))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("GLOVED_BIN", str(bin_dir))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "python"))
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    return nbclient.NotebookClient(
        nbformat.v4.new_notebook(cells=cells),
        timeout=PATIENCE_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )


def shown(notebook: Any, number: int) -> str:
    """What a cell shows as its value."""
    (output,) = notebook.nb.cells[number].outputs
    return output.data["text/plain"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("end", ["shut down", "killed"])
def test_a_notebook_asks_and_leaves_no_daemon(notebook: Any, end: str, tmp_path: Path) -> None:
    with notebook.setup_kernel():
        for number, cell in enumerate(notebook.nb.cells):
            notebook.execute_cell(cell, number)
        kernel, daemon = json.loads(shown(notebook, 4))
        assert Path(f"/proc/{daemon}").exists()
        if end == "killed":
            os.kill(kernel, signal.SIGKILL)
    assert shown(notebook, 2).startswith("[('prince', 0.7")
    assert "KeyedVectors<" in shown(notebook, 3)
    told = "".join(each.text for each in notebook.nb.cells[1].outputs if each.name == "stderr")
    assert "converting" in told and "10002 words" in told
    assert is_gone(kernel) and is_gone(daemon)
    assert end == "killed" or not list((tmp_path / "T").iterdir())
