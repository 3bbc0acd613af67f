"""What the site is made of, before it is built: every public name has a page, every page a place, formulas are read."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import markdown
import pytest

import attnflow as af
from tests.site.sources import ROOT, module

build, gallery, links, mathml, reference, tutorials = map(
    module, ("build", "gallery", "links", "mathml", "reference", "tutorials")
)


def test_every_public_name_is_on_a_page():
    """The names of the stub, and those in the `__all__` of rooms and of the rooms within them."""
    pages = reference.pages()
    shown = set(re.findall(r"^::: (\S+)$", "\n".join(pages.values()), flags=re.M))
    stub = (ROOT / "src" / "attnflow" / "__init__.pyi").read_text()
    at_top = re.findall(r"^from (\S+) import (\w+) as \w+$", stub, flags=re.M)
    missing, checked = [], 0
    for home, name in at_top:
        one = getattr(importlib.import_module(home), name)
        modules = [one] if hasattr(one, "__path__") or hasattr(one, "__spec__") else []
        for room in modules:  # a room shows its names, and the rooms within it theirs
            inner = [getattr(room, word) for word in room.__all__]
            modules += [found for found in inner if hasattr(found, "__all__") and hasattr(found, "__spec__")]
        public = [(room.__name__, word) for room in modules for word in room.__all__] or [(home, name)]
        for where, word in public:
            found = getattr(importlib.import_module(where), word)
            if not hasattr(found, "__spec__"):
                checked += 1
                written = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"
                missing += [f"{where}.{word}"] if not {written, f"{where}.{word}"} & shown else []
    assert missing == []
    assert checked > 800
    assert "`af.__version__`" in pages["index"]


def test_an_entry_has_an_example_that_the_suite_runs_and_links_to_its_users():
    text = reference.entry("attnflow.flows.solve.solve")
    assert "af.solve(" in text
    assert "(../guide.md)" in text
    assert "(../gallery/bank.md)" in text
    made = reference.entry("attnflow.observe.clusters.Clusters")
    assert "You get one from [`clusters`][attnflow.observe.clusters.clusters]" in made
    assert "[`Exponential`]" in reference.entry("attnflow.kernels.base.AbstractKernel")


def test_every_page_has_a_place_in_the_menu():
    text = (ROOT / "site" / "zensical.toml").read_text().replace("REFERENCE", "").replace("TUTORIALS", "")
    named = set(re.findall(r"'([\w/-]+\.md)'", str(tomllib.loads(text)["project"]["nav"])))
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {name for name in written if not name.startswith("gallery/")} <= named


def test_statements_of_theory_lead_to_functions_experiments_and_tests_that_exist():
    """Every page of theory ends with its table; a name without a room belongs to the room before it."""
    rows = 0
    for page in sorted((ROOT / "docs" / "theory").glob("*.md")):
        table = page.read_text().partition("| statement | function | experiment | test | whose |\n")[2].splitlines()[1:]
        table = [row for row in table if row.startswith("|")]
        assert table or page.stem == "index", page.stem
        for row in table:
            statement, functions, experiments, tests, whose = (cell.strip() for cell in row.strip("|").split(" | "))
            room, rows = "", rows + 1
            for name in re.findall(r"`([\w.]+)`", functions):
                room = name.rpartition(".")[0] or room
                found = af
                for word in (name if "." in name or hasattr(af, name) else f"{room}.{name}").split("."):
                    found = getattr(found, word)
            assert all(
                (ROOT / "docs" / "gallery" / f"{one}.md").exists() for one in re.findall(r"\[([\w-]+)\]", experiments)
            )
            named = re.findall(r"`(tests/[\w/]+\.py)", tests)
            assert named, statement
            assert all((ROOT / one).exists() for one in named), statement
            assert whose, statement
    assert rows > 50


def test_a_script_is_a_notebook_and_every_script_is_a_tutorial():
    shown = {file for _, files in tutorials.TUTORIALS.values() for file in files}
    assert shown == {path.name for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".toml")}
    assert list(tutorials.answers()) == list(tutorials.TUTORIALS)  # every question has an answer, and a next step
    assert all("Next: [" in answer for answer in tutorials.answers().values())
    found = tutorials.cells('"""Words."""\n\nimport os\n\n# %% [markdown]\n# More\n# words.\n\n# %%\nprint(os)\n')
    assert [(cell.kind, cell.text) for cell in found] == [
        ("prose", "Words."),
        ("code", "import os"),
        ("prose", "More\nwords."),
        ("code", "print(os)"),
    ]


def test_a_tutorial_shows_what_its_cells_print_and_draw(tmp_path):
    (tmp_path / "one.py").write_text('"""One."""\n\nprint(2 + 2)\n\n# %%\nopen("one.png", "w").close()\n')
    own = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(ROOT / "site" / "tutorials.py"), str(tmp_path / "one.py"), str(tmp_path)]
    subprocess.run(command, check=True, env=own)
    found = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert found == [
        {"printed": "", "pictures": []},
        {"printed": "4\n", "pictures": []},
        {"printed": "", "pictures": ["one.png"]},
    ]


def test_every_experiment_has_a_card_under_one_subject(tmp_path):
    named = " ".join(gallery.SUBJECTS.values()).split()
    assert len(named) == len(set(named))
    shutil.copy(ROOT / "docs" / "gallery.md", tmp_path / "gallery.md")
    gallery.write(tmp_path, None)
    text = (tmp_path / "gallery.md").read_text()
    pages = sorted(path.stem for path in (ROOT / "docs" / "gallery").glob("*.md"))
    assert sorted(re.findall(r'href="gallery/([\w-]+)\.html"', text)) == pages


def test_formulas_of_derivations_are_no_code():
    text = "So\n\n    λ_k = k l_k/β,   k ≥ 1,\n\nand\n\n```sh\n\n    x_i\n\n```\n"
    found = gallery.displayed(text)
    assert '<div class="plain">λ<sub>k</sub> = k l<sub>k</sub>/β,&emsp;k ≥ 1,</div>' in found
    assert "\n    x_i\n" in found


def test_of_several_records_of_a_campaign_the_newest_counts(tmp_path, monkeypatch):
    for day, rows in {"2026-01-02": {"a": 2}, "2026-01-01": {"a": 1, "b": 1}}.items():
        (tmp_path / f"physics-{day}.json").write_text(json.dumps(rows))
    monkeypatch.setattr(gallery, "RECORDS", tmp_path)
    assert gallery.records("physics", lambda path: json.loads(path.read_text())) == {"a": 2, "b": 1}


def test_a_page_of_the_gallery_leads_to_its_neighbours(tmp_path):
    (tmp_path / "gallery").mkdir()
    for name in ("one", "two"):
        (tmp_path / "gallery" / f"{name}.md").write_text(f"# {name}\n")
    gallery.beside(["one", "two"], "Subject", tmp_path)
    assert (
        "[All experiments](../gallery.md) · Subject: [two](two.md)\n" in (tmp_path / "gallery" / "one.md").read_text()
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("the overlap $\\rho_\\beta$ of", "<msub><mi>&#x003C1;</mi><mi>&#x003B2;</mi></msub>"),
        ("$$\n\\frac{1}{2}\n$$", 'display="block"'),
        (
            "$\\lvert x\\rvert\\le-\\max a$",
            'form="postfix">&#x0007C;</mo><mo>&#x02264;</mo><mo form="prefix">&#x02212;</mo>',
        ),
        ("with ($x$), of", '<span class="formula">(<math'),
        ("with ($x$), of", "</math>),</span> of"),
        ("it costs $5 and $6", "$5 and $6"),
        ("`$x$` is code", "<code>$x$</code>"),
        ("X_t[mu](x) is a velocity", "X<sub>t</sub>[μ](x)"),
        (
            "dist = e^{-beta (1 - <x_i, x_j>)} on S^(d-1)",
            "e<sup>−β (1 − ⟨x<sub>i</sub>, x<sub>j</sub>⟩)</sup> on S<sup>d−1</sup>",
        ),
        (
            "lambda_k and mu_0, see merge_times in random_layers.md",
            "λ<sub>k</sub> and μ<sub>0</sub>, see merge_times in random_layers.md",
        ),
        (
            r"dx\_i/dt = sum\_j A\_ij x\_j, 0 \< \<x\_i, y\>",
            "dx_i/dt = Σ<sub>j</sub> A<sub>ij</sub> x<sub>j</sub>, 0 &lt; ⟨x<sub>i</sub>, y⟩",
        ),
        ("`x_i^2` is code", "<code>x_i^2</code>"),
        ("a [word](page.md)", '<a href="page.md">word</a>'),
        (
            "K = e^(beta <x, y_j>) with sum_k |p_k| >= 0",
            "K = e<sup>β ⟨x, y<sub>j</sub>⟩</sup> with Σ<sub>k</sub> |p<sub>k</sub>| ≥ 0",
        ),
        ("at most `beta`, [trained-beta](a-beta.md)", '<code>beta</code>, <a href="a-beta.md">trained-beta</a>'),
    ],
)
def test_formulas_become_mathml_and_other_text_stays(source, expected):
    assert expected in markdown.markdown(source, extensions=[mathml.MathML()])


def test_a_list_that_follows_a_paragraph_is_a_list():
    text = build.apart("**1. Words.**\n* one\n  more\n* two\n\n```text\nwords\n* code\n```\n")
    assert text == "**1. Words.**\n\n* one\n  more\n* two\n\n```text\nwords\n* code\n```\n"


def test_links_that_lead_nowhere_are_found(tmp_path):
    page = '<h2 id="here"></h2><a href="{}">x</a><img src="{}">'
    (tmp_path / "a.html").write_text(page.format("b.html#there", "p.png"))
    (tmp_path / "b.html").write_text('<h2 id="there"></h2><a href="https://arxiv.org">x</a>')
    (tmp_path / "p.png").write_bytes(b"")
    assert links.broken(tmp_path) == []
    for target, image in (("c.html", "p.png"), ("b.html#gone", "p.png"), ("#gone", "p.png"), ("b.html", "q.png")):
        (tmp_path / "a.html").write_text(page.format(target, image))
        assert len(links.broken(tmp_path)) == 1
    (tmp_path / "a.html").write_text(page.format("b.html", "https://cdn.example/p.png"))
    assert links.broken(tmp_path) == ["a.html asks another machine for https://cdn.example/p.png"]
