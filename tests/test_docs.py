"""Every Python example of the documents runs."""

import re
from pathlib import Path

import pytest

from attnflow import experiments
from attnflow.runs.spec import parse_spec

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("guide", "models", "predictions", "longtime", "meanfield")),
    *sorted((ROOT / "docs" / "add").glob("*.md")),
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S):
        exec(block.replace("n=2_000", "n=60"), names)


def test_the_specification_of_the_models_page_is_one():
    text = re.search(r"```toml\n(.*?)```", (ROOT / "docs" / "models.md").read_text(), flags=re.S).group(1)
    made = parse_spec(text).build()
    made["field"].check(made["tokens"])
    assert made["noise"] is not None


def test_links_lead_somewhere():
    for page in [*PAGES, *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([\w./-]+\.\w+)\)", prose):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_glossary_knows_the_words_of_the_dataset():
    words = (ROOT / "docs" / "glossary.md").read_text()
    for name in ("energy", "speed", "floor", "resolved", "spread", "masses", "place"):
        assert name.removesuffix("es") in words


INSTEAD = {
    r"\blaws?\b(?! of large)": "distribution",
    r"\bforecast": "prediction",
    r"\bheed\b|\bmend\b|laid down": "plain English",
}
"""Patterns that no text of the package matches outside `fields`, whose laws are promises; and what to write."""


@pytest.mark.parametrize("pattern", INSTEAD)
def test_a_word_has_one_meaning(pattern):
    for file in (ROOT / "src" / "attnflow").rglob("*.py"):
        if file.parent.name not in ("fields", "sums"):
            text = re.sub(r"\.laws\b|def laws\b|(power|linear) laws?", "", file.read_text())
            found = re.search(pattern, text)
            assert found is None, (
                f"{file.name}: {text[found.start() - 40 : found.end() + 40]}; write {INSTEAD[pattern]}"
            )


def test_the_glossary_explains_a_word_once():
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(), flags=re.M)[2:]
    words = [word for row in rows for word in row.split(", ")]
    assert len(words) == len(set(words)), sorted(word for word in words if words.count(word) > 1)


def test_the_tests_that_the_errata_name_exist():
    text = (ROOT / "docs" / "errata.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)", text)
    assert named
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"
    known = set(experiments.names())
    for line in re.findall(r"[Ee]xperiments? (`[^.\n]*)", text):
        for name in re.findall(r"`([a-z-]+)`", line):
            assert name in known, name
