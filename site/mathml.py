"""Formulas: `$…$` and `$$…$$` in Markdown become MathML when the site is built, so that no script draws them.

A code host draws the same sources itself. A formula that cannot be read ends the build. Docstrings are plain text: they
write `X[mu](x)` for a functional, which is no link, `<x, y>` for a product, which is no tag, and spell letters out.
"""

import re
import xml.etree.ElementTree as etree
from typing import Any

import latex2mathml.converter
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

INLINE = r"(?<![\\$\w])\$(?![\s$\d])((?:\\.|[^$\\\n])+?)(?<!\s)\$(?![\w$])"
BLOCK = r"\$\$((?:.|\n)+?)\$\$"
NAME = "<mi>(?:arccos|arcsin|arctan|cos|cosh|cot|exp|log|sin|sinh|tan|tanh)</mi>"
FUNCTION = f"(?<!<msup>)(?<!<msub>)(?<!<mfrac>){NAME}|<msup>{NAME}<m[in]>[^<]*</m[in]></msup>"
FUNCTIONAL = r"(?<=\w)\[(\w+)\](?=\()"
LETTERS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ"},
    **{"Lambda": "Λ", "mu": "μ", "rho": "ρ", "sigma": "σ", "tau": "τ", "sum": "Σ", "sqrt": "√", ">=": "≥", "<=": "≤"},
}
NAMES = "|".join(name for name in LETTERS if name.isalpha() and name not in ("sum", "sqrt"))
PLAIN = "|".join(
    [
        rf"(?<![\w`.#-])(?:{NAMES})(?!\w|-\w|\.\w)",
        r"\bsum(?=_\w)|\bsqrt(?=\()",
        r"\\?[<>]=",
        r"<[^<>=\n]{1,60}, ?[^<>=\n]{1,60}>",
    ]
)
SPACE = '<mspace width="0.17em"/>'
"""TeX sets a thin space around names of functions, unless a sign or a parenthesis follows; the converter does not."""


def spaced(made: str) -> str:
    """MathML with thin spaces around names of functions."""
    made = re.sub(f"({FUNCTION})(?=<m(?!o))", rf"\1{SPACE}", made)
    return re.sub(f"(?:(?<=</m[in]>)|(?<=</msu[bp]>)|(?<=</mfrac>))({FUNCTION})", rf"{SPACE}\1", made)


class Formula(InlineProcessor):
    """One formula, within a line or in a line of its own."""

    def __init__(self, pattern: str, md: Markdown, display: str):
        super().__init__(pattern, md)
        self.display = display

    def handleMatch(self, found: re.Match[str], _: str) -> tuple[Any, int, int]:  # type: ignore[override]
        """The MathML of a formula, kept as it is by all that follows."""
        made = spaced(latex2mathml.converter.convert(found.group(1).strip(), display=self.display))
        element = etree.Element("div" if self.display == "block" else "span")
        element.set("class", "formula")
        element.text = self.md.htmlStash.store(made)
        return element, found.start(0), found.end(0)


def letters(text: str) -> str:
    """Plain text with letters for their names, ⟨x, y⟩ for <x, y> and signs for >= and <=."""
    return re.sub(PLAIN, lambda found: _letter(found[0]), text)


def _letter(found: str) -> str:
    if found.startswith("<") and found.endswith(">"):
        return f"⟨{letters(found[1:-1])}⟩"
    return LETTERS[found.removeprefix("\\")]


class Plain(InlineProcessor):
    """Names of letters and signs that are made of several characters."""

    def handleMatch(self, found: re.Match[str], _: str) -> tuple[Any, int, int]:  # type: ignore[override]
        """The letter or the sign."""
        return self.md.htmlStash.store(_letter(found[0])), found.start(0), found.end(0)


class Brackets(InlineProcessor):
    """Brackets right after a letter, kept as they are."""

    def handleMatch(self, found: re.Match[str], _: str) -> tuple[Any, int, int]:  # type: ignore[override]
        """The same characters, which no other pattern reads again."""
        return self.md.htmlStash.store(f"[{found.group(1)}]"), found.start(0), found.end(0)


class MathML(Extension):
    """Formulas as MathML."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Before emphasis and escapes, which would take underscores and backslashes apart."""
        md.inlinePatterns.register(Formula(BLOCK, md, "block"), "formula-block", 186)
        md.inlinePatterns.register(Formula(INLINE, md, "inline"), "formula", 185)
        md.inlinePatterns.register(Plain(PLAIN, md), "plain", 184)
        md.inlinePatterns.register(Brackets(FUNCTIONAL, md), "functional", 187)


def makeExtension(**options: Any) -> MathML:
    """The extension, as Markdown asks for it."""
    return MathML(**options)
