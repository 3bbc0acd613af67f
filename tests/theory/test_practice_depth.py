"""Predictions for a deep network at initialisation: consistency with the curves, knobs, plain words."""

import dataclasses
import json

import numpy as np
import pytest

from attnflow import theory
from tests.marks import graded

pytestmark = pytest.mark.filterwarnings("error")


def values(**changes):
    case = {"layers": 400, "heads": 4, "d": 64, "d_k": 16, "context": 32, "step": 0.5, "logit_scale": 2.0} | changes
    return {one.quantity: one for one in theory.random_layers.predict_layers(**case)}, case


def test_a_large_network():
    found = {
        one.quantity: one
        for one in theory.random_layers.predict_layers(layers=96, heads=64, d=4096, d_k=128, context=8192, step=1.0)
    }
    assert found["layers as time"].value == 1.5
    assert "diffusive" in found["layers as time"].statement
    # small times at b = 1: u = |mean|^2 grows like e^{0.9997 tau} from 1/8192, R = u - 1/8192
    assert found["overlap at the end"].value == pytest.approx(np.expm1(1.5) / 8192, rel=0.02)
    assert found["overlap 0.5"].value is None
    # at b = 1 the time is log(n+1) to a share of b^2/n, and d = 4096 slows it by 2/d or so
    assert "layer 577" in found["overlap 0.5"].statement
    assert abs(64 * np.log(8193) - 577) < 1
    step, heads, context, scale = found["elasticities of the collapse layer"].value
    assert (step, heads) == (-2, 1)
    assert context == pytest.approx(1 / np.log(8193), rel=2e-3)
    assert 0 < scale < 1e-3
    assert found["pair exponent"].value < 0
    assert found["critical logit scale"].value == pytest.approx(27.9137, abs=5e-5)


def test_layers_lie_on_the_curve():
    found, case = values()
    layer, overlap = theory.random_layers.layer_curve(**case, count=401)
    assert layer[0] == 0
    assert layer[-1] == 400
    assert overlap[0] == pytest.approx(0, abs=1e-12)
    assert overlap[-1] == pytest.approx(found["overlap at the end"].value, abs=1e-9)
    assert (np.diff(overlap) > 0).all()
    for level in (0.5, 0.9):
        assert np.interp(found[f"overlap {level:g}"].value, layer, overlap) == pytest.approx(level, abs=1e-4)
    assert len(theory.random_layers.layer_curve(**case, count=5)[0]) == 5
    assert theory.random_layers.layer_curve(**(case | {"layers": 3}))[0].tolist() == [0, 1, 2, 3]


@pytest.mark.slow
def test_elasticities_are_those_of_the_layers():
    base, case = values()
    layer = base["overlap 0.5"].value
    for i, (knob, factor) in enumerate([("step", 1.01), ("heads", 2), ("context", 33 / 32), ("logit_scale", 1.01)]):
        changed = values(**{knob: type(case[knob])(round(case[knob] * factor, 6))})[0]["overlap 0.5"].value
        slope = np.log(changed / layer) / np.log(factor)
        # one-sided differences over 1 to 3 per cent against central ones over 5
        assert slope == pytest.approx(base["elasticities of the collapse layer"].value[i], abs=0.02)


@pytest.mark.long
def test_cold_networks_separate_nearby_tokens():
    hot, cold = values(logit_scale=10.0)[0], values(logit_scale=11.0)[0]
    assert hot["critical logit scale"].value == pytest.approx(10.6634, abs=5e-5)
    assert "meet" in hot["pair exponent"].statement
    assert "separate" in cold["pair exponent"].statement
    assert cold["pair exponent"].value > 0 > hot["pair exponent"].value
    wide = values(d_k=64)[0]["critical logit scale"]
    assert wide.value is None
    assert "every" in wide.statement


@graded(
    "changes",
    [
        {"logit_scale": np.inf},
        {"logit_scale": 0.0},
        {"logit_scale": np.inf, "d_k": 1, "d": 4},
        {"layers": 1, "heads": 1, "step": 3.0},
        {"context": 2, "d": 4},
        {"step": 1e-6},
    ],
    fast=1,
)
def test_every_prediction_can_be_written_and_read(changes):
    for one in values(**changes)[0].values():
        json.dumps(dataclasses.asdict(one), allow_nan=False)
        assert len(one.statement) > 20
        assert len(one.conditions) > 20
        assert one.source


@pytest.mark.parametrize(
    "changes",
    [
        {"layers": 0},
        {"heads": 0},
        {"d": 3},
        {"d_k": 0},
        {"context": 1},
        {"context": 4.5},
        {"layers": [1, 2]},
        {"step": 0.0},
        {"step": np.inf},
        {"logit_scale": -1.0},
        {"logit_scale": 1e5},
    ],
)
def test_refusals(changes):
    with pytest.raises(ValueError, match=r" is .*(must|need|give)"):
        values(**changes)


def test_the_smallest_sizes_are_taken():
    prediction = values(layers=1, heads=1, d=4, d_k=1, context=2)[0]
    assert prediction["layers as time"].value == 0.25
