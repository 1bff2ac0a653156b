#!/usr/bin/env python3
"""How long the page of explore takes from a key stroke to the neighbours on the screen.

    explore_keys.py BIN MODEL_DIR [--rounds N]

Serves the model with the cpu engine, and types words into the page in a headless Chromium. A time
begins with the event of the key, and ends in the second frame after the list or the message
changed, so that the first was painted. Needs chromium, chromium-driver and python3-selenium.
"""
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "python" / "tests" / name)
                for name in (".", "browser")]
from conftest import Daemon, harness  # noqa: E402
from test_explore import Explorer  # noqa: E402
from test_page import Keys, Page  # noqa: E402

WORDS = ("king", "snake", "bottle", "paris", "computer", "king - man + woman", "breakfast")
WATCH = """
window.times = [];
let begin = 0;
addEventListener("keydown", ({ key, ctrlKey }) => {
    begin = key.length === 1 && key !== " " && !ctrlKey ? performance.now() : 0;
}, true);
// A change that comes before the key is not its answer: that of an emptied field, say.
const done = () => {
    const from = begin;
    begin = 0;
    if (!from) return;
    requestAnimationFrame(() => requestAnimationFrame(() => times.push(performance.now() - from)));
};
for (const id of ["results", "say"]) {
    new MutationObserver(done).observe(document.getElementById(id), { childList: true });
}
"""


def measure(page, rounds):
    """Milliseconds of each key stroke."""
    page.open()
    page.wait_for(lambda: page.focused() == "q")
    page.driver.execute_script(WATCH)
    count = 0
    for word in WORDS * rounds:
        page.find("input").send_keys(Keys.CONTROL, "a", Keys.DELETE)
        for key in word:
            page.press(key)
            count += key != " "
            page.wait_for(lambda: page.driver.execute_script(
                "return times.length === arguments[0]", count))
    return page.driver.execute_script("return times")


@harness.program(
    harness.option("model", None, "directory made by gloved-convert"),
    harness.option("--rounds", 5, "times that each word is typed"),
)
def main(arguments, _):
    options = ("--model", os.path.abspath(arguments.model), "--engine", "cpu")
    with Daemon(Path(arguments.bin), Path(arguments.work), *options) as daemon:
        explorer = Explorer(daemon)
        page = Page(explorer)
        try:
            times = measure(page, arguments.rounds)
            rows = explorer.ask("near", q="king")["rows"]
        finally:
            page.close()
            explorer.stop()
    at = (harness.percentile(times, share) for share in (0.5, 0.9, 0.99, 1))
    return (
        f"{rows} words, {len(times)} key strokes, {os.cpu_count()} processors: median "
        "{:.1f} ms, 90 % {:.1f} ms, 99 % {:.1f} ms, longest {:.1f} ms".format(*at)
    )
