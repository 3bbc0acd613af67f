"""Certified plateaus: bounds, tubes and half circles of a small version hold; wrong ones are found out."""

import dataclasses
from types import SimpleNamespace

import pytest
import xarray as xr

from attnflow_gallery import certified_plateaus
from attnflow_gallery.certified_plateaus import compare, simulate
from tests.experiments.mutants import noticed

FEW = dataclasses.replace(certified_plateaus.QUICK, betas=(9.0,), masses=(0.5,))
PLATEAUS = xr.Dataset({"clusters": ("plateau", [2]), "log_end": ("plateau", [3.0]), "log_proved": ("plateau", [2.0])})


def run(parameters, study):
    """Two point masses, flows and balls; planted groups and iid starts take longer, and have their own tests below."""
    parts = study.parts({name: (getattr(simulate, f"_{name}"), parameters) for name in ("points", "flows", "balls")})
    planted = {"model": ["USA0"], "groups": [2], "d": [2], "beta": [9.0], "proved": [1], "confirmed": [1]}
    planted |= {"log_proved": [5.0], "log_time": [6.0]}
    return {**parts, "planted": xr.Dataset({k: ("case", v) for k, v in planted.items()}), "iid": PLATEAUS}


@pytest.mark.long
def test_wrong_bounds_and_tubes_are_found_out():
    few = SimpleNamespace(run=run, MUTATIONS=certified_plateaus.MUTATIONS, claims=compare.claims)
    names = "bound: time 0.1 % longer", "tube: beta 0.1 % larger", "half circle: claimed at once"
    bound, tube, half = noticed(few, FEW, names)
    assert bound == {"two point masses: log of the proved time over the simulated one"}
    assert tube == {"flows on the circle: distance from the proved centre, below the radius"}
    assert half == {
        "balls of starts: largest gap of random starts when a half circle is proved",
        "the checker confirms every certificate",
    }


def test_a_bound_above_the_lifetime_fails():
    data = run(FEW, SimpleNamespace(parts=lambda calls: {}))
    points = xr.Dataset({key: ("pair", [0.5]) for key in ("angle", "mass", "beta", "log_proved", "log_time", "error")})
    flows = xr.Dataset({key: ("flow", [1]) for key in ("off", "radius", "confirmed")})
    balls = xr.Dataset(
        {"proved": ("ball", [1]), "time": ("ball", [1.0]), "gap": ("ball", [4.0]), "confirmed": ("ball", [1])}
    )
    data |= {"points": points, "flows": flows, "balls": balls}
    for name, kind in (("planted", "groups"), ("iid", "starts")):
        wrong = data | {name: data[name].assign(log_proved=data[name]["log_proved"] + 2)}
        for found, holds in ((data, True), (wrong, False)):
            (claim,) = (c for c in compare.claims(FEW, found) if kind in c.statement and "bound" in c.statement)
            assert claim.holds is holds
