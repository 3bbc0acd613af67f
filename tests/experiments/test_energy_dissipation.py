"""Energy dissipation: the core holds, and a slightly wrong beta and exchanged models are found out."""

import dataclasses

import pytest

from attnflow_gallery import energy_dissipation
from tests.experiments.mutants import noticed

FEW = dataclasses.replace(energy_dissipation.QUICK, n=12, draws=1, frames=16, until=1.0)


@pytest.mark.long
def test_few_tokens_hold_and_exchanged_models_are_found_out():
    killed = noticed(energy_dissipation, FEW, "SA and USA0 exchanged")
    assert any(claim.startswith("USA0, every frame") for claim in killed)
    assert any(claim.startswith("SA in the metric") for claim in killed)
