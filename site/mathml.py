"""Formulas: `$…$` and `$$…$$` in Markdown become MathML when the site is built, so that no script draws them.

A code host draws the same sources itself. A formula that cannot be read ends the build. Docstrings and derivations are
plain text: they write `X[mu](x)` for a functional, which is no link, `<x, y>` for a product, which is no tag, spell
letters out, and have `e^{-2 t}`, `x_i` and `S^(d-1)` for what is raised or lowered.
"""

import html
import re
import xml.etree.ElementTree as etree
from typing import Any

import latex2mathml.converter
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

INLINE = r"(?P<before>\(?)(?<![\\$\w])\$(?![\s$\d])(?P<tex>(?:\\.|[^$\\\n])+?)(?<!\s)\$(?![\w$])(?P<after>[.,;:!?)]*)"
BLOCK = r"\$\$(?P<tex>(?:.|\n)+?)\$\$"
NAME = "<mi>(?:arccos|arcsin|arctan|cos|cosh|cot|det|exp|inf|lim|ln|log|max|min|sin|sinh|sup|tan|tanh)</mi>"
FUNCTION = f"(?<!<msup>)(?<!<msub>)(?<!<mfrac>){NAME}|<msu([pb])>{NAME}<m[in]>[^<]*</m[in]></msu\\2>"
FUNCTIONAL = r"(?<=\w)\[(\w+)\](?=\()"
LETTERS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ"},
    **{"Lambda": "Λ", "lambda": "λ", "mu": "μ", "nu": "ν", "omega": "ω", "phi": "φ", "psi": "ψ", "rho": "ρ"},
    **{
        "Delta": "Δ",
        "Gamma": "Γ",
        "Phi": "Φ",
        "Theta": "Θ",
        "pi": "π",
        "zeta": "ζ",
        "sigma": "σ",
        "tau": "τ",
        "xi": "ξ",
    },
    **{"sum": "Σ", "int": "∫", "sqrt": "√", ">=": "≥", "<=": "≤", "->": "→", "+-": "±"},
}
NAMES = "|".join(name for name in LETTERS if name.isalpha() and name not in ("sum", "int", "sqrt"))
PRODUCT = r"\\?<([^<>=\n]{1,60}, ?[^<>=\n]{1,60}?)\\?>"
PLAIN = "|".join(
    [
        rf"(?<![\w`.#])(?<![A-Za-z]-)(?:{NAMES})(?!\w|-[A-Za-z]|\.\w)",
        r"\bsum(?=\\?_\w)|\bsqrt(?=\()",
        r"\\?[<>]=|\\[<>]|(?<=\s)-\\?>(?=\s)|\+-(?=[\w`\d])",
    ]
)
BRACED = r"\{((?:[^{}\n]|\{[^{}\n]*\})+)\}"
PAIRED = r"\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))+\)"
RAISED = rf"\^(?:{BRACED}|({PAIRED})|([-−]?(?:\d+|[^\W\d_]{{1,5}}(?!\w)))|([*∞](?![\w*])))"
BEFORE = r"(?:(?<![\w`.])|(?<=[²³]))"
BASE = rf"([^\W\d_]['²³]?|[∫∂∇]|{NAMES}|[Ss]um|int|max|min|sup|lim|log|mean|Var|Cov|tr)"
LOWERED = rf"{BEFORE}{BASE}\\?_(?:{BRACED}|(\d+|[^\W\d_]{{1,2}}|max|min|inf|∞|{NAMES})(?!\w|\.\w))"
OPENS = '<mo(?: stretchy="false")?>&#x0(?:0028|005B|003D|003C|003E|2264|2265|2260|2248|2192|2208|21A6|002C);</mo>'
"""Brackets and relations, after which a minus is a sign."""
SIGNS = {
    r'<mo(?: movablelimits="true")?>(det|inf|lim|max|min|sup)</mo>': r"<mi>\1</mi>",
    r"<mo>&#x0221E;</mo>": "<mi>&#x0221E;</mi>",
    r"<mo>&#x0002F;</mo>": '<mo lspace="0" rspace="0">&#x0002F;</mo>',
    r"(?<=</mn>)<mrow><mo>&#x0002C;</mo></mrow>(?=<mn>)": '<mo lspace="0" rspace="0">&#x0002C;</mo>',
    r"<mi>\ue000</mi>": '<mo stretchy="false" lspace="0" rspace="0" form="prefix">&#x0007C;</mo>',
    r"<mi>\ue001</mi>": '<mo stretchy="false" lspace="0" rspace="0" form="postfix">&#x0007C;</mo>',
    rf"({OPENS})<mo>(&#x0(?:2212|00B1);)</mo>": r'\1<mo form="prefix">\2</mo>',
}
"""What the converter takes for an operator with spaces around it, and TeX does not."""
BARS = {r"(?<!left)\\lvert(?![A-Za-z])": "\ue000", r"(?<!right)\\rvert(?![A-Za-z])": "\ue001"}
"""Bars that open and close are one character to the converter."""
BLACKBOARD = {"C": "ℂ", "E": "𝔼", "N": "ℕ", "P": "ℙ", "R": "ℝ", "S": "𝕊", "Z": "ℤ"}
SPACE = '<mspace width="0.17em"/>'
"""TeX sets a thin space around names of functions, unless a sign or a parenthesis follows; the converter does not."""


def convert(formula: str, display: str) -> str:
    """LaTeX as MathML, spaced as TeX does it."""
    for bar, sign in BARS.items():
        formula = re.sub(bar, sign, formula)
    return spaced(latex2mathml.converter.convert(formula, display=display))


def spaced(made: str) -> str:
    """MathML with thin spaces around names of functions, and blackboard letters as letters of their own.

    Browsers know no other variant of a letter than `normal`.
    """
    for pattern, instead in SIGNS.items():
        made = re.sub(pattern, instead, made)
    made = re.sub(r'<mi mathvariant="double-struck">(\w)</mi>', lambda found: f"<mi>{BLACKBOARD[found[1]]}</mi>", made)
    made = re.sub(f"({FUNCTION})(?=<m(?!o))", rf"\1{SPACE}", made)
    return re.sub(f"(?:(?<=</m[in]>)|(?<=</msu[bp]>)|(?<=</mfrac>))({FUNCTION})", rf"{SPACE}\1", made)


class Formula(InlineProcessor):
    """One formula, within a line or in a line of its own."""

    def __init__(self, pattern: str, md: Markdown, display: str):
        super().__init__(pattern, md)
        self.display = display

    def handleMatch(self, found: re.Match[str], _: str) -> tuple[Any, int, int]:  # type: ignore[override]
        """The MathML of a formula with the signs that touch it, kept as it is by all that follows."""
        around = {"before": "", "after": ""} | found.groupdict()
        made = around["before"] + convert(found["tex"].strip(), self.display) + around["after"]
        element = etree.Element("div" if self.display == "block" else "span")
        element.set("class", "formula")
        element.text = self.md.htmlStash.store(made)
        return element, found.start(0), found.end(0)


def letters(text: str) -> str:
    """Plain text with letters for their names, ⟨x, y⟩ for <x, y> and signs for >= and <=."""
    return re.sub(PLAIN, lambda found: _letter(found[0]), text)


def _letter(found: str) -> str:
    sign = found.replace("\\", "")
    return LETTERS.get(sign, sign)


def scripts(text: str, *, inside: bool = False) -> str:
    """Plain text as HTML, with what is raised after ^ and lowered after _; `inside` of these a hyphen is a minus."""
    text = re.sub(PRODUCT, r"⟨\1⟩", re.sub(r"\\([_<>|*])", r"\1", text))
    found = re.search(f"{RAISED}|{LOWERED}", text)
    if found is None:
        plain = text.replace("-", "−") if inside else text
        return html.escape(letters(plain), quote=False)
    before, after = text[: found.start()], text[found.end() :]
    return scripts(before, inside=inside) + _script(found[0]) + scripts(after, inside=inside)


def _script(found: str) -> str:
    if up := re.fullmatch(RAISED, found):
        within = next(filter(None, up.groups()))
        return f"<sup>{scripts(within[1:-1] if within == up[2] else within, inside=True)}</sup>"
    down = re.fullmatch(LOWERED.removeprefix(BEFORE), found)
    assert down is not None
    base, within = down[1], down[2] or down[3]
    return f"{LETTERS.get(base.lower(), base)}<sub>{scripts(within, inside=True)}</sub>"


class Script(InlineProcessor):
    """What is raised or lowered, in plain text."""

    def handleMatch(self, found: re.Match[str], _: str) -> tuple[Any, int, int]:  # type: ignore[override]
        """The characters as HTML; a product may hold such characters, and they may hold a product."""
        if "\x02" in found[0]:  # code or a link in a product, which Markdown puts back by itself
            element = etree.Element("span")
            element.text = re.sub(PRODUCT, r"⟨\1⟩", found[0])
            return element, found.start(0), found.end(0)
        return self.md.htmlStash.store(scripts(found[0])), found.start(0), found.end(0)


class Plain(InlineProcessor):
    """Names of letters and signs that are made of several characters."""

    def handleMatch(self, found: re.Match[str], _: str) -> tuple[Any, int, int]:  # type: ignore[override]
        """The letter or the sign."""
        return self.md.htmlStash.store(html.escape(_letter(found[0]), quote=False)), found.start(0), found.end(0)


class Brackets(InlineProcessor):
    """Brackets right after a letter, kept as they are."""

    def handleMatch(self, found: re.Match[str], _: str) -> tuple[Any, int, int]:  # type: ignore[override]
        """The same characters, which no other pattern reads again."""
        return self.md.htmlStash.store(f"[{letters(found.group(1))}]"), found.start(0), found.end(0)


class MathML(Extension):
    """Formulas as MathML."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Before emphasis and escapes, which would take underscores and backslashes apart."""
        md.inlinePatterns.register(Formula(BLOCK, md, "block"), "formula-block", 186)
        md.inlinePatterns.register(Formula(INLINE, md, "inline"), "formula", 185)
        md.inlinePatterns.register(Script(f"{RAISED}|{LOWERED}|{PRODUCT}", md), "script", 184.5)
        md.inlinePatterns.register(Plain(PLAIN, md), "plain", 184)
        md.inlinePatterns.register(Brackets(FUNCTIONAL, md), "functional", 187)


def makeExtension(**options: Any) -> MathML:
    """The extension, as Markdown asks for it."""
    return MathML(**options)
