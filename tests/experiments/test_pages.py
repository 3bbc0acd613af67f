"""The pages of the gallery are those of the experiments as they are now."""

import re
from pathlib import Path

import pytest

from attnflow.experiments import find, names
from attnflow.experiments.catalogue import sources_hash

ROOT = Path(__file__).parents[2]

PAGES = ROOT / "docs" / "gallery"
CHANCE = 1e-4
"""With which chance alone may fail a claim of the whole gallery."""


def test_every_experiment_has_a_page_and_a_line():
    listed = re.findall(r"(?m)^\| \[([\w-]+)\]", (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
    assert listed == names()
    assert sorted(page.stem for page in PAGES.glob("*.md")) == names()


@pytest.mark.parametrize("name", names())
def test_a_page_is_not_older_than_its_experiment(name):
    """`attnflow reproduce` and `attnflow gallery` write it anew."""
    said = re.findall(r", sources ([0-9a-f]{12}),", (PAGES / f"{name}.md").read_text(encoding="utf-8"))
    assert said == [sources_hash(find(name).module())]


def test_chance_fails_no_claim():
    """Levels of all claims together: if every claim is true, a reproduction of the gallery fails with this probability."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    levels = [float(level) for row in rows for level in re.findall(r"probability ([\d.e-]+) at most", row)]
    assert 0 < sum(levels) < CHANCE
    (total,) = re.findall(r"chance fails one of them with probability ([\d.e-]+) at most", text)
    assert float(total) == pytest.approx(sum(levels), rel=0.05)  # printed with two digits
