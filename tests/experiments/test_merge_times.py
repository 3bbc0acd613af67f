"""Merge times: one of each kind holds, a slightly wrong beta or force is found out."""

import dataclasses

import jax
import pytest

from attnflow_gallery import merge_times
from attnflow_gallery.merge_times import simulate
from tests.experiments.mutants import changed, claims_of, noticed

ONE = dataclasses.replace(
    merge_times.QUICK, betas=(30.0,), angles=(1.0,), masses=(0.7,), dims=(2,), triple_betas=(25.0,), gaps=(6.0,),
    symmetric_betas=(16.0,), offsets=((12.0, 1.3e-8),), offset_draws=1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def softmax():
    """Pairs of every model; more than two clusters of SA alone, on the circle as the pairs: the same programs."""
    with changed(simulate, "BOTH", ("SA",)):
        yield


@pytest.mark.slow
def test_one_of_each_kind_holds_and_a_slightly_wrong_beta_is_found_out():
    """One part in a million: u beta of it, 1.4e-5, shows in log T, of which steps miss 1e-7."""
    killed = noticed(merge_times, ONE, "beta 0.0001 % larger", "pair-SA*", "triple-*", "symmetric-*")
    assert {"two clusters: log T", "symmetric triple: log T", "three clusters: log T of the second merge"} <= killed


@pytest.mark.slow
@changed(simulate, "MODELS", ("SA",))
def test_a_slightly_wrong_force_is_found_out(faults):
    """The integrator itself, with forces off by 1e-3; programs are compiled anew."""

    def wrong(physics, x, mass):
        towards, level = right(physics, x, mass)
        return 1.001 * towards, level

    right = faults.replace("force between clusters", wrong)
    jax.clear_caches()
    try:
        found = {claim.statement for claim in claims_of(merge_times, ONE) if not claim.holds}
    finally:
        jax.clear_caches()
    assert {"two clusters: log T", "symmetric triple: log T"} <= found
