"""Every Python example of the documents runs."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attnflow import experiments
from attnflow.runs import parse_spec

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in (
            "first",
            "guide",
            "models",
            "predictions",
            "proved",
            "longtime",
            "meanfield",
            "working",
            "decoders",
            "random_layers",
            "control",
            "sweeps",
            "probe",
            "text",
        )
    ),
    *sorted((ROOT / "docs" / "add").glob("*.md")),
    *sorted((ROOT / "docs" / "theory").glob("*.md")),
]


@pytest.mark.slow
@pytest.mark.optimised
def test_the_ten_lines_run_as_they_are_printed(tmp_path):
    """In a process of its own, with the flags that users have: no variable of XLA, no smaller numbers."""
    (lines,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert "n=2_000" in lines
    own = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "flow.pdf").read_bytes()[:4] == b"%PDF"
    assert "<canvas" in (tmp_path / "flow.html").read_text()


@pytest.mark.slow
@pytest.mark.optimised
@pytest.mark.parametrize("part", range(3))
def test_examples_run(part, tmp_path):
    """Every third page in one process; a failure names the page."""
    for page in PAGES[1:][part::3]:  # the first is README, see above
        names = {}
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S):
            try:
                with contextlib.chdir(tmp_path):
                    exec(block.replace("n=2_000", "n=60"), names)
            except Exception as error:
                raise AssertionError(f"an example of {page.name} fails: {block}") from error


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md", "docs/gallery.md"])
def test_pages_count_the_experiments_that_there_are(page):
    counts = re.findall(r"\b(\d+) (?:experiments|(?:published|reproduced) results)\b", (ROOT / page).read_text())
    assert counts == [str(len(experiments.names()))]


def test_the_gallery_lists_every_experiment():
    assert (
        re.findall(r"^\| \[([a-z0-9-]+)\]", (ROOT / "docs" / "gallery.md").read_text(), flags=re.M)
        == experiments.names()
    )


def test_the_specification_of_the_models_page_is_one():
    text = re.search(r"```toml\n(.*?)```", (ROOT / "docs" / "models.md").read_text(), flags=re.S).group(1)
    made = parse_spec(text).work
    made.field.check(made.tokens)
    assert made.noise is not None


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
            text = re.sub(r"\.laws\b|def laws\b|(power|linear) laws?|law of inertia", "", file.read_text())
            found = re.search(pattern, text)
            assert found is None, (
                f"{file.name}: {text[found.start() - 40 : found.end() + 40]}; write {INSTEAD[pattern]}"
            )


def test_the_glossary_explains_a_word_once():
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(), flags=re.M)[2:]
    words = [word for row in rows for word in row.split(", ")]
    assert len(words) == len(set(words)), sorted(word for word in words if words.count(word) > 1)


NUMBERED, _, REMARKS = (ROOT / "docs" / "misreadings.md").read_text().partition("\n## Remarks\n")
MISREADINGS = re.split(r"^\*\*(?=\d+\. )", NUMBERED, flags=re.M)[1:]
UNNUMBERED = re.split(r"\n\n+", REMARKS.strip())


def named_tests(text):
    """The tests that an item names, which exist as do its experiments."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)", text)
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"
    known = set(experiments.names())
    for line in re.findall(r"[Ee]xperiments? (`[^.;\n]*)", text):
        for name in re.findall(r"`([a-z-]+)`", line):
            assert name in known, name
    return named


@pytest.mark.parametrize("item", MISREADINGS, ids=lambda item: item.partition(".")[0])
def test_a_misreading_has_a_place_a_paper_and_tests_that_exist(item):
    number, text = item.partition(".")[0], item.partition("\n## ")[0]
    named = named_tests(text)
    if "Notation" not in text:
        assert re.findall(r"^\* (Where|Correct|Papers?): ", text, flags=re.M)[:2] == ["Where", "Correct"]
        assert re.search(r"^\* Papers?: \[\w+\]\(references\.md#", text, flags=re.M), number
        assert named or "Nothing to test" in text, number


def test_misreadings_are_numbered():
    assert [item.partition(".")[0] for item in MISREADINGS] == [str(k + 1) for k in range(len(MISREADINGS))]
    assert len(MISREADINGS) >= 20


def test_remarks_have_papers_and_tests():
    assert len(UNNUMBERED) == 5
    for remark in UNNUMBERED:
        assert named_tests(remark)
        assert "(references.md#" in remark
