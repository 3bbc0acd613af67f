"""The bibliography: its layout, and that everything the package and its documents cite is in it."""

import re
from pathlib import Path

import pytest

from attnflow import experiments, references, runs
from attnflow.errors import InvalidInput
from tests import bibliography
from tests.marks import graded
from tests.words import REGISTRY

ROOT = Path(__file__).parent.parent
BIB = (ROOT / "src" / "attnflow" / "references.bib").read_text(encoding="utf-8")
ENTRIES = references.parse(BIB)
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
    *(ROOT / "docs").rglob("*.md"),
]
SOURCES = [
    *(path for ending in ("py", "toml", "md") for path in (ROOT / "src").rglob(f"*.{ending}")),
    *(ROOT / "tests").rglob("*.py"),
    ROOT / "CITATION.cff",
]
NEEDED = {
    "article": {"author", "title", "journal", "volume", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "phdthesis": {"author", "title", "school", "year"},
    "misc": {"author", "title"},
}
OPTIONAL = {"number", "pages", "series", "publisher", "volume", "year", "doi", "url", "note", "eprint", "archivePrefix"}
ARXIV = re.compile(r"(?<![\d.])\d\d(?:0[1-9]|1[0-2])\.\d{5}(?!\d)")


def test_the_layout_is_one_field_a_line():
    rest = re.sub(r"^@\w+\{[\w-]+,\n(?:  \w+ = \{.+\},\n)+\}$", "", BIB, flags=re.M)
    assert set(filter(None, rest.splitlines())) == {line for line in BIB.splitlines() if line.startswith("%")}
    assert len(ENTRIES) == BIB.count("\n@") > 50
    for value in (value for entry in ENTRIES for value in entry.fields.values()):
        assert value.count("{") == value.count("}"), value


def test_keys_and_papers_occur_once():
    for field in (lambda e: e.key, lambda e: e.fields.get("eprint"), lambda e: e.fields["title"].lower()):
        found = [field(entry) for entry in ENTRIES if field(entry)]
        assert len(found) == len(set(found)), sorted(one for one in found if found.count(one) > 1)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.key)
def test_an_entry_is_complete(entry):
    names = set(entry.fields)
    assert NEEDED[entry.kind] <= names
    assert names - NEEDED[entry.kind] <= OPTIONAL
    assert ("eprint" in names) == (entry.fields.get("archivePrefix") == "arXiv")
    if not entry.is_software:
        year, surname = entry.fields["year"], entry.key[: re.search(r"\d", entry.key).start()]
        assert 1900 < int(year) < 2100
        first = entry.fields["author"].partition(",")[0].lower()
        assert surname in first.translate(str.maketrans("áéèçł", "aeecl"))
        assert "eprint" in names or int(year) < 2010
    for author in entry.fields["author"].split(" and "):
        assert re.fullmatch(r"\{[^{}]+\}|others|DeepMind|[^,{}]+, [^,{}]+", author), author


def test_a_reference_is_one_line():
    assert references.reference("geshkovski2023emergence") == (
        "Geshkovski, Letrouit, Polyanskiy, Rigollet, The emergence of clusters in self-attention dynamics, NeurIPS 2023, "
        "arXiv:2305.05465"
    )
    assert references.linked("geshkovski2025perspective").endswith(
        "Bulletin of the American Mathematical Society 62 (2025), [arXiv:2312.10794](https://arxiv.org/abs/2312.10794)"
    )
    assert references.linked("massart1990tight").startswith("Massart, [The tight constant in the Dvoretzky–Kiefer–")
    assert references.reference("otto2007slow") == (
        "Otto, Reznikoff, Slow motion of gradient flows, Journal of Differential Equations 237 (2007)"
    )
    assert references.reference("numpy").startswith("Harris et al., Array programming with NumPy, Nature 585")
    assert references.find("arXiv:2312.10794").key == "geshkovski2025perspective"
    with pytest.raises(InvalidInput, match="did you mean 'otto2007slow'"):
        references.find("otto2007")
    with pytest.raises(InvalidInput, match=r"there is no reference 'arXiv:0000.00000'"):
        references.find("arXiv:0000.00000")


def test_bibtex_comes_back_as_it_was():
    for entry in ENTRIES:
        assert references.parse(entry.to_bibtex()) == [entry]
        assert entry.to_bibtex() in BIB


def test_every_arxiv_number_has_an_entry():
    known = {entry.fields.get("eprint") for entry in ENTRIES}
    for path in [*PAGES, *SOURCES]:
        missing = set(ARXIV.findall(path.read_text(encoding="utf-8"))) - known
        assert not missing, f"{path.relative_to(ROOT)} names {missing}; add them to references.bib"


@graded("name", experiments.names(), fast=33)
def test_the_papers_of_an_experiment_are_in_the_bibliography(name):
    found = experiments.cited(name)
    assert found.papers
    assert not found.unknown


def test_keys_in_the_documents_exist():
    for path in PAGES:
        for key in re.findall(r"references\.md#([\w-]+)", path.read_text(encoding="utf-8")):
            assert key in references.bibliography(), f"{path.name}: {key}"


def test_the_page_of_references_is_that_of_the_bibliography():
    assert bibliography.PATH.read_text(encoding="utf-8") == references.page(), "run `python -m tests.bibliography`"


def test_words_that_rest_on_a_paper_are_words():
    words = {part: set(known) for part, known in REGISTRY.items()}
    for part, table in references.WORDS.items():
        assert set(table) <= words[part], part
        for keys in table.values():
            assert set(keys) <= set(references.bibliography())
    for (part, word, number), keys in references.NUMBERS.items():
        assert number in REGISTRY[part][word].__dataclass_fields__
        assert set(keys) <= set(references.bibliography())


def test_words_are_found_wherever_they_stand():
    spec = runs.parse_spec("""
[tokens]
name = "equiangular"
n = 4
overlap = 0.1
space = { name = "sphere", dim = 4 }
[field]
name = "total"
parts = [
    { name = "attention", beta = 1.0, mask = { name = "causal", slope = 0.5 }, value = { name = "random", shape = [4, 4], seed = 0, step = 0.1 } },
    { name = "potential", weights = [1.0], directions = [[1.0, 0.0, 0.0, 0.0]], biases = [0.0] },
]
[solve]
until = 1.0
""")
    found = references.used(spec.table)
    assert found["karagodin2024causal"] == ["mask causal"]
    assert found["press2022alibi"] == ["slope of mask causal"]
    assert found["alvarez2026perceptrons"] == ["field potential"]
    assert found["koubbi2026homogenized"] == ["weight random"]
    assert found["prince1981high"] == ["solver dopri8"]
    assert "sander2022sinkformers" not in found
    torus = references.used(runs.load_spec("torus").table)
    assert "prince1981high" not in torus
    assert set(references.used(runs.load_spec("spirals").table)) == {"chen2018neural", "marion2023implicit", "optax"}


def test_a_run_of_an_experiment_cites_the_theorems_of_its_claims(tmp_path):
    source = '''"""One is one."""
import dataclasses
import xarray as xr
from attnflow.experiments import Claim, published
from attnflow.plots.style import styled
PAPERS = ("otto2007slow", "my own notes")
@dataclasses.dataclass(frozen=True)
class Parameters:
    size: int = 1
QUICK = Parameters()
def run(parameters, study):
    return study.part("a", lambda: xr.Dataset({"x": 1.0}))
def claims(parameters, data):
    origin = published("arXiv:2312.10794", "Theorem 6.1")
    return [Claim.equal("one", 1.0, float(data.x), 0.0, "exact", origin=origin)]
def draw(parameters, data):
    with styled() as figure:
        return figure.Figure()
'''
    file = tmp_path / "mine.py"
    file.write_text(source)
    expected = {"otto2007slow": (), "geshkovski2025perspective": ()}
    found = experiments.cited(file)
    assert (found.papers, found.unknown) == (expected, ("my own notes",))
    run, _ = experiments.reproduce(file, tmp_path / "run")
    file.unlink()
    found = experiments.cited(run.path)
    assert found.papers == expected | {"geshkovski2025perspective": ("Theorem 6.1",)}
    assert found.software["jax"] == run.manifest()["versions"]["jax"]
    assert "% for: Theorem 6.1\n@article{geshkovski2025perspective," in found.to_bibtex()
    assert "% not in the bibliography of attnflow: my own notes" in found.to_bibtex()
