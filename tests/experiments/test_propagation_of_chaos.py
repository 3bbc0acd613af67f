"""Propagation of chaos: the quick version holds; noise that is not carried, or tokens of another beta, are found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import propagation_of_chaos
from attnflow.meanfield import evolve, quadrature_error, sample, wasserstein_circle

QUICK = propagation_of_chaos.QUICK


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return propagation_of_chaos.run(QUICK, Study(tmp_path_factory.mktemp("chaos") / "parts"))


def verdicts(parameters, data):
    names = ("ratio", "W_1 falls", "Gaussian", "not the initial", "the same tokens", "n W_1", "quiet tokens: W_1")
    claims = propagation_of_chaos.claims(parameters, data)
    return {name: claim.holds for name, claim in zip(names, claims, strict=True) if name in claim.statement}


@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (1.001, False)])
def test_quiet_tokens_stay_at_their_distance(share, holds):
    """n W_1 is pi/2 at all times; tokens of a beta a thousandth larger follow another density."""
    n, times = 2000, propagation_of_chaos._times("SA", QUICK)
    density, other = propagation_of_chaos._density(QUICK), dataclasses.replace(QUICK, beta=share * QUICK.beta)
    flow = evolve(propagation_of_chaos._field("SA", QUICK), density, times[-1], save=times)
    tokens = propagation_of_chaos._quiet(n, 0, QUICK)
    fine = propagation_of_chaos._moved("SA", tokens, other, 4 * QUICK.steps)
    whole = dataclasses.replace(other, frames=1)  # as many steps in all as the others have from frame to frame
    coarse = propagation_of_chaos._moved("SA", tokens, whole, 2 * QUICK.steps)
    apart = np.linalg.norm(np.asarray(coarse[-1].positions) - np.asarray(fine[-1].positions), axis=1).max()
    densities = [flow.density(k) for k in range(len(times))]
    found = [n * wasserstein_circle(frame, density) for frame, density in zip(fine, densities, strict=True)]
    # steps of order 4: half as long ones are off by a fifteenth of what halving changes; evolve asks for 1e-10 a step
    allowed = n * (max(map(quadrature_error, densities)) + apart / 15 + 1e-8)
    assert allowed < 0.1
    assert (np.abs(np.array(found) - np.pi / 2).max() <= allowed) == holds


@pytest.mark.slow
def test_the_quick_version_holds(quick):
    found = verdicts(QUICK, quick)
    assert len(found) == 7
    assert all(found.values())
    assert len(propagation_of_chaos.draw(QUICK, quick).axes) == 4


@pytest.mark.slow
def test_the_data_hold_what_sampling_says(quick):
    """Without the code of the claims: sqrt(n) W_1 at time 0 has one mean for both n, and it has grown at the end."""
    rows = [np.sqrt(n) * quick[f"tokens-SA-{n}"]["measured"].values for n in QUICK.sizes]
    means, errors = (
        np.array([f(r) for r in rows]) for f in (lambda r: r.mean(0), lambda r: r.std(0) / np.sqrt(len(r)))
    )
    assert abs(means[0, 0] - means[1, 0]) < 3 * np.hypot(*errors[:, 0])
    assert (means[:, -1] - 3 * errors[:, -1] > means[:, 0]).all()


@pytest.mark.slow
def test_noise_that_is_not_felt_is_found_out(quick):
    """The initial noise carried by the density's flow alone, without the response, has not grown enough."""
    part = quick["linear-SA"]
    flow = propagation_of_chaos._flow(QUICK, part.assign(responses=0 * part["responses"]))
    wrong = part["constant"].values.copy()
    wrong[::2] = propagation_of_chaos.expected_distance(flow, samples=QUICK.samples).mean
    data = quick | {"linear-SA": part.assign(constant=("fine", wrong))}
    assert not verdicts(QUICK, data)["Gaussian"]
    density = propagation_of_chaos._density(QUICK, 1)
    for n, count in zip(QUICK.sizes, QUICK.seeds, strict=True):
        rows = [
            propagation_of_chaos.linearised_distance(flow, sample(density, n, QUICK.first_seed + n + seed))
            for seed in range(count)
        ]
        data[f"tokens-SA-{n}"] = data[f"tokens-SA-{n}"].assign(linear=(("seed", "time"), rows))
    assert not verdicts(QUICK, data)["the same tokens"]


@pytest.mark.slow
def test_tokens_that_follow_another_beta_are_found_out(quick, monkeypatch):
    """A thousandth of beta: quiet tokens then follow another density, from which their distance does not fall."""
    other = dataclasses.replace(QUICK, beta=1.001 * QUICK.beta)
    right = propagation_of_chaos._moved
    monkeypatch.setattr(propagation_of_chaos, "_moved", lambda m, x, p, steps: right(m, x, other, steps))
    part = propagation_of_chaos.rest(propagation_of_chaos._flow(QUICK, quick["linear-SA"]), QUICK)
    found = verdicts(QUICK, quick | {"quiet": part})
    assert not found["n W_1"]
    assert not found["quiet tokens: W_1"]


@pytest.mark.slow
def test_tokens_that_are_not_quiet_are_found_out(quick, monkeypatch):
    """Independent ones in their place: neither the constant nor the power."""
    density = propagation_of_chaos._density(QUICK, 1)
    monkeypatch.setattr(propagation_of_chaos, "_quiet", lambda n, shift, parameters: sample(density, n, n + shift))
    part = propagation_of_chaos.rest(propagation_of_chaos._flow(QUICK, quick["linear-SA"]), QUICK)
    found = verdicts(QUICK, quick | {"quiet": part})
    assert not found["n W_1"]
    assert not found["quiet tokens: W_1"]
