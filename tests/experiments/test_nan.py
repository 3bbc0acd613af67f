"""The search for entries that claims pass over finds them."""

import types

import numpy as np
import xarray as xr

from attnflow.experiments import Claim
from tests.experiments import nan


def test_a_mask_is_found_out():
    data = {"run7": xr.Dataset({"x": ("k", np.ones(3)), "y": ("k", np.ones(3)), "unread": ("k", np.ones(3))})}

    def claims(parameters, data):
        x, y = (data["run7"][name].values for name in ("x", "y"))
        return [
            Claim.equal("mean of x", 1.0, x.mean(), 0.1, "by hand"),
            Claim.equal("mean of y", 1.0, y[np.isfinite(y)], 0.1, "by hand"),
        ]

    assert nan.passed_over(types.SimpleNamespace(claims=claims), None, data) == ([("run7", "y")], 2)
