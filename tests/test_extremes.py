"""Fields at extreme beta, n and d: finite, or refused. `campaigns/extremes.py` goes to ten million tokens."""

from tests.extremes import BETAS, FIELDS, LARGE, NOT_FINITE, check
from tests.marks import graded

REFUSED = {"USA": (1e4,), "grad": (1e4,)} | NOT_FINITE
"""Where e^beta overflows, and where the iteration may take too long; rotary encodings need an even dimension."""


@graded("name", FIELDS)
def test_a_field_is_finite_or_refused(name):
    for n, d in ((17, 2), (1, 3), (2, 64 if name in LARGE else 4096)):
        for beta in BETAS:
            found = check(name, beta, n, d)
            if (name, d) != ("rotary", 3) and beta not in REFUSED.get(name, ()):
                assert found == "finite", (beta, n, d)
