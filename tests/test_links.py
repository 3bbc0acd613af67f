"""Relative links of README and the documents lead to files that exist, and to headings or anchors in them."""

import functools
import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])
LINK = re.compile(
    r"!?(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)*)>?(?:\s+\"[^\"]*\")?\)"
)
"""`[text](target)`, also with brackets inside the text and one pair of parentheses inside the target."""


def prose(text):
    """The text without blocks and spans of code, in which nothing is a link."""
    text = re.sub(r"(?ms)^ *(```|~~~).*?^ *\1`*\s*$", "", text)
    return re.sub(r"(`+).+?\1", "", text, flags=re.S)


def anchor(heading):
    """GitHub's anchor of a heading: its text in small letters without punctuation, spaces as hyphens."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).replace("`", "")
    text = re.sub(r"(?<!\\)[*]|(?<![\w\\])_|_(?!\w)", "", text).replace("\\", "").lower()
    kept = (c for c in text if c in " -_" or unicodedata.category(c)[0] in "LN" or unicodedata.category(c) == "Mn")
    return "".join(kept).replace(" ", "-")


@functools.cache
def anchors(path):
    """All anchors of a page: those of its headings, a number added from the second of a name on, and `<a id=...>`."""
    text = re.sub(r"(?ms)^ *(```|~~~).*?^ *\1`*\s*$", "", path.read_text(encoding="utf-8"))
    found = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    seen = {}
    for heading in re.findall(r"(?m)^#{1,6} +(.+?)(?: +#+)?$", text):
        name = anchor(heading)
        seen[name] = seen.get(name, -1) + 1
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
    return found


def broken(page):
    """(target, why) of the links of a page that lead nowhere."""
    for target in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue  # an address outside
        name, _, part = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            yield target, "no such file"
        elif part and (path.suffix != ".md" or part not in anchors(path)):
            yield target, "no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert list(broken(page)) == []


def test_anchors_are_those_of_github():
    """Printed addresses of headings on GitHub."""
    assert anchor("Random layers: attention at initialisation") == "random-layers-attention-at-initialisation"
    assert anchor("From a file of your own") == "from-a-file-of-your-own"
    assert anchor("`gram_layers` and [links](x.md), *twice*") == "gram_layers-and-links-twice"
    assert anchor("n → ∞ & more") == "n----more"


def test_wrong_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text('# Twice\n## Twice\n<a id="own"></a>\n')
    links = (
        "[a](other.md#twice-1) [b](other.md#own) [c](#here) [d](other.md#twice-2) [e](none.md) `[f](no.md)` [g](#no)"
    )
    page.write_text(f"# Here\n{links}\n```\n[h](no.md)\n```\n")
    assert [target for target, _ in broken(page)] == ["other.md#twice-2", "none.md", "#no"]
