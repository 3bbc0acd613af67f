"""Layers on Gram matrices alone have the distribution of layers on vectors (arXiv:2604.01978)."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from attnflow.errors import InvalidInput, InvalidSpec
from attnflow.random_layers import gram_layers
from attnflow.runs import execute, open_run, parse_spec
from tests.marks import graded

START = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.3], [-0.2, 0.3, 1.0]])


def vectors(gram, b, step, layers, d, d_k, heads, replicas, seed, mean_value=0.0):
    """The tokens themselves in plain NumPy, (replica, n, d): every matrix is drawn."""
    rng, n = np.random.default_rng(seed), len(gram)
    x = np.zeros((replicas, n, d))
    x[:, :, :n] = np.linalg.cholesky(gram)
    for _ in range(layers):
        total = 0
        for _ in range(heads):
            q, k = (rng.standard_normal((replicas, d_k, d)) for _ in range(2))
            v = rng.standard_normal((replicas, d, d)) / np.sqrt(d) + mean_value * np.eye(d)
            logits = b / np.sqrt(d_k) * (x @ q.mT) @ (x @ k.mT).mT
            weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
            total = total + weights / weights.sum(axis=-1, keepdims=True) @ x @ v.mT
        x = x + step / heads * total
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return x


@graded(
    ("d", "d_k", "heads", "mean"),
    [
        (16, 12, 3, 0.0),  # Bartlett factors, for 13 and 12 degrees of freedom
        (7, 2, 1, 0.0),  # fewer degrees than tokens after Q and K
        pytest.param(16, 16, 1, 0.4, marks=pytest.mark.slow),
        pytest.param(3, 3, 2, 0.0, marks=pytest.mark.slow),  # no room beyond the span
    ],
    slow=1,
)
def test_the_same_distribution_as_vectors(d, d_k, heads, mean):
    """Two layers of step 1.2, where nothing is small: Kolmogorov-Smirnov at level 0.001 for three overlaps and the mean
    overlap (seeds are fixed), and the means of all products of two overlaps at 4.5 standard errors.
    """
    replicas, b, step = 3000, 2.0, 1.2
    path = gram_layers(START, b, step, 2, d, d_k, heads, replicas=replicas, seed=1, mean_value=mean)
    x = vectors(START, b, step, 2, d, d_k, heads, replicas, seed=2, mean_value=mean)
    pairs = np.triu_indices(3, 1)
    found, want = path.gram[:, -1][:, *pairs], (x @ x.mT)[:, *pairs]
    np.testing.assert_allclose(path.overlap[:, -1], found.mean(axis=1), atol=1e-14)
    np.testing.assert_allclose(path.order[:, -1], (3 + 2 * found.sum(axis=1)) / 9, atol=1e-14)
    for one, other in [*zip(found.T, want.T, strict=True), (found.mean(axis=1), want.mean(axis=1))]:
        assert ks_2samp(one, other).pvalue > 1e-3
    products = [np.einsum("ra,rb->rab", a, a) for a in (found, want)]
    error = np.sqrt(sum(p.var(axis=0) for p in products) / replicas)
    assert (np.abs(products[0].mean(axis=0) - products[1].mean(axis=0)) < 4.5 * error).all()
    # a test of this size sees a wrong dimension
    other = vectors(START, b, step, 2, 2 * d, d_k, heads, replicas, seed=3, mean_value=mean)
    assert ks_2samp(found[:, 0], (other @ other.mT)[:, 0, 1]).pvalue < 1e-3


@pytest.mark.slow
def test_one_layer_has_the_drift_and_the_variation_of_the_generator():
    """D = [(d-2+R^2) s_12 - (d-1) R (s_11+s_22)/2]/d and (1-R^2)(s_11+s_22-2 R s_12)/d, times tau = eta^2/H.

    s_ij = E <m_i, m_j> by 10^5 draws in NumPy. Layers are off by O(eta^2) relative: the bound is 1 of it.
    """
    d, d_k, heads, b, r, replicas = 6, 3, 2, 1.5, -0.6, 50_000
    rng = np.random.default_rng(0)
    x = np.array([[1.0, 0.0], [r, np.sqrt(1 - r**2)]])
    q, k = (rng.standard_normal((100_000, d_k, 2)) for _ in range(2))
    weights = np.exp(b / np.sqrt(d_k) * (x @ q.mT) @ (x @ k.mT).mT)
    m = weights / weights.sum(axis=-1, keepdims=True) @ x
    s = np.einsum("sia,sja->ij", m, m) / len(m)
    drift = ((d - 2 + r**2) * s[0, 1] - (d - 1) * r * (s[0, 0] + s[1, 1]) / 2) / d
    spread = (1 - r**2) * (s[0, 0] + s[1, 1] - 2 * r * s[0, 1]) / d
    for eta in (0.25, 0.1):  # the drift is seen at the first, the variation is sharp at the second
        path = gram_layers(r, b, eta, 1, d, d_k, heads, n=2, replicas=replicas, seed=5, keep=False)
        tau = path.tau[-1]
        assert tau == eta**2 / heads
        change = (path.overlap[:, -1] - path.overlap[:, 0]) / np.sqrt(tau)
        error = change.std() / np.sqrt(replicas)
        assert abs(change.mean() - drift * np.sqrt(tau)) < 4 * error + eta**2 * abs(drift) * np.sqrt(tau)
        assert abs(change.mean()) > 10 * error
        squares = change**2
        assert abs(squares.mean() - spread) < 4 * squares.std() / np.sqrt(replicas) + eta**2 * spread


@graded(
    ("step", "heads", "layers", "want", "error", "deviation"),
    [
        (0.3, 4, 44, 0.1952, 0.0040, 0.218),
        pytest.param(1.0, 16, 16, 0.1965, 0.0017, 0.215, marks=pytest.mark.slow),
    ],
    slow=1,
)
def test_the_scalings_have_one_limit(step, heads, layers, want, error, deviation):
    """n = 4, d = d_k = 8, b = 1 from orthonormal tokens, tau = 1: mean overlap and its deviation, at 4 standard errors.

    (The table of the theory has 3,000 seeds. Its entry for eta = 1, H = L = 16 is .1850 +- .0039; the number here is
    that of 16,000 vectors in NumPy, by the function above.)
    """
    path = gram_layers(np.eye(4), 1.0, step, layers, 8, 8, heads, replicas=500, seed=3, keep=False)
    mean, own = path.mean()
    assert abs(path.tau[-1] - 1) < 0.02
    assert abs(mean[-1] - want) < 4 * np.hypot(own[-1], error)
    assert abs(path.overlap[:, -1].std() - deviation) < 4 * deviation * np.sqrt(1 / 1000 + 1 / 6000)


@pytest.mark.slow
def test_a_mean_value_gives_the_flow_with_noise():
    """E V = I, T = eta L = 1, n = 4, d = d_k = 8, b = 1, eta = .1: as vectors, and near the flow, which ends at .6150.

    Layers are off by O(eta). (20,000 vectors in NumPy: mean .6019 +- .0004, deviation .0626; the theory has .0605.)
    """
    given = (1.0, 0.1, 10, 8, 8)
    path = gram_layers(0.0, *given, n=4, replicas=3000, seed=4, mean_value=1.0, keep=False)
    x = vectors(np.eye(4), *given, 1, 3000, seed=5, mean_value=1.0)
    want = (np.sum(x @ x.mT, axis=(1, 2)) - 4) / 12
    mean, error = path.mean()
    assert abs(mean[-1] - want.mean()) < 4 * np.sqrt(2) * error[-1]
    assert abs(path.overlap[:, -1].std() / want.std() - 1) < 4 * np.sqrt(2 / 6000)
    assert 0.59 < mean[-1] < 0.615
    assert ks_2samp(path.overlap[:, -1], want).pvalue > 1e-3


@graded(("n", "b", "want"), [(16, 1.0, 0.0956), (16, 4.0, 0.0805)])
def test_thousands_of_dimensions(n, b, want):
    """d = d_k = 4096, eta = .1, tau = 1: .0956 and .0805 with vectors (s.e. at most .0013)."""
    mean, error = gram_layers(0.0, b, 0.1, 100, 4096, n=n, replicas=60, keep=False).mean()
    assert abs(mean[-1] - want) < 4 * np.hypot(error[-1], 0.0013)


@pytest.mark.slow
def test_a_replica_is_itself_whatever_is_saved_with_it():
    given = (START, 2.0, 0.5, 6, 20, 15, 2)
    many = gram_layers(*given, replicas=5, save=[1, 4, 6], seed=8)
    few = gram_layers(*given, replicas=2, save=1, seed=8)
    assert many.layers.tolist() == [0, 1, 4, 6]
    np.testing.assert_allclose(many.tau, 0.25 * many.layers / 2)
    np.testing.assert_allclose(many.gram[:, 0], np.broadcast_to(START, (5, 3, 3)), atol=1e-14)
    np.testing.assert_allclose(many.gram[:2, -1], few.gram[:, -1], atol=1e-12)
    assert np.abs(many.gram[0, -1] - many.gram[1, -1]).max() > 0.01
    np.testing.assert_allclose(np.einsum("rfii->rfi", many.gram), 1.0, atol=1e-14)
    assert np.abs(gram_layers(*given, replicas=2, seed=9).gram[0, -1] - few.gram[0, -1]).max() > 0.01


def test_slices_and_continuations_change_no_bit(faults):
    given = {"n": 3, "replicas": 3, "seed": 1}
    whole = gram_layers(0.1, 1.0, 0.4, 12, 20, 4, save=[3, 4, 12], **given)
    faults.replace("seconds of a slice of layers", 0.0)  # one layer a slice
    seen = []
    fine = gram_layers(0.1, 1.0, 0.4, 12, 20, 4, save=[3, 4, 12], on_progress=seen.append, **given)
    assert [one.time for one in seen] == list(range(13))
    assert seen[5].note == "layer 5 of 12"
    first = gram_layers(0.1, 1.0, 0.4, 4, 20, 4, save=[3, 4], **given)
    for other in (fine, first.continued(12, save=[12])):
        assert other.outcome.message == "made 12 layers."
        for name in ("layers", "tau", "gap", "order", "factor"):
            np.testing.assert_array_equal(getattr(other, name), getattr(whole, name))


def test_a_specification_gives_the_same(tmp_path):
    text = """
    [gram_layers]
    gram = [[1.0, 0.5, -0.2], [0.5, 1.0, 0.3], [-0.2, 0.3, 1.0]]
    logit_scale = 2.0
    step = 0.5
    layers = 3
    d = 20
    keep = false
    """
    _, found = execute(parse_spec(text), tmp_path / "run")
    want = gram_layers(START, 2.0, 0.5, 3, 20, keep=False)
    opened = open_run(tmp_path / "run")
    for path in (found, opened):
        np.testing.assert_array_equal(path.gap, want.gap)
        assert path.factor is None
        assert path.seed == want.seed == 0
    assert "2 frames; made 3 layers" in repr(opened)
    with pytest.raises(InvalidSpec, match="`gram_layers.layers` is 2.5; give a whole number"):
        parse_spec(text, ["gram_layers.layers=2.5"])


def test_near_collapse_gaps_keep_their_digits():
    """To first order in the gap a layer acts linearly on differences of tokens: with one seed, gaps have one ratio.

    The start 1 - 10^-12 is itself rounded by 10^-4 of its gap. Sixty layers take it down to 10^-20, where differences
    of tokens, 10^-10, have 6 digits.
    """
    given = {"n": 3, "replicas": 4, "seed": 2}
    small, tiny = (gram_layers(1 - gap, 1.0, 0.6, 60, 12, 4, **given).gap for gap in (1e-8, 1e-12))
    np.testing.assert_allclose(tiny / tiny[:, :1], small / small[:, :1], rtol=2e-3)
    assert tiny[:, -1].min() < 1e-18
    together = gram_layers(1.0, 1.0, 0.6, 60, 12, 4, **given)
    assert together.gap.max() < 1e-29
    twins = gram_layers(np.array([[1.0, 1.0, 0.2], [1.0, 1.0, 0.2], [0.2, 0.2, 1.0]]), 1.0, 0.3, 5, 12, 4, replicas=4)
    rows = twins.factor
    assert np.abs(rows[:, :, 0] - rows[:, :, 1]).max() < 1e-14
    assert np.abs(twins.gram[:, -1, 0, 2] - 0.2).min() > 1e-3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gram_layers(0.2, 1.0, 0.1, 5, 8), "give the number `n` of tokens"),
        (lambda: gram_layers(-0.7, 1.0, 0.1, 5, 8, n=3), "`gram` is -0.7"),
        (lambda: gram_layers(np.ones((2, 3)), 1.0, 0.1, 5, 8), r"shape \(2, 3\)"),
        (lambda: gram_layers(np.eye(3), 1.0, 0.1, 5, 8, n=4), r"shape \(3, 3\)"),
        (lambda: gram_layers(2 * np.eye(3), 1.0, 0.1, 5, 8), "no matrix of overlaps"),
        (lambda: gram_layers(np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]), 1.0, 0.1, 5, 8), "eigenvalue"),
        (lambda: gram_layers(np.eye(9), 1.0, 0.1, 5, 8), "`d` is 8, below the number 9"),
        (lambda: gram_layers(np.eye(3), -1.0, 0.1, 5, 8), "`logit_scale` is -1"),
        (lambda: gram_layers(np.eye(3), 1.0, 0.1, 0, 8), "`layers` is 0"),
        (lambda: gram_layers(np.eye(3), 1.0, 0.1, 5, 8, heads=0), "`heads` is 0"),
        (lambda: gram_layers(np.eye(3), 1.0, 0.1, 5, 8, save=[2.0, 4.0]), "last saved time"),
        (lambda: gram_layers(np.eye(3), 1.0, 0.1, 5, 8, replicas=10**12), "`replicas`"),
        (lambda: gram_layers(np.eye(2), 0.0, 0.1, 1, 2, keep=False).gram, "keep=True"),
        (lambda: gram_layers(np.eye(2), 0.0, 0.1, 1, 2, keep=False).mean(), "`replicas` is 1"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        call()
    assert 20 <= len(str(caught.value)) <= 400
    assert str(caught.value).endswith(".")
