"""What the self-contained pages of runs and of experiments have in common."""

import html
import io
from typing import Any


def as_page(title: str, body: str) -> str:
    """The whole page, styles included; `body` is HTML."""
    return _PAGE.format(title=html.escape(title), body=body)


def as_svg(figure: Any) -> str:
    """A Matplotlib figure as an element of the page."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


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
    rows = "".join(f"<tr><th>{k}</th><td>{html.escape(str(v))}</td></tr>" for k, v in own.items())
    return f"<h2>The run</h2><table>{rows}</table>"


def toml_block(heading: str, toml: str) -> str:
    """A specification as it can be run again."""
    return f"<h2>{heading}</h2><pre>{html.escape(toml)}</pre>"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} · attnflow</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ margin-bottom: 0; }} h2 {{ margin-top: 2.2rem; font-size: 1.15rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
td, th {{ padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e4e4e4; }}
figure {{ margin: 1.5rem 0; }} figure svg {{ max-width: 100%; height: auto; }}
figcaption {{ color: #555; font-size: .9rem; max-width: 46rem; }}
pre {{ background: #f6f6f4; padding: 1rem; overflow-x: auto; font-size: .85rem; }}
p {{ max-width: 46rem; }} .statement {{ font-size: 1.1rem; }}
.holds {{ color: #00694d; }} .fails {{ color: #b3261e; font-weight: bold; }}
</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""
