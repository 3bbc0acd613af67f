"""The page in one file: its modules as functions in one script, the worker as a text beside it.

Modules are plain ES modules that import names from each other, `import { a, b } from "./x.js";`, and export
declarations. `script` turns each into a function that returns what it exports, so that nothing else has to run.
"""

import base64
import hashlib
import importlib.resources
import re

_IMPORT = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "\./(\w+)\.js";\n', flags=re.M)
_COMMENT = re.compile(r"^ *(?:/\*\*.*?\*/|//[^\n]*)\n", flags=re.M | re.S)
_ASIDE = re.compile(r"(?<=[;{},)]) // [^\n\"'`]*$", flags=re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", flags=re.M)


def page_file(name: str) -> str:
    """The text of a file of the page."""
    return importlib.resources.files("attnflow.lab").joinpath("page", name).read_text(encoding="utf-8")


BEGIN = '"use strict";\nconst modules = {};\n'


def script(*entries: str) -> str:
    """The modules `entries` and all that they import as one plain script; `modules.NAME` has what NAME exports."""
    return BEGIN + "".join(_functions(*entries).values())


ALONE = {"remote": "alone"}
"""Modules that need a server, and what stands in their place in one file."""


def _functions(*entries: str, instead: dict[str, str] | None = None) -> dict[str, str]:
    """The modules `entries` and all that they import as functions, each after those that it imports."""
    found: dict[str, str] = {}
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in seen:
            return
        seen.add(name)  # a circle of imports ends here
        text = page_file(f"{(instead or {}).get(name, name)}.js")
        for match in _IMPORT.finditer(text):
            visit(match[3])
        found[name] = _as_function(name, text)

    for entry in entries:
        visit(entry)
    return found


def _as_function(name: str, text: str) -> str:
    def imported(match: re.Match[str]) -> str:
        names, whole, module = match.groups()
        return f"const {whole or '{' + names.strip() + '}'} = modules.{module};\n"

    body = _IMPORT.sub(imported, text)
    exports = ", ".join(_EXPORT.findall(body))
    return f"modules.{name} = (() => {{\n{_EXPORT.sub('', body)}return {{ {exports} }};\n}})();\n"


def single_file() -> str:
    """The page as one HTML file that needs nothing else and runs from a folder.

    Its policy allows the two scripts and the style by their checksums, a worker made from two texts, and no connection.
    What page and worker share is there once. Comments and indentation stay in the sources.
    """
    page, engine = _functions("main", instead=ALONE), _functions("worker")
    both = BEGIN + "".join(text for name, text in engine.items() if name in page)
    rest = ("".join(text for name, text in own.items() if name not in (page.keys() & engine)) for own in (page, engine))
    shared, main, worker = (_shortened(text) for text in (both, *rest))
    style = _shortened(page_file("style.css"))
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_checksum(shared)} {_checksum(main)}",
            f"style-src {_checksum(style)}",
            "worker-src blob:",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    charset = '<meta charset="utf-8">\n'
    parts = {
        charset: f'{charset}<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        '<link rel="stylesheet" href="style.css">': f"<style>{style}</style>",
        '<script type="module" src="main.js"></script>': (
            f'<script id="shared-text">{shared}</script>\n'
            f'<script type="text/plain" id="worker-text">{worker}</script>\n<script>{main}</script>'
        ),
    }
    html = _shortened(page_file("index.html"))
    for old, new in parts.items():
        before, after = html.split(old)
        html = before + new + after
    return html


def _shortened(text: str) -> str:
    """Without comments, indentation and empty lines."""
    return re.sub(r"^\s+", "", _ASIDE.sub("", _COMMENT.sub("", text)), flags=re.M)


def _checksum(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
