"""No combination of parts gives a wrong number: it agrees with plain NumPy, or it is refused in one sentence."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import AttnflowError, NotFinite
from tests.combinations import covering, reference
from tests.combinations.cases import (
    BETA,
    STREAMS,
    WORDS,
    at_random,
    case_name,
    complete,
    field,
    makes_sense,
    must_work,
    present,
    tokens,
)
from tests.conftest import unchecked
from tests.marks import graded

WORKING = covering.read("combinations")
REFUSED = [words for words in at_random(WORDS, 100, seed=0) if not must_work(words)][:40]
T = 0.1


def one_sentence(refusal):
    text = str(refusal)
    return text.endswith(".") and "\n" not in text and 20 < len(text) < 400


def evaluate(case):
    """(velocity, stated error) of attnflow, or the refusal; NaN where attnflow says that a velocity is not finite."""
    batched = case["batch"] == "beta" and case["kernel"] != "cosine"  # which has no number
    beta = af.Along("beta", [0.9, BETA]) if batched else BETA
    try:
        made, mu = field(case, beta), tokens(case)
        made.check(mu)
    except AttnflowError as refusal:
        return refusal
    if case["sum"] == "chosen":
        made = made.prepare(mu, flowing=True)
    x, place = (None, None) if case["queries"] == "tokens" else (case["x"], case["query_place"])
    try:
        found = present(case, made.velocity(mu, T, at=x, place=place), mu)
    except NotFinite:
        return np.full(case["x"].shape, np.nan), np.zeros(())
    alone = field(case, BETA)
    alone = alone.prepare(mu, flowing=True) if case["sum"] == "chosen" else alone
    points = None if x is None else np.asarray(x, mu.positions.dtype)
    one = mu.member(prompt=0) if case["rows"] == "prompts" else mu
    error = np.asarray(alone.error(one, T, at=points, place=place))
    if error.ndim and x is None and case["rows"] == "absent":
        assert (error[~mu.present] == 0).all()
        error = error[mu.present]
    return found[-1] if batched else found, error


def decided(case, x, y, drive):
    """Queries whose hardmax does not change when all points move by 1e-6: others are ties except for rounding."""
    if case["normaliser"] != "hardmax" or case["dtype"] == "float64":
        return np.ones(len(x), bool)
    rng = np.random.default_rng(0)
    same = np.ones(len(x), bool)
    for _ in range(4):
        shift = 1e-6 * rng.standard_normal(y.shape)
        moved = x + shift if x.shape == y.shape and (x == y).all() else x + 1e-6 * rng.standard_normal(x.shape)
        other = reference.drive(case, BETA, T, moved, y + shift, case["masses"], case["query_place"], case["key_place"])
        same &= np.abs(other - drive).max(axis=1) < 1e-3 * (1 + np.abs(drive).max())
    if case["kernel"] == "gaussian":  # a close second loses by a square, which no small shift turns round
        for h in range(case["heads"] or 1):
            q, k = (case["matrices"].get(name) for name in "qk")
            q, k = (a if a is None or a.ndim == 2 else a[h] for a in (q, k))
            q = reference.features(case, q, x, case["query_place"])
            k = reference.features(case, k, y, case["key_place"])
            seen = reference.kernel(case, BETA, q, k) + reference.bias(
                case["mask"], case["query_place"], case["key_place"]
            )
            second, first = np.sort(np.where(case["masses"] > 0, seen, -np.inf), axis=1)[:, -2:].T
            rounding = 8 * np.finfo(np.float32).eps * (1 + 2 * BETA * (2 * np.abs(q).max() + 2 * np.abs(k).max()) ** 2)
            same &= ~(second > first - 2 * rounding)  # -inf where nobody, or one only, is seen
    return same


def look(words):
    try:
        return verdict(words)
    except AssertionError as failure:
        raise AssertionError(f"{case_name(words)}: {failure}") from failure


def verdict(words):
    case = complete(words)
    found = evaluate(case)
    if isinstance(found, AttnflowError):
        assert one_sentence(found), found
        assert not must_work(words), f"refused: {found}"
        return "refused"
    assert makes_sense(words), "accepted, but it has no meaning"
    velocity, error = found
    x, y = case["x"], case["y"]
    if words["dtype"] == "float32":
        x, y = np.float32(x).astype(float), np.float32(y).astype(float)
    drive = reference.drive(case, BETA, T, x, y, case["masses"], case["query_place"], case["key_place"])
    inside = drive
    if case["wrapper"] == "composed":
        bare = {**case, "wrapper": "none"}
        inside = reference.drive(bare, BETA, T, x, y, case["masses"], case["query_place"], case["key_place"])
    if np.abs(inside).max() > np.finfo(words["dtype"]).max:
        assert not np.isfinite(velocity).all()  # a number that the type cannot hold is not a silent one
        return "overflows"
    want = reference.tangent(case, x, drive)
    # rounding: sums of n terms as large as the values, through a few operations; a norm divides by what is left
    size = max(1.0, np.abs(want).max()) * (1 + np.abs(case["matrices"].get("v", 0.0)).max())
    unit = 400 * np.finfo(words["dtype"]).eps * size
    if case["wrapper"] in ("ngpt", "peri"):
        inner = reference.drive({**case, "wrapper": "pre" if case["wrapper"] == "peri" else "none"}, BETA, T, x, y,
                                case["masses"], case["query_place"], case["key_place"])  # fmt: skip
        unit = unit / min(1.0, np.linalg.norm(inner, axis=1)[np.linalg.norm(inner, axis=1) > 0].min(initial=1.0))
    if case["wrapper"] in STREAMS and case["norm"] == "layer":  # the mean is subtracted, and takes digits with it
        every = np.concatenate([x, y])
        left = np.linalg.norm(every - every.mean(axis=1, keepdims=True), axis=1) / np.linalg.norm(every, axis=1)
        unit = unit / left.min()
    if case["normaliser"] == "sinkhorn":
        unit = unit + 1e-7 * size  # its iteration stops at 1e-10, and contracts by more than 1 - 1e-3 here
    if case["normaliser"] == "sinkhorn" and np.isnan(velocity).all():
        return "given up"  # the iteration did not converge, and says so
    off = np.where(decided(case, x, y, drive), np.abs(velocity - want).max(axis=1), 0.0)
    assert np.isfinite(velocity).all()
    assert (off <= unit + error).all(), f"off by {off.max():.2e}, stated {np.max(error):.2e}, rounding {unit:.1e}"
    return "agrees"


@pytest.mark.slow
@pytest.mark.parametrize("words", WORKING, ids=case_name)
def test_a_covering_set(words):
    assert look(words) == "agrees"


@graded("words", covering.read("rare combinations"), ids=case_name, slow=4)
def test_rare_pairs(words):
    """What few cases at random have, so that the covering set lacks it."""
    assert look(words) == "agrees"


@pytest.mark.slow
@pytest.mark.parametrize("name", covering.SETS)
def test_the_covering_sets_cover(name):
    """Every two words that are together in one of thousands of cases at random are so in a row of the file."""
    rows = covering.read(name) + covering.read(f"rare {name}")
    assert all(covering.SETS[name][1](words) for words in rows)
    missing = covering.pairs(covering.drawn(name) + covering.drawn_evenly(name)) - covering.pairs(rows)
    assert not missing, f"run `python -m tests.combinations.covering`: {sorted(missing)}"


def test_what_may_be_refused():
    """Combinations that need not work agree all the same or are refused; most have no meaning."""
    with unchecked():  # some have parts of a wrong type
        verdicts = [look(words) for words in REFUSED]
    assert "refused" in verdicts


def test_every_word_occurs():
    seen = {(name, choice) for words in WORKING for name, choice in words.items()}
    missing = {(name, choice) for name, choices in WORDS.items() for choice in choices} - seen
    assert missing == {("sum", "fused")}, "the kernel for a GPU has a test of its own"


SEVERAL = [
    *(pytest.param(200 + part, 6_000, 25, marks=pytest.mark.slow) for part in range(16)),
    *(pytest.param(100 + part, 60_000, 250, marks=pytest.mark.long) for part in range(8)),
]


@graded(("seed", "pool", "count"), SEVERAL, slow=1)
def test_thousands_of_combinations(seed, pool, count):
    """Cases that make sense are drawn more often: the others are all refused in the same few ways."""
    drawn = at_random(WORDS, pool, seed=seed)
    likely = [words for words in drawn if must_work(words)][:count]
    assert len(likely) == count
    verdicts = [look(words) for words in likely + drawn[:count]]
    assert "refused" not in verdicts[:count]
    assert verdicts[:count].count("given up") <= max(1, count // 50)
