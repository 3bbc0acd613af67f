"""The self-contained pages of runs, experiments and animations, and the files of figures."""

import base64
import hashlib
import html
import importlib.resources
import io
import json
import re
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree

from attnflow.folders import Folder

UNDATED: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Metadata with which equal figures are equal files, by format."""
PLAYER = (
    importlib.resources.files("attnflow.plots").joinpath("player.js").read_text(encoding="utf-8")
    + "const { parentElement: root, previousElementSibling: data } = document.currentScript;\n"
    + "attnflowPlayer(root, JSON.parse(data.textContent));\n"
)
"""The one script of pages. It reads the JSON in the element before it and draws into the element around it."""
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SVG = "{http://www.w3.org/2000/svg}"


def as_page(title: str, body: str) -> str:
    """The whole page: its styles, and a policy with which nothing is loaded and no script runs but the player.

    Arguments:
        title: title and heading, any text.
        body: HTML. Scripts in it (the player's own excepted), `<style>` and `style=` have no effect.
    """
    policy = (
        f"default-src 'none'; script-src {_allowed(PLAYER)}; style-src {_allowed(_STYLE)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _PAGE.format(title=html.escape(title), body=body, policy=policy, style=_STYLE)
    return page.encode(errors="replace").decode()  # half of a surrogate pair cannot be written into a file


def json_for_script(value: Any) -> str:
    """JSON for a `<script>` element: ASCII, in which no character ends the element or begins another one."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def as_svg(figure: Any) -> str:
    """A Matplotlib figure as an element of the page.

    Its styles become attributes (fill="none" for style="fill: none"), because the policy of a page applies no styles
    that stand in its body. What browsers ignore is left out: metadata, comments and namespaces.
    """
    import matplotlib

    stream = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path"}):
        figure.savefig(stream, format="svg", metadata=UNDATED["svg"])
    text = stream.getvalue()
    picture = ElementTree.fromstring(_NOT_XML.sub("\ufffd", text[text.index("<svg") :]))
    for element in list(picture.iter()):
        for inner in [inner for inner in element if inner.tag in (f"{_SVG}metadata", f"{_SVG}style")]:
            element.remove(inner)
        element.tag = element.tag.removeprefix(_SVG)
        element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        for declaration in filter(str.strip, element.attrib.pop("style", "").split(";")):
            key, _, value = declaration.partition(":")
            element.set(key.strip(), value.strip())
    picture.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}  # what the style of the picture says
    return ElementTree.tostring(picture, encoding="unicode")


def save_figure(folder: Folder, name: str, figure: Any) -> None:
    """Write a Matplotlib figure into a folder, in the format that the ending of its name says."""
    kind = PurePosixPath(name).suffix[1:].lower()
    content = io.BytesIO()
    figure.savefig(content, format=kind, metadata=UNDATED.get(kind))
    folder.write(name, content.getvalue(), durable=False)


def with_caption(svg: str, caption: str) -> str:
    """A figure and the words below it."""
    return f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>"


def table(heads: list[str], rows: list[list[Any]]) -> str:
    """A table with headings; `none` where it has no rows."""
    none = f'<tr><td colspan="{len(heads)}">none</td></tr>'
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{html.escape(head)}</th>' for head in heads)}</tr>{body or none}</table>"


def facts_table(facts: dict[str, Any], manifest: dict[str, Any]) -> str:
    """Facts of the page's own, then the ones that every manifest holds."""
    own = facts | {
        "device": manifest["device"],
        "specification": manifest["spec_hash"][:16],
        "versions": ", ".join(f"{k} {v}" for k, v in manifest["versions"].items()),
    }
    if "plugins" in manifest:
        own["plugins"] = ", ".join(f"{row['file']} (SHA-256 {row['sha256'][:16]})" for row in manifest["plugins"])
    rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(str(v))}</td></tr>" for k, v in own.items())
    return f"<h2>The run</h2><table>{rows}</table>"


def toml_block(heading: str, toml: str) -> str:
    """A specification as it can be run again."""
    return f"<h2>{heading}</h2><pre>{html.escape(toml)}</pre>"


def _allowed(text: str) -> str:
    """How a policy names the text of a script or of styles."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.2rem; font-size: 1.15rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e4e4e4; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .9rem; max-width: 46rem; }
pre { background: #f6f6f4; padding: 1rem; overflow-x: auto; font-size: .85rem; }
p { max-width: 46rem; } .statement { font-size: 1.1rem; } .wide { overflow-x: auto; }
.holds { color: #00694d; } .fails { color: #b3261e; font-weight: bold; }
.player { margin: 1.5rem 0; } .player .stage { position: relative; }
.player svg { display: block; width: 100%; height: auto; }
.player canvas { position: absolute; left: 0; top: 0; width: 100%; height: 100%; touch-action: pan-y; }
.player .controls { display: flex; gap: .8rem; align-items: center; } .player input { flex: 1; }
.player button { width: 5rem; font: inherit; }
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{title} · attnflow</title>
<style>{style}</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""
