"""Noisy transition: the quick version holds; a wrong noise, beta or kind of transition is found out."""

import numpy as np
import pytest
from scipy.special import ive

from attnflow import theory
from attnflow.experiments import Study
from attnflow.experiments.gallery import noisy_transition
from attnflow.meanfield import bifurcation


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return noisy_transition.run(noisy_transition.QUICK, Study(tmp_path_factory.mktemp("noisy") / "parts"))


def failed(data):
    return [claim.statement for claim in noisy_transition.claims(noisy_transition.QUICK, data) if not claim.holds]


def test_the_branch_of_a_jump_and_wrong_ones():
    """USA0, beta = 4: a fold above kappa_c, m ~ sqrt|kappa - kappa_c| behind it, and the closed form of third order."""
    part = noisy_transition.followed("USA0", 4.0)
    close = noisy_transition.near("USA0", 4.0, part)

    def verdicts(part, close):
        return [claim.holds for claim in noisy_transition._branch_claims("USA0", 4.0, 2.446918, part, close)]

    assert verdicts(part, close) == [True, True, True]
    fold = int(np.argmax(part["kappa"].values))
    for wrong in (part.isel(point=slice(0, fold + 1)), part.assign(unstable=0 * part["unstable"])):
        assert verdicts(wrong, close) == [False, True, True]
    assert not verdicts(part, close.assign(order=close["order"] * (close["delta"] / 0.01) ** 0.01))[1]
    onset = theory.critical_noise(4.0, 2, model="USA0")
    assert float(close["onset"]) == onset == pytest.approx(ive(1, 4.0) / 4, rel=1e-12)


@pytest.mark.slow
def test_the_quick_version_holds(quick):
    assert failed(quick) == []
    claims = noisy_transition.claims(noisy_transition.QUICK, quick)
    assert len(claims) == 2 + 3 + 1 + 2
    assert len(noisy_transition.draw(noisy_transition.QUICK, quick).axes) == 2


@pytest.mark.slow
def test_the_data_hold_what_bessel_functions_say(quick):
    """kappa_c = I_1/(beta I_0) for softmax attention on the circle; the jump begins where I_2/I_1 = 1/2."""
    found = quick["onset"]["kappa"].sel(model="SA", dimension=2, beta=4.0)
    assert float(found) == pytest.approx(ive(1, 4.0) / (4 * ive(0, 4.0)), rel=1e-12)
    assert quick["jump"]["beta"].values[-1] == pytest.approx(2.446918, abs=2e-6)  # extrapolated, s = 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("model", "beta"), [("SA", 4.0), ("USA0", 1.0)])
def test_the_closed_form_of_third_order(model, beta):
    """Against Newton's method at amplitudes 0.05 and 0.025, with an error of fourth order."""
    field = noisy_transition.Attention(beta, normaliser=noisy_transition.MODELS[model])
    found = bifurcation(field, 2)
    assert noisy_transition.landau(beta, model) == pytest.approx(found.curvature, rel=1e-4)


@pytest.mark.slow
def test_a_wrong_noise_is_found_out(quick):
    """A branch with a fifth more order is not that of the equation; tokens that keep some order are not without it."""
    name = "flows-USA0-beta4"
    wrong = quick[name].copy(deep=True)
    wrong["order"] = wrong["order"] * np.where(wrong["ordered"], 1.2, 1.0)
    words = failed(quick | {name: wrong})
    assert any("relaxes" in one for one in words)
    wrong["squares"] = wrong["squares"] + 0.05
    assert any("without order" in one for one in failed(quick | {name: wrong}))


@pytest.mark.slow
def test_a_continuous_branch_is_no_jump(quick):
    """A branch that ends at its fold, or whose states are all stable, is found out."""
    name = "USA0-beta4"
    part = quick[name]
    fold = int(np.argmax(part["kappa"].values))
    for wrong in (part.isel(point=slice(0, fold + 1)), part.assign(unstable=0 * part["unstable"])):
        assert any("fold above" in words for words in failed(quick | {name: wrong}))


@pytest.mark.slow
def test_another_exponent_is_found_out(quick):
    name = "near-USA0-beta4"
    wrong = quick[name].copy(deep=True)
    wrong["order"] = wrong["order"] * (wrong["delta"] / 0.01) ** 0.01
    assert any("exponent" in words for words in failed(quick | {name: wrong}))
