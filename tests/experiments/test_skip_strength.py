"""The weight of the skip connection: all claims hold, and a missing self term and a norm in the wrong place are found out."""

import pytest

from attnflow_gallery import skip_strength
from tests.experiments.mutants import noticed


@pytest.mark.slow
def test_claims_hold_and_wrong_layers_are_found_out():
    alone, first = noticed(
        skip_strength, skip_strength.QUICK, ("tokens do not see themselves", "attention normalised before the sum")
    )
    assert "no skip connection: (# - overlap)/((β/n)² (# - overlap before)³)" in alone
    assert "ring, β = #: factor of a mode per layer is # + λ_k/(α + r)" in first
