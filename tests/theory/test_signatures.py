"""Arguments of theory whose order nobody can guess are given by name."""

import inspect

from attnflow import theory

ROOMS = ("causal", "landscape", "merging", "random_layers", "uniform")
SIZES = {"n", "d", "d_k", "heads", "layers", "context"}
MOST = 3
LONGER = {"overlap_drift": 4, "overlap_variation": 4}
"""A point and a triple: R, and the three products s_ij, s_ii, s_jj."""


def test_at_most_three_arguments_go_by_position_and_two_sizes_never_do():
    functions = {
        f"{room}.{name}": found
        for room in ROOMS
        for name in getattr(theory, room).__all__
        if inspect.isfunction(found := getattr(getattr(theory, room), name))
    }
    functions |= {"predict_particles": theory.predict_particles}
    assert len(functions) > 120
    wrong = []
    for name, function in functions.items():
        parameters = inspect.signature(function).parameters.values()
        by_place = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        long = len(by_place) > LONGER.get(name.split(".")[-1], MOST)
        optional = any(one.default is not one.empty for one in by_place) and len(parameters) > 2
        sizes = len(by_place) > 2 and len(SIZES & {one.name for one in by_place}) > 1
        if long or optional or sizes:
            wrong.append(f"{name}{inspect.signature(function)}")
    assert not wrong, "\n".join(wrong)
