"""Statements in words: what the checker makes from claims and data is pinned here, for it compares with nothing else."""

from tests.certify import adversaries as make

STEPS = ([0.0, 0.5], 6, [0.1, 1.9], 0.01)
PINNED = [
    (
        make.degree([5.0, 6.0], 2, 3),
        "At every beta in [5.0, 6.0] degree 3 grows fastest around the uniform measure on S^1 (SA, USA and USA0).",
    ),
    (
        make.unstable([9.0, 9.0], 3, 0.01, 6, 48),
        "At beta = 9.0 and noise 0.01 exactly 48 harmonics grow around the uniform measure on S^2 (SA), those of "
        "degrees 1 to 6.",
    ),
    (
        make.density([9.0, 9.0], [0.3, 1.0, 4.0], 3),
        "The density estimate of these 3 angles on the circle with beta = 9.0 has exactly 3 modes.",
    ),
    (
        make.apart(8.0, "SA", 0.5, 110.0, [0.0, 1.5]),
        "Under SA at beta = 8.0 tokens of different groups (2 groups of 2 tokens of equal mass on S^1) are at least "
        "0.5 apart, as angles, until t = 110.0.",
    ),
    (
        make.flow([0.0, 2.0], 2.0, *STEPS, ball=1e-3),
        "Every start within 0.001 of the given angles of 2 tokens of equal mass on the circle, under USA0 at "
        "beta = 2.0, is at t = 0.5 within 0.01 of the angles [0.1, 1.9], token by token.",
    ),
    (
        make.flow([0.0, 2.0], 2.0, *STEPS, masses=[1.0, 2.0]),
        "The given start of 2 tokens with the given masses on the circle, under USA0 at beta = 2.0, is at t = 0.5 "
        "within 0.01 of the angles [0.1, 1.9], token by token.",
    ),
    (
        make.consensus([0.0, 1.0], 2.0),
        "The given start of 2 tokens of equal mass on the circle, under USA0 at beta = 2.0, converges to consensus; "
        "from t = 0.0 on all tokens are in an open half circle.",
    ),
    (
        make.still([0.0, make.PI], 1.0, (1, 0)),
        "At beta = 1.0 exactly one SO(2)-orbit of equilibria of 2 tokens of equal mass on S^1 (SA, USA and USA0) has "
        "a configuration with every token within 1e-10 of its given direction; it is nondegenerate, with 1 unstable, "
        "0 stable and 1 rotational directions.",
    ),
    (
        make.orbit([0.0, make.PI], (1, 0), [make.box([1.0, 1.25], 1e-6, [0.0] * 2)]),
        "Over every beta in [1.0, 1.25] a smooth branch of nondegenerate equilibria of 2 tokens of equal mass on S^1 "
        "(SA, USA and USA0) runs through the boxes of `data`, with 1 unstable, 0 stable and 1 rotational directions.",
    ),
    (
        make.at_half(make.ROOTS, [make.ONE, make.TWO, make.THREE]),
        "At beta = 0.5 the equilibria of 3 tokens of equal mass on the circle (SA, USA and USA0) form exactly 3 "
        "classes up to rotation, reflection and permutation, all nondegenerate: 3 with index 0; 2+1 with index 1; "
        "1+1+1 with index 2. On every sphere equilibria of 3 tokens lie on a great circle, so that the list is "
        "complete there too.",
    ),
]


def test_the_words_of_every_kind_are_pinned():
    for certificate, words in PINNED:
        assert certificate["statement"] == words
