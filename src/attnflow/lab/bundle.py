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
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", flags=re.M)


def page_file(name: str) -> str:
    """The text of a file of the page."""
    return importlib.resources.files("attnflow.lab").joinpath("page", name).read_text(encoding="utf-8")


def script(*entries: str) -> str:
    """The modules `entries` and all that they import as one plain script; `modules.NAME` has what NAME exports."""
    order: list[str] = []
    bodies: dict[str, str] = {}

    def visit(name: str) -> None:
        if name in bodies:
            return
        text = page_file(f"{name}.js")
        bodies[name] = ""  # a circle of imports ends here
        for match in _IMPORT.finditer(text):
            visit(match[3])
        bodies[name] = _as_function(name, text)
        order.append(name)

    for entry in entries:
        visit(entry)
    return '"use strict";\nconst modules = {};\n' + "".join(bodies[name] for name in order)


def _as_function(name: str, text: str) -> str:
    def imported(match: re.Match[str]) -> str:
        names, whole, module = match.groups()
        return f"const {whole or '{' + names.strip() + '}'} = modules.{module};\n"

    body = _IMPORT.sub(imported, text)
    exports = ", ".join(_EXPORT.findall(body))
    return f"modules.{name} = (() => {{\n{_EXPORT.sub('', body)}return {{ {exports} }};\n}})();\n"


def single_file() -> str:
    """The page as one HTML file that needs nothing else and runs from a folder.

    Its policy allows the two scripts and the style by their checksums, a worker made from the text, and no connection.
    Comments stay in the sources.
    """
    main, worker = (_COMMENT.sub("", script(name)) for name in ("main", "worker"))
    style = page_file("style.css")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_checksum(main)}",
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
            f'<script type="text/plain" id="worker-text">{worker}</script>\n<script>{main}</script>'
        ),
    }
    html = page_file("index.html")
    for old, new in parts.items():
        before, after = html.split(old)
        html = before + new + after
    return html


def _checksum(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
