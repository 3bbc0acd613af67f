"""Certified plateaus: a small version holds; a wrong force, a wrong bound and a wrong tube are found out."""

import dataclasses

from attnflow_gallery import certified_plateaus
from tests.experiments.mutants import noticed

FEW = dataclasses.replace(certified_plateaus.QUICK, betas=(9.0,), masses=(0.5,), flows=2, corners=2)


def test_wrong_bounds_and_tubes_are_found_out():
    names = "bound: time 10 % longer", "tube: beta 0.1 % larger", "half circle: claimed at once"
    bound, tube, half = noticed(certified_plateaus, FEW, names, "planted", "points", "flows", "balls")
    sharp = "two point masses: log of the proved time over the simulated one"
    checker = "the checker confirms every certificate"
    assert bound == {sharp, checker}
    assert tube == {"flows on the circle: distance from the proved centre, below the radius"}
    assert half == {"balls of starts: largest gap of random starts when a half circle is proved", checker}
