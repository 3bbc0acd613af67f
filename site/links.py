"""Links of the built site: every file and anchor that a page names is there, and no page asks another machine."""

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

TAG = re.compile(r"<(a|img|script|link|source|iframe|video)\b([^>]*)>")
TARGET = re.compile(r'\b(href|src|poster)="([^"]*)"')
NAMED = re.compile(r'\b(?:id|name)="([^"]+)"')
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.I)


def targets(text: str) -> Iterator[tuple[str, str]]:
    """(element, address) of everything that a page points at."""
    for tag, attributes in TAG.findall(text):
        if tag == "link" and not re.search(r'rel="?(stylesheet|icon|preload|modulepreload)', attributes):
            continue
        for _, address in TARGET.findall(attributes):
            yield tag, html.unescape(address)


def broken(folder: Path) -> list[str]:
    """Addresses that lead nowhere, one sentence each; empty if there is none."""
    found = []
    pages = {path.resolve(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.html"))}

    @cache
    def anchors(path: Path) -> set[str]:
        return set(map(html.unescape, NAMED.findall(pages[path])))

    for path, text in pages.items():
        here = path.relative_to(folder.resolve())
        for tag, address in targets(text):
            if ELSEWHERE.match(address):
                if tag != "a" and not address.startswith(("data:", "blob:")):
                    found.append(f"{here} asks another machine for {address}")
                continue
            file, _, anchor = unquote(address).partition("#")
            start = folder if file.startswith("/") else path.parent  # 404.html is shown at any depth
            there = (start / file.partition("?")[0].lstrip("/")).resolve() if file else path
            there = there / "index.html" if there.is_dir() else there
            if not there.exists():
                found.append(f"{here} names {address}, which is no file")
            elif anchor and there in pages and anchor not in anchors(there):
                found.append(f"{here} names {address}, but there is no such anchor")
    return found
