"""Attention matrices against plain NumPy and against the drive of the field."""

import jax
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, TooLarge
from tests.marks import graded

N, D = 7, 3
X = af.uniform(af.Sphere(D), n=N, seed=4).positions
MASSES = np.array([0.3, 0.05, 0.0, 0.2, 0.25, 0.1, 0.1])
BETA = 2.5
VALUE = np.random.default_rng(0).standard_normal((D, D))
TABLE = np.where(
    np.random.default_rng(1).random((N, N)) < 0.3, -np.inf, np.random.default_rng(2).standard_normal((N, N))
)
TABLE[3] = -np.inf  # token 3 sees nobody
TABLE[4] = -np.inf
TABLE[4, 2] = 0.0  # token 4 sees only a token of mass zero
BACK = np.arange(N)[:, None] - np.arange(N)
MASKS = {
    "everyone": (af.masks.Everyone(), np.zeros((N, N))),
    "causal": (af.Causal(0.3), np.where(BACK >= 0, -0.3 * BACK, -np.inf)),
    "strict": (af.Causal(strict=True), np.where(BACK > 0, 0.0, -np.inf)),
    "window": (af.Window(2), np.where((BACK >= 0) & (BACK < 2), 0.0, -np.inf)),
    "table": (af.masks.Table(TABLE), TABLE),
}
NORMALISERS = {
    "softmax": af.Softmax(),
    "USA0": af.Unnormalised(),
    "USA": af.Unnormalised("USA"),
    "grad": af.Unnormalised("grad"),
    "hardmax": af.Hardmax(),
}


def expected(name, bias, masses, everyone):
    """The definitions, row by row."""
    logits = BETA * (X @ X.T - 1) + bias
    found = np.zeros((N, N))
    for i in range(N):
        seen = np.exp(bias[i]) * masses
        weight = masses * np.exp(logits[i])
        if weight.sum() == 0:
            continue
        if name == "softmax":
            found[i] = weight / weight.sum()
        elif name == "hardmax":
            best = masses > 0
            best &= logits[i] >= logits[i][best].max() - 1e-12
            found[i] = np.where(best, masses, 0.0) / masses[best].sum()
        else:
            clock = {"USA0": 1.0, "USA": np.exp(BETA), "grad": BETA * np.exp(BETA)}[name]
            found[i] = clock * weight / (1.0 if everyone else seen.sum())
    return found


@pytest.mark.parametrize("masses", [np.full(N, 1 / N), MASSES], ids=["equal", "unequal"])
@graded(
    ("name", "mask"),
    [(name, mask) for name in NORMALISERS for mask in MASKS if name not in ("USA", "grad") or mask == "causal"],
    slow=5,
)
def test_the_matrix_is_that_of_the_field(name, mask, masses):
    """Against the definition, and sum_j A_ij V x_j against the drive; e^beta beta = 30 is the largest factor."""
    tokens = af.Tokens(X, masses)
    field = af.Attention(BETA, value=VALUE, normaliser=NORMALISERS[name], mask=MASKS[mask][0])
    matrix = af.observe.attention_matrix(field, tokens)
    assert matrix.dtype == np.float64
    np.testing.assert_allclose(matrix, expected(name, MASKS[mask][1], tokens.masses, mask == "everyone"), atol=1e-13)
    drive = field.drive(tokens)
    np.testing.assert_allclose(matrix @ X @ VALUE.T, drive, atol=1e-13)
    assert np.array_equal(matrix[:, tokens.masses == 0], np.zeros((N, int(np.sum(tokens.masses == 0)))))


def test_a_token_that_sees_nobody_has_a_row_of_zeros():
    for normaliser in NORMALISERS.values():
        field = af.Attention(BETA, normaliser=normaliser, mask=af.Causal(strict=True))
        assert np.array_equal(af.observe.attention_matrix(field, af.Tokens(X))[0], np.zeros(N))


def test_sinkhorn_is_doubly_stochastic_in_the_masses():
    """Rows sum to 1, and sum_i m_i A_ij = m_j up to the tolerance of the potentials; here no softmax does that."""
    masses = np.where(MASSES > 0, MASSES, 0.02)
    tokens, field = af.Tokens(X, masses), af.Attention(BETA, normaliser=af.Sinkhorn())
    matrix = af.observe.attention_matrix(field, tokens)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(tokens.masses @ matrix, tokens.masses, atol=1e-9)
    # alternate scaling in plain NumPy
    plan = np.exp(BETA * (X @ X.T - 1)) * tokens.masses
    for _ in range(2000):
        plan *= tokens.masses / (tokens.masses @ plan)
        plan /= plan.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(matrix, plan, atol=1e-9)
    np.testing.assert_allclose(matrix @ X, field.drive(tokens), atol=1e-14)
    softmax = af.observe.attention_matrix(af.Attention(BETA), tokens)
    assert np.abs(tokens.masses @ softmax - tokens.masses).max() > 1e-2


def test_hardmax_rows_are_shared_by_ties():
    """Tokens 0 and 1 coincide: whoever listens to them listens to both, in proportion to their masses."""
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.8, 0.6], [-1.0, 0.0]])
    tokens = af.Tokens(x, [0.1, 0.3, 0.4, 0.2])
    matrix = af.observe.attention_matrix(af.Attention(BETA, normaliser=af.Hardmax()), tokens)
    expected = [[0.25, 0.75, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(matrix, expected, atol=1e-15)
    alone = af.observe.attention_matrix(af.Attention(BETA, normaliser=af.Hardmax()), af.Tokens(X))
    assert np.array_equal(alone, np.eye(N))


def test_a_sum_that_is_cut_does_not_touch_the_matrix():
    """The series is cut at 1e-3, the matrix is not."""
    tokens = af.uniform(af.Sphere(2), n=20, seed=0)
    loose = af.observe.attention_matrix(af.Attention(30.0, sum=af.sums.Circle(1e-3, 64)), tokens)
    exact = af.observe.attention_matrix(af.Attention(30.0, sum=af.sums.Dense()), tokens)
    weights = np.exp(30.0 * (tokens.positions @ tokens.positions.T - 1))
    assert np.array_equal(loose, exact)
    np.testing.assert_allclose(loose, weights / weights.sum(axis=1, keepdims=True), atol=1e-14)


@graded("shared", [True, False], ids=["shared", "own"], fast=1)
def test_heads_have_a_matrix_each(shared):
    rng = np.random.default_rng(3)
    query = np.eye(D) if shared else rng.standard_normal((2, D, D))
    value, output = rng.standard_normal((2, 4, D)), rng.standard_normal((2, D, 4))
    tokens = af.Tokens(X, MASSES)
    field = af.Attention(BETA, query=query, value=value, output=output, mask=af.Causal())
    matrices = af.observe.attention_matrix(field, tokens)
    assert matrices.shape == (2, N, N)
    for head in range(2):
        one = af.Attention(BETA, query=query if shared else query[head], mask=af.Causal())
        np.testing.assert_allclose(matrices[head], af.observe.attention_matrix(one, tokens), atol=1e-15)
    drive = field.drive(tokens)
    each = np.einsum("hij,hvd,jd,hev->ie", matrices, value, X, output) / 2
    np.testing.assert_allclose(each, drive, atol=1e-13)


def test_matrices_at_a_time_and_under_transformations():
    """Q(t) = (1 + t) I: the weights at time t are those of beta (1 + t), up to the constant of each row."""
    tokens = af.Tokens(X)
    moving = af.Attention(BETA, query=lambda t: (1 + t) * np.eye(D))
    np.testing.assert_allclose(
        af.observe.attention_matrix(moving, tokens, t=0.5),
        af.observe.attention_matrix(af.Attention(1.5 * BETA), tokens),
        atol=1e-14,
    )
    slope = af.in_float64(jax.jit(jax.grad(lambda b: af.observe.attention_matrix(af.Attention(b), tokens)[0, 1])))(BETA)
    h = 1e-5
    ends = [af.observe.attention_matrix(af.Attention(BETA + s), tokens)[0, 1] for s in (h, -h)]
    assert abs(slope - (ends[0] - ends[1]) / (2 * h)) < 1e-9  # h^2 and eps/h


def test_refusals():
    tokens = af.Tokens(X)
    with pytest.raises(InvalidInput, match="`field` is Total; give Attention"):
        af.observe.attention_matrix(af.Attention(1.0) + af.Attention(2.0), tokens)
    with pytest.raises(InvalidInput, match="batch dimensions \\('beta',\\)"):
        af.observe.attention_matrix(af.Attention(af.Along("beta", [1.0, 2.0])), tokens)
    with pytest.raises(InvalidInput, match="batch dimensions \\('seed',\\)"):
        af.observe.attention_matrix(af.Attention(1.0), af.uniform(af.Sphere(3), n=3, seed=[0, 1]))
    with pytest.raises(TooLarge, match="7 tokens with 4 heads"):
        af.observe.attention_matrix(af.Attention(1.0, query=np.ones((4, D, D))), tokens, limit=13)
    af.observe.attention_matrix(af.Attention(1.0, query=np.ones((4, D, D))), tokens, limit=14)


def test_overlap_histogram_in_blocks():
    tokens = af.Tokens(af.uniform(af.Sphere(3), n=300).positions, np.random.default_rng(0).random(300))
    density, edges = af.observe.overlap_histogram(tokens, bins=20, block=64)
    i, j = np.triu_indices(300, 1)
    values, weights = af.observe.overlaps(tokens)[i, j], tokens.masses[i] * tokens.masses[j]
    expected, _ = np.histogram(values, edges, weights=weights, density=True)
    np.testing.assert_allclose(density, expected, rtol=1e-10)
    assert abs(np.sum(density * np.diff(edges)) - 1) < 1e-12
    assert not af.observe.overlap_histogram(af.Measure(np.zeros((0, 3)), np.zeros(0)))[0].any()  # no pairs


def test_matrices_have_a_limit():
    tokens = af.uniform(af.Sphere(3), n=200)
    for call in (af.observe.overlaps, lambda t, limit: af.observe.attention_matrix(af.Attention(1.0), t, limit=limit)):
        with pytest.raises(TooLarge, match="GiB; the limit is 100"):
            call(tokens, limit=100)
