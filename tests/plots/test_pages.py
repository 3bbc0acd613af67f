"""Pages, figures and notebooks show what people wrote as they wrote it: no word is markup, and no script runs but ours.

The reference is the same page with words that mean nothing in HTML: it must have the same elements.
"""

import collections
import csv
import html
import html.parser
import json

import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow import plots, sketches
from attnflow.describe import html_table
from attnflow.experiments import reproduce
from attnflow.plots.page import PLAYER, as_page, as_svg, json_for_script
from attnflow.runs import execute, load_spec
from tests.experiments import tiny
from tests.marks import graded
from tests.plots.test_swept import swept
from tests.probe.flow_network import FlowNetwork

MARKUP = [
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=2>",
    "\"><svg onload=window.hit=3>'",
    "<a href=javascript:alert(1)>b &lt; \u2028 c",
    "--><!-- ]]> \x0b <style>*{display:none}</style>",
    "$\\frac$ <b>",
]
PLAIN = [word.translate(str.maketrans("<>&\"'", "‹›§¤°")) for word in MARKUP]
SPEC = """
name = "words"
about = {about}
field = {{ name = "attention", beta = 9.0 }}
tokens = {{ name = "array", positions = {positions}, labels = {labels} }}
solve = {{ until = 1.0, save = {{ name = "evenly", count = 2 }}, method = {{ name = "fixed", step = 0.25 }} }}
"""
POSITIONS = af.uniform(af.Sphere(3), n=6, seed=0).positions
pytestmark = pytest.mark.filterwarnings("ignore:Glyph")  # words hold signs that no font has
SHORT = {"seconds": 2.0, "fps": 2, "width": 300}


class Shape(html.parser.HTMLParser):
    """How often each element occurs with the names of its attributes, the texts of scripts, and pages in frames."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.scripts, self.frames = collections.Counter(), [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements[tag, tuple(name for name, _ in attributes)] += 1
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag == "script":
            self.scripts.append("")
        if tag == "iframe":
            assert dict(attributes)["sandbox"] == "allow-scripts"
            self.frames.append(Shape(dict(attributes)["srcdoc"]))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_data(self, data):
        if self.cdata_elem == "script":
            self.scripts[-1] += data


def run_report(words, folder):
    texts = {"about": " ".join(words), "labels": words, "positions": POSITIONS.tolist()}
    (folder / "words.toml").write_text(SPEC.format(**{key: json.dumps(text) for key, text in texts.items()}))
    run, _ = execute(load_spec(folder / "words.toml"), folder / "run", draw=plots.draw_run)
    return run


def animation(words, folder):
    with (folder / "words.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [[_one_line(word), *x] for word, x in zip(words, POSITIONS, strict=True)]
        csv.writer(file).writerows(rows)
    flow = af.solve(af.Attention(9.0), af.from_file(folder / "words.csv"), 1.0, save=2, method=af.Fixed(0.25))
    return plots.animate(flow, folder / "a.html", **SHORT)


class Network(FlowNetwork):
    """A network whose name and tokens are called by these words."""

    def __init__(self, words):
        super().__init__()
        self.name, self.labels = words[0], words

    def run(self, ids):
        stream = super().run(ids)
        stream.labels = ((*self.labels, *self.labels),)
        return stream


def figures(words, _):
    """Figures that show labels of tokens, names of flows, labels of batches and values of axes."""
    tokens = af.Tokens(POSITIONS, labels=words)
    flow = af.solve(af.Attention(9.0), tokens, 1.0, save=2, method=af.Fixed(0.25))
    yield as_svg(plots.plot(tokens))
    yield as_svg(plots.plot({words[0]: flow, words[5]: flow}))
    yield as_svg(plots.plot({words[0]: flow.tokens(-1), words[5]: af.meanfield.uniform(af.meanfield.SphereBasis(4))}))
    mean = xr.DataArray(np.ones((2, 3)), {"text": words[-2:], "beta": [1.0, 2.0, 3.0]}, ("text", "beta"))
    yield as_svg(swept(mean, None, "beta"))
    yield as_svg(swept(mean, None, "beta", heat=True))
    starts = af.stack("text", words[-2:], [af.uniform(af.Sphere(3), n=4, seed=[0, 1])] * 2)
    yield as_svg(plots.plot(af.merge_times(af.Attention(2.0), starts, until=1e2)))


def notebooks(words, folder):
    """What a notebook shows of objects that hold these words."""
    tokens = af.Tokens(POSITIONS, labels=words)
    flow = af.solve(af.Attention(9.0), tokens, 1.0, save=2, method=af.Fixed(0.25))
    yield tokens._repr_html_()
    yield flow._repr_html_()
    yield af.stack("text", words, [tokens] * 6)._repr_html_()
    yield af.observe.clusters(tokens, scale=0.3)._repr_html_()
    yield plots.animate(flow, **SHORT)._repr_html_()
    yield html_table(
        words[0], {words[1]: words[2]}, sketches.curve([0, 1], [0, 1], words[3]), sketches.bars([1], words[1])
    )
    yield af.runs.Run(folder / words[1].replace("/", ""))._repr_html_()


def experiment(words, folder, monkeypatch):
    """A run of the tiny experiment, whose statement, claims and caption are these words."""
    source = tiny.SOURCE
    for old, word in zip(("is what it is", "is 0", "3 parts", "counted", "a < b"), words, strict=False):
        source = source.replace(old, word.replace("\\", "\\\\").replace('"', '\\"'))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "SOURCE", source)
        tiny.install(folder / "gallery", monkeypatch)
    return reproduce("tiny-mean", folder / "experiment", quick=True)[0]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders with a report (run/report.html) and an animation (a.html), of words with markup and of plain ones."""
    made = {}
    for words in (MARKUP, PLAIN):
        made[words[0]] = folder = tmp_path_factory.mktemp("words")
        run_report(words, folder)
        animation(words, folder)
    return [made[words[0]] for words in (MARKUP, PLAIN)]


@graded("page", ["run/report.html", "a.html"])
def test_words_of_tokens_are_words_in_pages(page, folders):
    markup, plain = (Shape((folder / page).read_text(encoding="utf-8")) for folder in folders)
    assert markup.elements == plain.elements
    data, script = markup.scripts
    assert script == PLAYER
    expected = MARKUP if page != "a.html" else [_one_line(word) for word in MARKUP]
    assert json.loads(data)["names"] == expected


@pytest.mark.long
def test_words_of_experiments_and_networks_are_words_in_pages(tmp_path, monkeypatch):
    shapes = []
    for name, words in (("markup", MARKUP), ("plain", PLAIN)):
        (tmp_path / name).mkdir()
        run = experiment(words, tmp_path / name, monkeypatch)
        texts = [np.random.default_rng(8).integers(0, 30, 12) for _ in range(2)]
        comparison = af.probe.compare(Network(words), texts, shuffles=1, resamples=20)
        after = plots.account(comparison).after
        page = as_page(words[0], "\n".join([*after, *map(as_svg, comparison.figures().values())]))
        assert words[0][:16] in html.unescape("".join(after))
        shapes.append([Shape(text) for text in (run.report.read_text(encoding="utf-8"), page)])
    for markup, plain in zip(*shapes, strict=True):
        assert markup.elements == plain.elements
        assert markup.elements["style", ()] == 1
        assert not markup.scripts
        assert not any("style" in attributes for _, attributes in markup.elements)


@pytest.mark.long
def test_words_are_words_in_figures_and_notebooks(tmp_path):
    for show in (figures, notebooks):
        for markup, plain in zip(show(MARKUP, tmp_path), show(PLAIN, tmp_path), strict=True):
            shape, expected = Shape(markup), Shape(plain)
            assert set(shape.elements) == set(expected.elements)  # where Matplotlib has room it draws more ticks
            assert [one.elements for one in shape.frames] == [one.elements for one in expected.frames]


def test_json_in_a_script_is_the_same_and_ends_nothing():
    for word in [*MARKUP, "\u2029", "\ud800"]:
        text = json_for_script({word: [word, 1.5, None]})
        assert json.loads(text) == {word: [word, 1.5, None]}
        assert text.isascii()
        assert not set(text) & set("<>&")
    with pytest.raises(ValueError, match="JSON"):
        json_for_script(float("nan"))
    assert "\ud800" not in as_page("\ud800", "")


def _one_line(word):
    """A word as a line of a table holds it."""
    return word.replace("\u2028", " ").replace("\x0b", " ").strip()
