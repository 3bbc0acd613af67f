"""The font of the formulas: STIX Two Math (SIL Open Font Licence), cut down to the letters that formulas use.

Brackets grow and roots reach over their contents only with a font that has a MATH table, and few machines have one. The
package ziamath brings this font, so that the site serves it itself.
"""

import importlib.util
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

LETTERS = [
    *range(0x20, 0x180),
    *range(0x2B0, 0x400),  # accents, Greek
    *range(0x2000, 0x2070),
    *range(0x20D0, 0x20E0),
    *range(0x2100, 0x2300),  # letters, arrows, operators
    *range(0x2308, 0x2330),
    *range(0x27C0, 0x2800),
    *range(0x1D400, 0x1D800),  # mathematical alphabets
]


def write(path: Path) -> None:
    """The font as WOFF."""
    found = importlib.util.find_spec("ziamath")
    if found is None or found.origin is None:
        raise SystemExit("ziamath is missing: pip install -e '.[docs]'")
    font = TTFont(Path(found.origin).parent / "fonts" / "STIXTwoMath-Regular.ttf")
    options = subset.Options(layout_features=["ssty"], hinting=False, name_IDs=[0, 1, 2, 13, 14])
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=LETTERS)
    cutter.subset(font)
    font.flavor = "woff"
    path.parent.mkdir(parents=True, exist_ok=True)
    font.save(path)
