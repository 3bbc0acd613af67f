"""Energy ascent: the quick version holds; a wrong metric, a matrix that is not symmetric and lost heads are found out."""

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import energy_ascent

QUICK = energy_ascent.QUICK


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return energy_ascent.run(QUICK, Study(tmp_path_factory.mktemp("energy") / "parts"))


def fails(data):
    return [claim.statement for claim in energy_ascent.claims(QUICK, data) if not claim.holds]


def test_the_quick_version_holds(quick):
    assert not fails(quick)
    # two per model; one formula, two kinds that never descend, share and existence, a descent
    assert len(energy_ascent.claims(QUICK, quick)) == 4 + 1 + 2 + 2 + 1
    assert len(energy_ascent.draw(QUICK, quick).axes) == 3


def test_the_energy_is_what_numpy_makes_of_it(quick):
    """At the start: (1/2 beta) sum_ij (e^(beta (<x_i, x_j> - 1)) - 1)/n^2."""
    x = np.asarray(energy_ascent.uniform(energy_ascent.Sphere(QUICK.d), n=QUICK.n, seed=0).positions)
    for beta in QUICK.betas:
        expected = np.mean(np.expm1(beta * (x @ x.T - 1))) / (2 * beta)
        assert float(quick["SA"]["energy"].sel(beta=beta)[0, 0]) == pytest.approx(expected, rel=1e-12)


def test_sisters_taken_for_each_other_are_found_out(quick):
    """SA dissipates sum m Z |v|^2 and not sum m |v|^2."""
    swapped = {"SA": quick["SA"].assign(dissipation=quick["USA0"]["dissipation"])}
    (found,) = fails(quick | swapped)
    assert found.startswith("SA")


def test_a_flow_that_loses_energy_is_found_out(quick):
    backwards = quick["SA"].copy(deep=True)
    for name in ("energy", "coarse", "dissipation"):
        backwards[name] = (backwards[name].dims, backwards[name].values[..., ::-1])
    assert len(fails(quick | {"SA": backwards})) == 2


def test_matrices_that_are_not_symmetric_are_found_out(quick, monkeypatch):
    """One head with B not symmetric: the field is no gradient of E, and some states descend."""
    right = energy_ascent.states

    def skewed(heads, *rest):
        matrices, x, masses = right(heads, *rest)
        return matrices @ np.array([[1.0, 0.8], [-0.8, 1.0]]), x, masses

    monkeypatch.setattr(energy_ascent, "states", skewed)
    found = fails(quick | {"softmax-1": energy_ascent._rates(QUICK, "softmax", 1, 0)})
    assert any(words.startswith("dE/dt") for words in found)
    assert any(words.startswith("1 softmax head") for words in found)


def test_one_head_in_place_of_two_is_found_out(quick):
    one = quick["softmax-1"].assign_attrs(heads=2, place=2)
    one = one.assign(other_share=quick["softmax-2"]["other_share"])  # of the formula
    assert len(fails(quick | {"softmax-2": one})) == 2  # nobody descends: neither existence nor the share
