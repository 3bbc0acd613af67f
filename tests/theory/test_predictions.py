import numpy as np
import pytest

from attnflow import theory


def by_name(found):
    return {p.quantity: p for p in found}


def test_a_prediction_on_the_circle():
    found = by_name(theory.predict_particles(9.0, d=2))
    assert found["dominant degree"].value == 4
    assert found["clusters"].value == pytest.approx(3.659448, abs=1e-6)
    assert found["growth rates"].value[3] == pytest.approx(0.704497, abs=1e-6)
    assert found["plateau lifetime"].value == pytest.approx(
        np.log10(theory.merging.merge_time(np.pi / 2, 9.0)), abs=1e-9
    )
    assert "hemisphere" not in found


def test_a_prediction_says_where_theory_ends():
    found = by_name(theory.predict_particles(9.0, d=3, n=64))
    assert found["clusters"].value is None
    assert found["collapse time"].value is None
    assert by_name(theory.predict_particles(1e4, d=2, n=8))["clusters"].value is None
    many = by_name(theory.predict_particles(4.0, d=128, n=32))
    assert 10 ** many["collapse time"].value == pytest.approx(5.79725, rel=1e-5)
    assert many["hemisphere"].value == 1


@pytest.mark.parametrize("beta", [0.0, 0.3, 1e4])
@pytest.mark.parametrize("d", [2, 3, 4096])
def test_predictions_stay_in_range(beta, d):
    for p in theory.predict_particles(beta, d=d, n=64):
        assert p.conditions
        assert p.value is None or np.isfinite(p.value).all()


@pytest.mark.parametrize(
    "arguments",
    [
        (np.nan, 3),
        (-1.0, 3),
        (1.0, 1),
        (1.0, 2.5),
        (1.0, 3, 1),
        (1.0, 3, 2.5),
        ("a", 3),
        ([1.0, 2.0], 3),
        (1e308, 3),
        (10**400, 3),
        (1.0, 10**400),
        (1.0, 3, 10**400),
    ],
)
def test_bad_requests(arguments):
    with pytest.raises(ValueError, match=r"^`(beta|d|n)` is .*; give an? (number|integer)"):
        theory.predict_particles(arguments[0], **dict(zip(("d", "n"), arguments[1:], strict=False)))
