"""The page of explore in a headless Chromium: a walk of twenty steps, and how it looks.

    GLOVED_BIN=build/dev/bin /usr/bin/python3 -m pytest python/tests/browser

Needs Debian's chromium, chromium-driver and python3-selenium. With GLOVED_SCREENSHOTS=DIR in the
environment, pictures of the page are written there. Those of docs/ are made this way, and made
smaller by `pngquant 64 --nofs --strip --ext .png --force docs/explore-*.png`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

import gloved
from conftest import Daemon
from test_explore import ODD_TEXT, Explorer

pytest.importorskip("selenium", reason="the page needs a browser (package python3-selenium)")
if not shutil.which("chromedriver"):
    pytest.skip("the page needs a browser (package chromium-driver)", allow_module_level=True)
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

DEADLINE_SECONDS = 20


class Page:
    """The page of an Explorer in a browser of its own."""

    def __init__(self, explorer: Explorer, dark: bool = False) -> None:
        options = webdriver.ChromeOptions()
        # root's Chromium does not run within its sandbox.
        for each in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                     "--window-size=1100,900"):
            options.add_argument(each)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options)
        self.url = explorer.url
        scheme = "dark" if dark else "light"
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )

    def close(self) -> None:
        self.driver.quit()

    def open(self, state: str = "") -> None:
        # Another fragment alone would not load the page again.
        self.driver.get("about:blank")
        self.driver.get(self.url + state)

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> List[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return list(self.driver.execute_script(script, selector))

    def words(self) -> List[str]:
        return self.texts("#results a.word")

    def wait_for(self, condition: Callable[[], Any]) -> Any:
        return WebDriverWait(self.driver, DEADLINE_SECONDS, 0.02).until(lambda _: condition())

    def wait_for_words(self, expected: List[str]) -> None:
        self.wait_for(lambda: self.words() == expected)

    def type(self, name: str, text: str) -> None:
        # After a click on another question, the field comes with the next event.
        selector = f"input[name={name}]"
        self.wait_for(lambda: self.driver.find_elements(By.CSS_SELECTOR, selector))
        field = self.find(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        script = "const e = document.activeElement; return e.textContent || e.name || e.tagName"
        return str(self.driver.execute_script(script))

    def place_of(self, word: str) -> str:
        return str(self.find(f'#map g[data-typed="{word}"]').get_attribute("style"))

    def wait_for_rest(self) -> None:
        """Until nothing moves."""
        script = "return document.getAnimations().length === 0"
        self.wait_for(lambda: self.driver.execute_script(script))

    def errors(self) -> List[str]:
        return [each["message"] for each in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def explorer(bin_dir: Path, model_dir: Path, serve_all: Callable[..., Daemon]
             ) -> Iterator[Explorer]:
    daemon = serve_all("--model", f"glove={model_dir}", "--model", f"second={model_dir}")
    running = Explorer(daemon)
    yield running
    running.stop()


@pytest.fixture
def page(explorer: Explorer) -> Iterator[Page]:
    opened = Page(explorer)
    yield opened
    opened.close()


def near(client: gloved.Client, text: str, k: int = 20, **options: Any) -> List[str]:
    return [each.word for each in client.near(gloved.Expression(text), k=k, **options)]


def check_fit(page: Page) -> None:
    # A map that is turned, mirrored and shifted is put back as it was, but for the shift.
    assert page.driver.execute_script("""
        const old = [...placed.values()];
        const found = align(old.map((p) => ({
            ...p, x: 0.6 * p.x + 0.8 * p.y + 3, y: 0.8 * p.x - 0.6 * p.y })));
        const off = { x: found[0].x - old[0].x, y: found[0].y - old[0].y };
        return Math.max(...found.map((p, i) =>
            Math.hypot(p.x - old[i].x - off.x, p.y - old[i].y - off.y)));
    """) < 1e-9


def test_a_walk(page: Page, client: gloved.Client) -> None:
    # 1. The page shows where to begin, and the field has the focus.
    page.open()
    page.wait_for(lambda: "king - man + woman" in page.texts("#instead a"))
    page.wait_for(lambda: page.focused() == "q")
    # 2. Neighbours come as one types.
    for end in range(1, 5):
        page.press("king"[end - 1])
        if end > 1:
            known = client.has(["king"[:end]])[0].known
            page.wait_for(lambda: page.words() == near(client, "king"[:end]) if known
                          else page.texts("#say.bad"))
    page.wait_for_words(near(client, "king"))
    # 3. Scores and ranks are the daemon's.
    expected = client.near("king", k=20, fields=("rank",))
    assert page.texts("#results .score")[1:] == [f"{each.score:.6f}" for each in expected]
    assert page.texts("#results .rank")[1:] == [f"{each.rank:,}" for each in expected]
    # 4. The map has all words, within its frame.
    assert sorted(page.texts("#map g.word text")) == sorted(["king", *page.words()])
    inside = """
        const frame = document.getElementById("map").getBoundingClientRect();
        return [...document.querySelectorAll("#map text")].every((text) => {
            const box = text.getBoundingClientRect();
            return box.left >= frame.left && box.right <= frame.right &&
                box.top >= frame.top && box.bottom <= frame.bottom;
        })"""
    page.wait_for(lambda: page.driver.execute_script(inside))
    # 5. Down and Enter walk to the nearest word; the focus stays in the list.
    old_place = page.place_of("queen")
    page.press(Keys.ARROW_DOWN)
    assert page.focused() == "prince"
    page.press(Keys.ENTER)
    page.wait_for_words(near(client, "prince"))
    assert page.driver.current_url.endswith("#mode=near&q=prince")
    page.wait_for(lambda: page.focused() == near(client, "prince")[0])
    # 6. Words that stay move on the map.
    assert "queen" in page.words() and page.place_of("queen") != old_place
    check_fit(page)
    # 7. Back and forth, by buttons and by the browser.
    page.find("#back").click()
    page.wait_for_words(near(client, "king"))
    page.find("#forth").click()
    page.wait_for_words(near(client, "prince"))
    page.driver.back()
    page.wait_for_words(near(client, "king"))
    # 8. A slash leads to the field, and an expression replaces the word.
    page.find("#results a.word").send_keys("/")
    assert page.focused() == "q"
    page.type("q", "king - man + woman")
    page.wait_for_words(near(client, "king - man + woman"))
    # 9. Its sum is a point of its own.
    assert len(page.driver.find_elements(By.CSS_SELECTOR, "#map g.query")) == 1
    # 10. What was typed is one step of the history.
    page.find("#back").click()
    page.wait_for_words(near(client, "king"))
    # 11. Minus subtracts a word of the list.
    page.press(Keys.ESCAPE, Keys.ARROW_DOWN, Keys.ARROW_DOWN, "-")
    page.wait_for_words(near(client, "king - queen"))
    # 12. A word of the map leads on.
    word = page.words()[3]
    page.wait_for_rest()
    page.find(f'#map g[data-typed="{word}"] circle').click()
    page.wait_for_words(near(client, word))


def test_other_questions(page: Page, client: gloved.Client) -> None:
    # 13. An analogy, with arrows.
    page.open("#mode=near&q=king")
    page.wait_for_words(near(client, "king"))
    page.find('nav a[data-mode="analogy"]').click()
    for name, word in (("a", "man"), ("b", "king"), ("c", "woman")):
        page.type(name, word)
    expected = [each.word for each in client.analogy("man", "king", "woman", k=20)]
    page.wait_for_words(expected)
    assert len(page.driver.find_elements(By.CSS_SELECTOR, "#map line.arrow")) == 2
    # 14. The odd one out.
    page.find('nav a[data-mode="odd"]').click()
    page.type("words", "breakfast lunch piano dinner")
    page.wait_for(lambda: page.texts("#facts b") == ["piano"])
    assert page.words()[0] == "piano"
    # 15. Similarity, from a link.
    page.open("#mode=sim&a=coffee&b=tea")
    page.wait_for(lambda: page.texts("#facts b")[:1] == [f"{client.sim('coffee', 'tea'):.6f}"])
    # 16. The same link in another window shows the same.
    link, words = page.driver.current_url, page.words()
    page.driver.switch_to.new_window("tab")
    page.driver.get(link)
    page.wait_for_words(words)
    # 17. Another model; the link says which.
    Select(page.find("#model")).select_by_value("second")
    page.wait_for(lambda: "model=second" in page.driver.current_url)
    page.wait_for(lambda: page.texts("#about")[0].startswith("second, "))
    # 18. More words, of the most frequent only.
    page.open("#q=king")
    page.wait_for_words(near(client, "king"))
    Select(page.find("#k")).select_by_visible_text("100")
    page.wait_for_words(near(client, "king", k=100))
    Select(page.find("#top")).select_by_value("10000")
    page.wait_for_words(near(client, "king", k=100, top=10000))
    # 19. For an unknown word there are others to choose.
    page.type("q", "queen - kingg")
    page.wait_for(lambda: "king" in page.texts("#instead a"))
    page.driver.find_element(By.LINK_TEXT, "king").click()
    page.wait_for_words(near(client, "queen - king", k=100, top=10000))
    # 20. A word in another case is found, and told.
    page.type("q", "Paris")
    page.wait_for(lambda: "Paris is paris here" in page.texts("#say")[0])
    assert page.errors() == []


def test_what_is_read_out_and_reached_by_keys(page: Page) -> None:
    page.open("#mode=near&q=king")
    page.wait_for(page.words)
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    heard = [(each["role"]["value"], each["name"]["value"]) for each in nodes if "name" in each]
    roles = [role for role, _ in heard]
    assert (roles.count("row"), roles.count("cell")) == (21, 100)
    named = {"columnheader", "combobox", "table", "textbox", "button", "image"}
    assert {name for role, name in heard if role in named} == {
        "place", "word", "add or subtract", "cosine", "rank", "model", "words", "among", "Words",
        "A word or an expression", "Back", "Forward", "Map of the words of the list",
    }
    # Tab goes from the field to the words, and the focus is seen.
    page.press(Keys.TAB)
    assert page.focused() == page.words()[0]
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert page.driver.execute_script(outline) == "solid"


def test_words_are_text(serve_text: Callable[[bytes], Daemon]) -> None:
    daemon = serve_text(ODD_TEXT)
    explorer = Explorer(daemon)
    page = Page(explorer)
    try:
        page.open("#q=the")
        page.wait_for(lambda: "<script>alert(1)</script>" in page.words())
        assert page.driver.execute_script("return document.scripts.length") == 1
        page.driver.find_element(By.LINK_TEXT, "<script>alert(1)</script>").click()
        page.wait_for(lambda: "the" in page.words())
        assert page.find("input").get_attribute("value") == "<script>alert(1)</script>"
        assert page.errors() == []
        # Should a script get in, the policy does not let it run.
        page.driver.execute_script(
            "const made = document.createElement('iframe');"
            "made.src = 'javascript:top.bad = 1'; document.body.append(made);"
        )
        page.wait_for(lambda: any("Content Security Policy" in each for each in page.errors()))
        assert page.driver.execute_script("return window.bad") is None
        # An address with names that every object has is one without a question.
        page.open("#mode=constructor&__proto__=x")
        page.wait_for(lambda: "king" in page.texts("#instead a"))
        # Without the daemon it says so, and goes on when there is one again.
        daemon.stop()
        page.open("#q=the")
        page.type("q", "the")
        page.wait_for(lambda: page.texts("#say.bad"))
        daemon.start()
        page.type("q", '"caf\\xe9"')
        page.wait_for(lambda: "the" in page.words())
        page.wait_for(lambda: page.texts("#model option"))
        explorer.stop()
        page.type("q", "the")
        page.wait_for(lambda: "explore does not answer" in page.texts("#say")[0])
    finally:
        page.close()
        explorer.stop()


SIZES = {360: 780, 390: 844, 768: 1024, 1000: 840, 1600: 900}
STATES = (
    "",
    "#mode=near&q=king",
    "#mode=near&q=king+-+man+%2B+woman",
    "#mode=near&q=the&k=100",
    "#mode=near&q=kingg",
    "#mode=analogy&a=man&b=king&c=woman",
    "#mode=odd&words=breakfast+lunch+dinner+piano",
    "#mode=sim&a=coffee&b=tea",
)
# What does not fit: text outside of the window, a broken word of the list though the bar beside it
# is wider than its number, a name of the map outside of its frame.
UNFIT = """
    const found = [];
    const text = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    for (const e of document.querySelectorAll("body :not(script, option, .spoken)")) {
        const box = e.getBoundingClientRect();
        const isOutside = box.left < 0 || box.right > innerWidth;
        if (text(e) && box.width && isOutside) found.push(e.outerHTML);
    }
    for (const e of document.querySelectorAll("#results a.word")) {
        const bar = e.closest("[role=row]").querySelector(".score");
        const number = document.createRange();
        number.selectNodeContents(bar);
        const room = bar.clientWidth - number.getBoundingClientRect().width;
        if (e.getClientRects().length > 1 && room > 12) found.push(e.outerHTML);
    }
    const frame = document.getElementById("map").getBoundingClientRect();
    for (const e of document.querySelectorAll("#map text")) {
        const box = e.getBoundingClientRect();
        if (box.left < frame.left || box.right > frame.right ||
            box.top < frame.top || box.bottom > frame.bottom) found.push(e.outerHTML);
    }
    return found;
"""


def show(page: Page, state: str, width: int) -> None:
    """Opens the page in a window of that width, and waits until all has come."""
    size = {"width": width, "height": SIZES[width], "deviceScaleFactor": 1, "mobile": width < 600}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.open(state)
    page.wait_for(lambda: page.words() or page.texts("#instead a"))
    page.wait_for_rest()


@pytest.mark.parametrize("width", SIZES)
def test_everything_fits(page: Page, width: int) -> None:
    for state in STATES:
        show(page, state, width)
        script = "return document.documentElement.scrollWidth"
        assert page.driver.execute_script(script) <= width, state
        page.wait_for(lambda: page.driver.execute_script(UNFIT) == [])
    assert page.errors() == []


def test_names_on_the_map_do_not_cover_each_other(page: Page) -> None:
    for width in (390, 1000):
        show(page, "#mode=near&q=king", width)
        assert page.driver.execute_script("""
            const boxes = [...document.querySelectorAll("#map text")].map((text) => {
                const { left, top, right, bottom } = text.getBoundingClientRect();
                return [left, top + 3, right, bottom - 3];
            });
            return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) =>
                a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3])).length;
        """) == 0


@pytest.mark.parametrize(
    ["name", "state", "width"],
    [
        ("light", "#mode=near&q=king", 1000),
        ("dark", "#mode=analogy&a=man&b=king&c=woman", 1000),
        ("phone", "#mode=near&q=king+-+man+%2B+woman", 390),
    ],
)
def test_looks(explorer: Explorer, name: str, state: str, width: int) -> None:
    page = Page(explorer, dark=name == "dark")
    try:
        show(page, state, width)
        assert len(page.words()) == 20
        back = page.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert back == ("rgb(22, 24, 28)" if name == "dark" else "rgb(255, 255, 255)")
        if "GLOVED_SCREENSHOTS" in os.environ:
            path = Path(os.environ["GLOVED_SCREENSHOTS"], f"explore-{name}.png")
            assert page.driver.save_screenshot(str(path))
    finally:
        page.close()
