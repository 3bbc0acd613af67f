"""Networks of a few layers, as `solve` runs them, against a loop in plain NumPy: update, wrapper, sum, space, batch."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import AttnflowError, FlowFailed
from tests.combinations import covering, reference
from tests.combinations.cases import (
    BETA,
    LAYER_WORDS,
    STREAMS,
    UPDATES,
    at_random,
    case_name,
    complete,
    field,
    layers_must_work,
    makes_sense,
    present,
    tokens,
)
from tests.marks import graded

LAYERS, STEP = 3, 0.2


def looped(case):
    x = case["y"]
    for k in range(LAYERS):
        t = k * STEP

        def drive(x, t=t):
            return reference.drive(case, BETA, t, x, x, case["masses"], case["key_place"], case["key_place"])

        if case["wrapper"] == "mix":
            theta, size = reference.unit(x), np.linalg.norm(x, axis=1, keepdims=True)
            change = STEP * reference.drive({**case, "wrapper": "pre"}, BETA, t, x, x, case["masses"],
                                            case["key_place"], case["key_place"])  # fmt: skip
            x = x + change if t >= 0.25 else size * reference.unit(theta + change)
        elif case["update"] == "renormalise":
            x = reference.retract(case, x + STEP * drive(x))
        elif case["update"] == "project-renormalise":
            x = reference.retract(case, x + STEP * reference.tangent(case, x, drive(x)))
        else:
            x = x + STEP * off_space_tangent(case, x, drive(x))
    return x


def off_space_tangent(case, x, v):
    """v - <theta, v> theta with theta = x/gain, whose norm is no longer 1 once the space is left."""
    if case["space"] == "euclidean":
        return v
    gain = case["gain"]
    theta, v = x / gain, v / gain
    if case["space"] == "centred":
        v = v - v.mean(1, keepdims=True)
    return gain * reference.without(case["space"], theta, v)


def look(words):
    case = complete(words)
    beta = af.Along("beta", [0.9, BETA]) if case["batch"] == "beta" else BETA
    method = af.Layers(STEP, UPDATES[words["update"]])
    refusal = None
    try:
        mu = tokens(case)
        flow = af.solve(field(case, beta), mu, LAYERS * STEP, method=method, save=af.saving.At([LAYERS * STEP]))
    except FlowFailed:
        with np.errstate(all="ignore"):
            grown = looped(case)
        assert not np.abs(grown).max() < 1e100, "given up, but the network is finite"
        return
    except AttnflowError as error:
        refusal = str(error)
    if refusal is not None:
        assert refusal.endswith(".")
        assert "\n" not in refusal
        assert not layers_must_work(words), f"refused: {refusal}"
        return
    assert makes_sense(words)
    found = present(case, flow.positions.values[..., -1, :, :], mu)
    found = found[-1] if case["batch"] == "beta" else found
    # the layers are Lipschitz with constants of order 1, so errors add up: those of the sums (at most 1e-3 of the
    # values, `cases.given_sum`; the terms left out are far smaller than their bound) and rounding; a norm that divides (Ngpt, Peri) magnifies them by 1/|A|, here below 50
    exact = words["sum"] in ("left out", "tiled", "bounded")
    tolerance = (1e-12 if exact else 1e-5) * (1 + np.abs(case["matrices"].get("v", 0.0)).max())
    tolerance *= 50 if words["wrapper"] in ("ngpt", "peri") else 5
    np.testing.assert_allclose(found, looped(case), atol=tolerance, rtol=tolerance)


WORKING = covering.read("layers")
ABOUT_UPDATES = [
    words for words in at_random(LAYER_WORDS, 400, seed=1) if words["update"] == "project"
    and not layers_must_work(words) and makes_sense(words) and words["wrapper"] not in STREAMS
][:12]  # fmt: skip


@graded("words", WORKING[::6], ids=case_name, slow=1)
def test_layers(words):
    look(words)


@pytest.mark.parametrize("words", ABOUT_UPDATES[:4], ids=case_name)
def test_sums_for_the_sphere_are_refused_where_layers_leave_it(words):
    look(words)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 6))
def test_layers_of_the_whole_covering_set(part):
    for words in WORKING[part::6] + covering.read("rare layers")[part - 1 :: 5] + ABOUT_UPDATES[part - 1 :: 5]:
        look(words)
