"""Mixed V: limits of a prism hold, and a missing self term and logits that are a little too large are found out."""

import dataclasses

from attnflow_gallery import mixed_values
from tests.experiments.mutants import noticed


def test_limits_and_whitening_hold_and_wrong_attention_is_found_out():
    parameters = dataclasses.replace(mixed_values.QUICK, six=1, gaussians=((-1.0, 0.5),))
    blind, sharper = noticed(
        mixed_values,
        parameters,
        ("tokens do not see themselves", "logits 0.01 % larger"),
        "prisms",
        "clouds",
        "gaussians",
    )
    assert any("prisms" in key for key in blind & sharper)
    assert any("inverse covariance" in key for key in blind)
    assert "Gaussian measure on the line: mean and variance" in sharper
