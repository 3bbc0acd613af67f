"""The page in a browser. Without one these tests are not collected (`tests/conftest.py`)."""

import json
import urllib.parse
import xml.etree.ElementTree as ElementTree
from math import cos, sin

import pytest

import attnflow as af
from attnflow import lab, runs
from tests.lab import browser
from tests.lab.serving import served

SMALL = "n=80&beta=9&seed=2"


@pytest.fixture(scope="module")
def address():
    with served(lab.Server()) as server:
        yield server.address


@pytest.fixture(scope="module")
def base(address):
    """The address without its token."""
    return address.partition("?")[0]


@pytest.fixture(scope="module")
def tab():
    with browser.browser() as found:
        yield found


@pytest.fixture
def page(tab):
    """The tab as a reader finds it; whatever went wrong on the page fails the test."""
    tab.size(1300, 850)
    tab.prefer(prefers_color_scheme="light", prefers_reduced_motion="no-preference")
    tab.errors.clear()
    tab.requests.clear()
    yield tab
    assert tab.errors == []


def middle(page, selector, share=0.5):
    """The point at this share of the width of an element."""
    x, y, width, height = page.ask(
        f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{ block: 'center' }});"
        "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
    )
    return x + share * width, y + height / 2


def choose(page, name, value):
    page.ask(
        f"(() => {{ const e = document.getElementById({name!r}); e.value = {value!r};"
        "e.dispatchEvent(new Event('change')); })()"
    )


def click(page, name):
    page.ask(f"document.getElementById({name!r}).click()")


def test_the_page_moves_by_itself_and_asks_nobody_else(page, base, address):
    page.open(f"{address}#{SMALL}")
    page.until("lab.facts().flows[0].t > 0.3")
    facts = page.facts()
    assert facts["playing"]
    assert facts["painter"] == "webgl"
    assert page.requests
    assert all(url.startswith((base, "about:", "data:", "blob:")) for url in page.requests)
    assert page.ask("document.querySelectorAll('#panels figure:not([hidden]) figcaption').length") == 6
    assert page.ask("[...document.querySelectorAll('input, select')].every((e) => e.labels?.length || e.ariaLabel)")
    assert page.ask("[...document.querySelectorAll('[role=img]')].every((e) => e.ariaLabel || !e.clientWidth)")


def test_beta_changes_while_tokens_move_and_the_address_repeats_the_flow(page, address):
    page.open(f"{address}#{SMALL}")
    page.until("lab.facts().flows[0].t > 0.2")
    page.drag(middle(page, "#beta", 0.29), middle(page, "#beta", 0.5))
    page.until("lab.facts().flows[0].beta > 20 && lab.facts().flows[0].frames > 20")
    page.press(" ", " ")  # the slider does not need the space bar
    page.until("!lab.facts().playing && location.hash.includes('then=') && location.hash.includes('t=')")
    before, again = page.facts()["flows"][0], page.ask("location.href")
    page.open(again)
    page.until(f"!lab.facts().playing && lab.facts().flows[0].t >= {before['t']}")
    after = page.facts()["flows"][0]
    assert (after["t"], after["beta"], after["count"]) == (before["t"], before["beta"], before["count"])
    assert after["energy"] == pytest.approx(before["energy"], abs=1e-12)
    assert float(page.ask("document.getElementById('beta').nextSibling.value")) == before["beta"]
    click(page, "python")
    assert "no specification" in page.ask("document.getElementById('folder-words').textContent")
    click(page, "close")
    click(page, "reset")
    page.until(f"lab.facts().reached < {before['t']} && lab.facts().flows[0].beta == {before['beta']}")
    assert page.facts()["state"]["then"] == ""


def note(page, name):
    """What stands beside a control, as far as it is seen."""
    return page.ask(
        f"(() => {{ const e = document.getElementById('{name}-note'); return e.clientHeight ? e.textContent : ''; }})()"
    )


def test_what_is_refused_or_limited_is_said_beside_the_control(page, address):
    page.open(f"{address}#{SMALL}&then=x&pitch=9")
    assert page.ask("document.getElementById('notes').textContent") == (
        "9 is above 1.57: pitch = 1.57. 1 of 1 changes of β cannot be read: later β = none."
    )
    refused = {
        "value": ("foo", "I", "“foo” is no matrix"),
        "n": ("99999999", "20000", "the most on the sphere: tokens = 20000"),
    }
    limited = {"noise": ("7", "1", "7 is above 1: noise κ = 1."), "seed": ("-1", "0", "-1 is below 0: seed = 0.")}
    for name, (text, value, words) in (refused | limited).items():
        assert note(page, name) == ""
        choose(page, name, text)
        assert words in note(page, name)
        assert page.ask(f"document.getElementById('{name}').value") == value
        assert page.ask(f"document.getElementById('{name}').getAttribute('aria-describedby')") == f"{name}-note"
    page.ask("(() => { const e = document.getElementById('beta').nextSibling; e.value = 900; e.onchange(); })()")
    assert note(page, "beta") == "900 is above 400: β = 400."
    choose(page, "n", "50")
    choose(page, "value", "-I")
    assert note(page, "n") == note(page, "value") == ""
    choose(page, "space", "circle")
    choose(page, "value", "0,1,-1,0")
    choose(page, "space", "sphere")
    assert "V = I." in note(page, "value")
    page.until("lab.facts().flows[0].t > 0.1")


def test_another_beta_can_start_anew(page, address):
    page.open(f"{address}#{SMALL}&speed=4")
    page.until("lab.facts().flows[0].t > 1")
    choose(page, "beta", "500")  # a place of the slider: 400 (500/1000)^3
    page.until("lab.facts().flows[0].beta == 50 && location.hash.includes('then=')")
    assert page.facts()["flows"][0]["t"] > 1
    assert page.ask("document.querySelector('#panel-energy figcaption').textContent").endswith("E depends on β.")
    choose(page, "restart", "on")
    choose(page, "beta", "300")
    page.until("lab.facts().flows[0].beta == 10.8 && lab.facts().flows[0].t < 1")
    assert page.facts()["state"]["then"] == ""
    assert page.facts()["state"]["beta"] == 10.8


def test_one_cursor_links_all_panels(page, address):
    page.open(f"{address}#{SMALL}&speed=4")
    page.until("lab.facts().flows[0].t > 20")
    click(page, "play")
    x, y = middle(page, "#panel-energy canvas", 0.5)
    page.drag((x, y), (x + 1, y))
    scrubbed = page.facts()
    assert not scrubbed["playing"]
    assert 0 < scrubbed["flows"][0]["t"] < 20
    page.until("document.getElementById('time').value == lab.facts().index")
    labels = page.ask(
        "[...document.querySelectorAll('#panels figure:not([hidden]) canvas')].map((e) => /t = ([\\d.]+)/.exec(e.ariaLabel)[1])"
    )
    assert len(set(labels)) == 1
    page.ask("document.activeElement.blur()")
    page.press(".", ".")
    page.until(f"lab.facts().index == {scrubbed['index'] + 1}")
    page.press(",", ",")
    page.until(f"lab.facts().index == {scrubbed['index']}")
    page.press("r", "r")
    page.until("lab.facts().index == 0 && lab.facts().reached < 20")


def test_two_settings_run_side_by_side(page, address):
    page.open(f"{address}#{SMALL}&beta2=1")
    choose(page, "compare", "on")
    page.until("lab.facts().flows.length == 2 && lab.facts().flows[1].t > 1")
    first, second = page.facts()["flows"]
    assert (first["t"], first["beta"], second["beta"]) == (second["t"], 9, 1)
    assert first["energy"] != second["energy"]
    assert page.ask("document.getElementById('scene-B').clientWidth") > 100
    choose(page, "shown", "B")
    page.until("lab.facts().state.shown == 'B'")


def test_one_file_runs_from_its_folder_and_saves(page, tmp_path):
    file = tmp_path / "lab.html"
    file.write_text(lab.single_file(), encoding="utf-8")
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.open(f"{file.as_uri()}#{SMALL}&space=circle")
    page.until("lab.facts().flows[0].t > 0.3")
    click(page, "play")
    click(page, "play")
    click(page, "webm")
    page.until("lab.facts().flows[0].t > 0.6")
    click(page, "webm")
    page.wait(lambda: (tmp_path / "attnflow-lab.webm").exists())
    assert (tmp_path / "attnflow-lab.webm").read_bytes().startswith(bytes.fromhex("1a45dfa3"))  # of Matroska files
    click(page, "play")
    for kind in ("png", "svg", "csv"):
        click(page, kind)
        page.wait(lambda kind=kind: (tmp_path / f"attnflow-lab.{kind}").exists())
    page.wait(lambda: (tmp_path / "attnflow-lab.png").stat().st_size > 10_000)
    assert (tmp_path / "attnflow-lab.png").read_bytes().startswith(b"\x89PNG")
    assert len(ElementTree.parse(tmp_path / "attnflow-lab.svg").findall(".//*")) > 100
    header, *rows = (tmp_path / "attnflow-lab.csv").read_text().splitlines()
    assert header.split(",") == ["flow", "t", "beta", "energy", "clusters", "condensed", "order_parameter"]
    assert len(rows) == page.facts()["flows"][0]["frames"]
    click(page, "python")
    assert "af.Attention(beta=9.000)" in page.ask("document.getElementById('lines').textContent")
    assert "no server" in page.ask("document.getElementById('folder-words').textContent")
    assert page.ask("document.getElementById('folder-form').offsetParent === null")
    click(page, "close")


def test_without_webgl_a_canvas_shows_the_tokens(page, address):
    hide = "const get = HTMLCanvasElement.prototype.getContext; HTMLCanvasElement.prototype.getContext ="
    hide += "function (kind, ...rest) { return kind === 'webgl2' ? null : get.call(this, kind, ...rest); };"
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=hide)
    page.open(f"{address}#{SMALL}")
    page.until("lab.facts().flows[0].t > 0.2")
    page.call("Page.removeScriptToEvaluateOnNewDocument", **script)
    assert page.facts()["painter"] == "canvas"
    shades = page.ask(
        "(() => { const c = document.querySelector('#scene-A canvas'); const d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; return new Set(new Uint32Array(d.buffer)).size; })()"
    )
    assert shades > 50


def test_preferences_and_small_screens(page, address):
    page.prefer(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    page.size(390, 844, phone=True)
    page.open(f"{address}#{SMALL}")
    assert not page.facts()["playing"]
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    assert page.ask("document.documentElement.scrollWidth <= innerWidth")
    choose(page, "tours", "causal")
    page.until("document.querySelector('#panel-attention.lit').clientHeight > 100")  # painted for the first time
    page.ask("document.querySelector('.phrase').click()")
    inside = "(() => { const { top, bottom } = document.querySelector('.lit').getBoundingClientRect();"
    page.until(inside + " return top < innerHeight && bottom > 0; })()")


def test_words_are_shown_and_points_are_painted(page, address):
    page.open(f"{address}#start=words&words=one%20two%20three&space=circle&beta=1")
    page.until("lab.facts().flows[0].t > 0.1")
    click(page, "play")
    assert "3 tokens" in page.ask("document.getElementById('facts-A').textContent")
    places = page.ask(
        "(async () => { const { placed } = await import('/sphere.js'); const e = document.getElementById('scene-A');"
        "const b = e.getBoundingClientRect(); const p = placed(b.width, b.height, 2);"
        "return [b.x + p.x, b.y + p.y, p.r]; })()"
    )
    x, y, r = places
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + r, y=y)
    for k in range(200):  # around the circle, until a token is under the mouse
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + r * cos(k / 30), y=y - r * sin(k / 30))
        if words := page.ask("document.querySelector('#scene-A .tip:not([hidden])')?.textContent"):
            break
    assert words.split(",")[0] in ("one", "two", "three")
    assert page.ask("document.getElementById('colour').offsetParent !== null")
    choose(page, "colour", "word")
    page.until("lab.facts().state.colour == 'word' && location.hash.includes('colour=word')")
    choose(page, "start", "points")
    page.until("document.getElementById('scene-A').ariaLabel.startsWith('8 tokens')")
    before = len(page.facts()["state"]["points"].split(","))
    page.drag((x + r * 0.6, y - r * 0.8), (x + 2 * r, y - r * 0.6))  # the mouse is let go beside the picture
    page.until(f"lab.facts().state.points.split(',').length < {before}")
    page.drag((x - r * 0.6, y - r * 0.8), (x - r * 0.8, y - r * 0.6))
    page.until(f"lab.facts().state.points.split(',').length > {before} && lab.facts().flows[0].t !== undefined")


def test_a_tour_lights_up_what_it_names_and_waits_for_the_reader(page, address):
    page.open(f"{address}#{SMALL}")
    choose(page, "tours", "causal")
    page.until("lab.facts().state.mask == 'causal' && document.querySelector('#panel-attention.lit')")
    assert page.ask("[...document.querySelectorAll('.phrase')].length") == 1
    point = middle(page, ".phrase")
    page.drag(point, point)
    page.press(" ", " ")  # after a click the space bar is still that of the tour
    page.until("lab.facts().state.tour == 'causal.1' && document.querySelector('#scene-A.lit')")
    click(page, "tour-leave")
    page.until("document.getElementById('tour').hidden && !document.querySelector('.lit')")
    before = page.facts()["playing"]
    page.ask("document.activeElement.blur()")
    page.press(" ", " ")  # without a tour the space bar plays and pauses
    page.until(f"lab.facts().playing == {str(not before).lower()}")
    choose(page, "tours", "causal")
    page.until("document.getElementById('tour-title').textContent.includes('2 of 4')")
    page.until("location.hash.includes('tour=causal.1')")


def test_every_step_of_every_tour_names_things_that_are_there(page, address):
    page.open(f"{address}#{SMALL}")
    missing = page.ask(
        "import('/tours.js').then(({ TOURS, parts }) => Object.values(TOURS).flatMap(({ steps }) => steps.flatMap("
        "({ text }) => parts(text).filter(({ names }) => names && !document.querySelector(names)))))"
    )
    assert missing == []
    assert page.ask("import('/tours.js').then(({ TOURS }) => Object.keys(TOURS).length)") == 5
    notes = page.ask(
        "Promise.all([import('/tours.js'), import('/state.js')]).then(([{ TOURS }, { parsed }]) => {"
        "const notes = {}; for (const { steps } of Object.values(TOURS)) for (const { hash } of steps) parsed(hash, notes);"
        "return notes; })"
    )
    assert notes == {}


def test_a_recording_shows_the_staircase(page, address):
    page.open(f"{address}#source=recording&speed=4")
    page.until("lab.facts().flows[0].count == 1 && lab.facts().flows[0].t > 1e20 && !lab.facts().playing")
    assert page.facts()["flows"][0]["frames"] > 50
    page.ask("location.hash = '#source=recording&t=1e12'")  # any time that a recording has
    page.until("!lab.facts().playing && lab.facts().flows[0].t >= 1e12")
    assert page.facts()["flows"][0]["t"] < 1e13


@pytest.mark.slow
def test_python_computes_and_the_page_comes_back_after_a_restart(page, tmp_path, faults):
    """A form, a refusal in words, a density, a run folder, and a server that ends and begins again."""
    from tests.lab.test_python import SPEC, children, toml, wait

    faults.replace("seconds of work per frame", 3600.0)  # a busy machine is no failure
    runs.execute(runs.parse_spec(toml(SPEC)), tmp_path / "done")
    runs.execute(runs.parse_spec(toml(SPEC | {"solve": {"until": 0.1, "keep": ["energy"]}})), tmp_path / "bare")
    first = lab.Server(runs=tmp_path)
    with served(first):
        page.open(f"{first.address}#source=python&run=done")
        page.until("lab.facts().flows[0].frames == 21 && document.getElementById('form-field-beta')")
        assert page.ask("[...document.querySelectorAll('#runs option')].map((e) => e.value)") == ["done"]
        assert "bare has no frames" in page.ask("document.getElementById('undrawn').textContent")
        choose(page, "axes", "x")
        assert "names no coordinates" in note(page, "axes")
        choose(page, "form-tokens-seed", "12345678901234567890")
        assert "refused" in page.ask("document.getElementById('form-tokens-seed').nextSibling.textContent")
        assert "5 coordinates" in page.ask("document.getElementById('facts-A').textContent")
        choose(page, "form-field-beta", "hot")
        page.until("document.getElementById('message').textContent.includes('beta')")
        choose(page, "form-example", "density")
        page.until("lab.facts().flows[0].t > 1 && document.getElementById('panel-tree').hidden")
        assert "density" in page.ask("document.getElementById('facts-A').textContent")
        choose(page, "run", "done")
        page.until("lab.facts().flows[0].frames == 21 && location.hash.includes('run=done')")
        assert page.errors == []
    wait(lambda: not children())
    page.until("document.getElementById('message').textContent.includes('lost')")
    with served(lab.Server(first.server_port, runs=tmp_path, token=first.token)):
        page.until("document.getElementById('message').textContent == '' && lab.facts().flows[0].frames > 0")
        choose(page, "source", "page")
        page.until("lab.facts().flows[0].t > 0.2")
        wait(lambda: not children())
    page.errors.clear()  # the browser notes every attempt while no server was there


@pytest.mark.long
def test_python_beside_python_another_beta_a_sweep_and_a_folder(page, tmp_path, faults):
    """Two flows with a process each; beta changes in one that runs; a point of a sweep; a run folder is written."""
    from tests.lab.test_python import SPEC, children, toml, wait

    faults.replace("seconds of work per frame", 3600.0)
    short = SPEC | {"solve": {"until": 0.2, "save": {"name": "evenly", "count": 2}}}
    af.sweep(runs.parse_spec(toml(short)), {"field.beta": [1.0, 9.0], "tokens.seed": [0, 1]}, tmp_path / "swept")
    spec = urllib.parse.quote(json.dumps(SPEC | {"solve": {"until": 400.0, "save": {"name": "evenly", "count": 4000}}}))
    with served(lab.Server(runs=tmp_path)) as server:
        page.open(f"{server.address}#source=python&compare=on&spec={spec}")
        page.until("lab.facts().flows.length == 2 && lab.facts().flows.every(({ frames }) => frames > 3)")
        first, second = page.facts()["flows"]
        assert (first["beta"], second["beta"]) == (4, 25)
        assert abs(first["t"] - second["t"]) < 0.15  # one frame apart at most
        assert len(children()) == 2
        choose(page, "form-field-beta", "40")
        page.until("lab.facts().flows[0].beta == 40 && lab.facts().state.then.endsWith(':40')")
        assert page.facts()["flows"][1]["beta"] == 25
        click(page, "play")
        page.until("!lab.facts().playing && location.hash.includes('then=') && location.hash.includes('t=')")
        before, again = page.facts()["flows"], page.ask("location.hash")
        page.ask("location.hash = '#source=python&run=swept'")
        page.until("lab.facts().flows.length == 1 && lab.facts().flows[0].frames == 3")
        page.ask(f"location.hash = {again!r}")
        page.until(f"!lab.facts().playing && lab.facts().flows[0].t >= {before[0]['t']}")
        page.until("lab.facts().flows[0].t - lab.facts().flows[1].t < 0.15")
        after = page.facts()["flows"]
        # the path is that of the first time, bit for bit: one address, one flow
        assert [after[0][key] for key in ("t", "beta", "energy")] == [before[0][key] for key in ("t", "beta", "energy")]

        page.ask("location.hash = '#source=python&run=swept&at=1,0'")
        page.until("lab.facts().flows[0].frames == 3 && !document.getElementById('panel-sweep').hidden")
        assert "field.beta = 9" in page.ask("document.getElementById('facts-A').textContent")
        page.drag(middle(page, "#panel-sweep canvas", 0.2), middle(page, "#panel-sweep canvas", 0.2))
        page.until("lab.facts().state.at == '0,0' && lab.facts().flows[0].beta == 1")
        choose(page, "at-1", "1")
        page.until("lab.facts().state.at == '0,1' && lab.facts().flows[0].frames == 3")

        page.ask("location.hash = '#n=4&space=circle&t=0.1'")
        page.until("!lab.facts().playing && lab.facts().flows[0].t == 0.1")
        click(page, "python")
        assert "--from-url" in page.ask("document.getElementById('command').textContent")
        page.ask("document.getElementById('folder-name').value = '../mine'")
        click(page, "folder-write")
        page.until("document.getElementById('folder-said').textContent.includes('give a name')")
        page.ask("document.getElementById('folder-name').value = 'mine'")
        click(page, "folder-write")
        page.until("document.getElementById('folder-said').textContent.startsWith('written')")
        wait(lambda: not children())
    assert runs.open_run(tmp_path / "mine").dataset.sizes["token"] == 4
