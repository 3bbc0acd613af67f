"""Metastability: the quick version holds, the files say so without its code, and broken physics fails."""

import jax.numpy as jnp
import numpy as np
import pytest

from attnflow import theory
from attnflow.experiments import Study, open_part, read_claims, reproduce
from attnflow.experiments.gallery import metastability
from attnflow.fields import Attention
from attnflow.flows.compiled import compiled
from attnflow.flows.longtime import integrator, stepper

QUICK = metastability.QUICK
NAMES = ("SA-S2-9", "SA-S2-25", "SA-S2-81", "USA0-S2-25", "caps")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    run, _ = reproduce("metastability", tmp_path_factory.mktemp("meta") / "run", quick=True)
    return run


def test_plateaus_of_one_flow_and_of_a_slightly_wrong_beta(monkeypatch):
    """One part in a thousand of beta: the lifetime of two clusters tells."""

    def fails():
        part = metastability._record("SA", 3, 25.0, QUICK).assign_attrs(beta=25.0)
        return [c.statement for c in metastability._of_plateaus("SA", [metastability.compare(part)]) if not c.holds]

    assert fails() == []
    monkeypatch.setattr(metastability, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-3), **rest))
    assert any("log lifetime of two clusters" in words for words in fails())


@pytest.mark.slow
def test_the_quick_version_holds(done):
    done.verify()
    claims = read_claims(done)
    assert [claim.statement for claim in claims if not claim.holds] == []
    assert len(claims) == 2 * len(metastability.SOURCES) + 5 + 4  # SA and USA0; every flow; three caps
    for name in ("metastability.pdf", "metastability.png"):
        assert (done.figures / name).stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES[:-1])
def test_the_parts_hold_what_theory_says(done, name):
    """Without the code of the claims: the last plateau, of two clusters."""
    part = open_part(done.path / "parts" / f"{name}.npz")
    beta, model = part.attrs["beta"], part.attrs["model"]
    last = part.isel(plateau=-1)
    assert int(last["clusters"]) == 2
    x, m = last["centre"].values[:2], last["mass"].values[:2]
    np.testing.assert_array_equal(8 * m, np.rint(8 * m))
    angle = np.arccos(x[0] @ x[1])
    life = np.exp(part["log_time"].values[-1]) - np.exp(part["log_time"].values[-2])
    want = np.exp(theory.log_merge_time(angle, beta, tuple(m), 1e-3 / beta, model))
    # tol is 1e-6 per step of some tens; arccos has lost 1e-16/sin, which beta magnifies to nothing
    assert life == pytest.approx(float(want), rel=1e-4)
    assert life > np.exp(np.nan_to_num(theory.log_plateau_bound(beta, angle, 8), nan=-np.inf))
    level = 1 + 2 * beta * float(last["energy"])
    weight = np.exp(-beta * (1 - np.cos(angle)))
    assert level == pytest.approx(m @ m + 2 * m[0] * m[1] * weight, abs=1e-14)


def failures(data):
    """(model or what else is meant, what is claimed) of the claims that fail."""
    found = [claim.statement.split(" (worst")[0] for claim in metastability.claims(QUICK, data) if not claim.holds]
    return {(words.split(":")[0].split(" on ")[0], words.split(": ", 1)[-1].split(", ")[0]) for words in found}


def followed(folder):
    return metastability.run(QUICK, Study(folder))


@pytest.mark.slow
def test_a_slightly_wrong_beta_is_found_out(done, tmp_path, monkeypatch):
    """One part in a thousand of beta: lifetimes tell; levels and directions are those of the masses."""
    monkeypatch.setattr(metastability, "Attention", lambda beta, **rest: Attention(beta * (1 + 1e-3), **rest))
    found = failures(followed(tmp_path))
    assert {("SA", "log lifetime of two clusters"), ("USA0", "log lifetime of two clusters")} <= found


@pytest.mark.slow
def test_sisters_taken_for_each_other_are_found_out(done, tmp_path, monkeypatch):
    swapped = dict(zip(("SA", "USA0"), reversed(metastability.MODELS.values()), strict=True))
    monkeypatch.setattr(metastability, "MODELS", swapped)
    found = failures(followed(tmp_path))
    for model in ("SA", "USA0"):
        assert (model, "log lifetime of two clusters") in found


@pytest.mark.slow
def test_plateaus_that_end_too_soon_or_hold_too_much_are_found_out(done):
    data = {name: open_part(done.path / "parts" / f"{name}.npz") for name in NAMES}
    late = data["SA-S2-81"]
    late["log_end"][-1] = late["log_start"].values[-1] + 1.0
    data["USA0-S2-25"]["energy"][-1] += 1e-9
    data["SA-S2-25"]["masses"][2, 0] += 0.08
    data["SA-S2-9"]["way"][-1] = np.nan
    data["caps"]["bound"][3] = 1e-9
    found = failures(data)
    wanted = {
        "log lifetime of a plateau",
        "log lifetime of two clusters",
        "first step of two clusters: share of the first",
    }
    assert {("SA", words) for words in wanted} <= found
    assert ("USA0", "energy on a plateau") in found
    others = {words for name, words in found if name == "all 4 flows"}
    assert others == {"distance of n M from whole numbers", "masses are the sizes of the merge tree"}
    assert any("over its bound" in words for _, words in found)


@pytest.mark.slow
def test_a_force_without_masses_is_found_out(tmp_path, monkeypatch):
    """Compiled anew, as compiled programs do not see a changed function."""
    right = integrator.force

    def wrong(physics, x, mass):
        return right(physics, x, jnp.where(mass > 0, jnp.ones_like(mass), jnp.zeros_like(mass)))

    monkeypatch.setattr(integrator, "force", wrong)
    monkeypatch.setattr(stepper, "_work", compiled(stepper._work.__wrapped__))
    found = failures(followed(tmp_path))
    for model in ("SA", "USA0"):
        assert {
            (model, "log lifetime of two clusters"),
            (model, "first step of two clusters: share of the first"),
        } <= found
