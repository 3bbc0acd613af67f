"""The built site in a browser. Without one these tests are not collected (`tests/conftest.py`).

The site is built once a run, with one page of the reference and without running tutorials, which have tests of their own.
The build itself fails where a link or an anchor leads nowhere (tests/site/test_pages.py).
"""

import functools
import html
import http.server
import os
import re
import subprocess
import sys
import time

import filelock
import pytest

from tests.lab import browser
from tests.lab.serving import served
from tests.site.sources import ROOT

pytestmark = pytest.mark.slow  # to build the site takes some twenty seconds of CPU time
LOADED = "document.readyState == 'complete' && document.querySelector('article')"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the site; the first worker that comes here builds it."""
    common = tmp_path_factory.getbasetemp()
    common = common.parent if "PYTEST_XDIST_WORKER" in os.environ else common
    with filelock.FileLock(common / "site.lock"):
        if not (common / "site" / "html").exists():
            command = [sys.executable, str(ROOT / "site" / "build.py"), "--draft", "--only", "tokens"]
            command += ["--out", str(common / "site")]
            own = os.environ | {"PYTHONPATH": str(ROOT / "src")}
            done = subprocess.run(command, env=own, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert len(list((common / "site" / "html").rglob("*.html"))) > 100
    return common / "site" / "html"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, without a line for each."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(built):
    files = functools.partial(Quiet, directory=str(built))
    with served(http.server.ThreadingHTTPServer(("127.0.0.1", 0), files)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


@pytest.fixture(scope="module")
def tab():
    with browser.browser() as found:
        yield found


@pytest.fixture
def page(tab, address):
    """A tab: whatever went wrong in it, and whatever it asked of another machine, fails the test."""
    tab.size(1300, 850)
    tab.prefer(prefers_color_scheme="light")
    tab.errors.clear()
    tab.requests.clear()
    yield tab
    assert tab.errors == []
    own = address, address.replace("127.0.0.1", "localhost"), "about:", "data:", "blob:"
    assert [url for url in tab.requests if not url.startswith(own)] == []


def test_formulas_have_boxes_and_brackets_grow(page, address):
    """Every formula of a page of theory has a box, and a bracket around a fraction is higher than a letter."""
    page.open(f"{address}theory/merge-times.html", LOADED)
    page.until("document.fonts.status == 'loaded' && [...document.fonts].some(f => f.status == 'loaded')")
    boxes = page.ask(
        "[...document.querySelectorAll('math')].map(e => e.getBoundingClientRect()).map(b => [b.width, b.height])"
    )
    assert len(boxes) > 60
    assert all(width > 4 and height > 6 for width, height in boxes)
    heights = page.ask(
        "[...document.querySelectorAll('math[display=block] mo')].filter(e => e.textContent == '(')"
        ".map(e => e.getBoundingClientRect().height)"
    )
    assert max(heights) > 1.5 * min(heights)


def test_no_formula_is_left_in_plain_text(built):
    """No page shows dollars, braces, backslashes or marks of the converter outside of code and formulas."""
    raw = re.compile(r"\$[^\s\d]|[_^]\{|\\[_<>A-Za-z]|\x02")
    shown = []
    for path in sorted(built.rglob("*.html")):
        article = re.search(r"<article.*?</article>", path.read_text(encoding="utf-8"), flags=re.S)
        text = re.sub(r"<(script|style|pre|code|math|svg)\b.*?</\1>", "", article[0] if article else "", flags=re.S)
        text = html.unescape(re.sub(r"<[^>]+>", "", text))
        shown += [(path.name, text[found.start() - 30 : found.end() + 30]) for found in raw.finditer(text)]
    assert shown == []


def test_search_finds_the_staircase(page, address):
    page.open(f"{address}index.html", LOADED)
    key = {"key": "k", "code": "KeyK", "modifiers": 2, "windowsVirtualKeyCode": 75}

    def opened():
        """Ctrl+K, again if the scripts of the page were not there yet."""
        page.call("Input.dispatchKeyEvent", type="keyDown", **key)
        page.call("Input.dispatchKeyEvent", type="keyUp", **key)
        time.sleep(0.5)
        return page.ask("Boolean(document.activeElement?.shadowRoot)")

    page.wait(opened, "the box of the search")
    page.call("Input.insertText", text="staircase")
    page.until(f"({FOUND})().some(href => href.includes('gallery/staircase'))")


FOUND = """() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);
  return all(document).filter((e) => e.tagName == "A" && e.getBoundingClientRect().height > 0 && e.href.includes("staircase")).map((e) => e.href);
}"""


@pytest.mark.parametrize("name", ["index", "api/tokens", "gallery/staircase", "theory/index"])
def test_a_page_fits_a_phone_in_both_colours(page, address, name):
    """No page is wider than the screen; tables and formulas scroll by themselves."""
    page.size(390, 844, phone=True)
    grounds = []
    for colours, scheme, host in (("light", "default", "127.0.0.1"), ("dark", "slate", "localhost")):
        page.prefer(prefers_color_scheme=colours)  # the site keeps a choice for its host
        page.open(f"{address.replace('127.0.0.1', host)}{name}.html", LOADED)
        page.until(f"document.body.dataset.mdColorScheme == '{scheme}'")
        assert page.ask("document.documentElement.scrollWidth") <= 390
        grounds.append(page.ask("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


def test_the_gallery_is_filtered_and_the_lab_runs_in_its_frame(page, address):
    page.open(f"{address}gallery.html", LOADED)
    count = "[...document.querySelectorAll('.card')].filter(e => e.offsetHeight > 0).length"
    assert page.ask(count) > 50
    assert page.ask("[...document.querySelectorAll('.card img')].every(e => e.width > 100)")
    typed = "(() => { const b = document.getElementById('filter'); b.value = 'stair'; b.dispatchEvent(new Event('input')); })()"
    page.ask(typed)
    assert 0 < page.ask(count) < 8
    page.open(f"{address}play.html", LOADED)
    page.until("document.querySelector('iframe').contentWindow?.lab?.facts().flows[0]?.t > 0")
