"""Figures of sweeps: what is drawn is what the dataset says, with theory on top."""

import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.plots.swept import swept


def data(sizes=(9, 3)):
    beta, n = np.geomspace(1, 81, sizes[0]), 2 ** np.arange(4, 4 + sizes[1])
    values = np.sqrt(beta)[:, None] * np.log(n)
    return xr.DataArray(values, {"beta": beta, "n": n}, ("beta", "n"))


def test_lines_with_bands_and_theory():
    mean = data()
    axes = swept(mean, 0.1 * mean, "beta", theory=lambda b, n: np.sqrt(b) * np.log(n), label="count").axes[0]
    measured, predicted = axes.lines[::2], axes.lines[1::2]
    assert len(measured) == len(predicted) == len(axes.collections) == 3
    assert axes.get_xscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("beta", "count")
    for k, (line, curve) in enumerate(zip(measured, predicted, strict=True)):
        assert np.array_equal(line.get_ydata(), mean.values[:, k])
        # ends of the curve are points of the sweep: one square root, one logarithm and one product
        np.testing.assert_allclose(curve.get_ydata()[[0, -1]], mean.values[[0, -1], k], rtol=1e-14)
        low, high = axes.collections[k].get_paths()[0].get_extents().get_points()[:, 1]
        np.testing.assert_allclose([low, high], [0.9 * mean[0, k], 1.1 * mean[-1, k]], rtol=1e-14)


def test_a_map_where_it_is_asked_for_or_lines_are_too_many():
    asked, many = swept(data(), None, "beta", heat=True, theory=lambda b, n: b + n), swept(data((5, 13)), None, "beta")
    for figure, wanted in ((asked, data()), (many, data((5, 13)))):
        mesh = figure.axes[0].collections[0]
        assert np.array_equal(np.asarray(mesh.get_array()), wanted.values.T)
        assert figure.axes[0].get_yscale() == "log"


def test_words_on_an_axis_and_refusals():
    words = xr.DataArray([[1.0, 2.0]], {"beta": [1.0], "norm": ["pre", "post"]}, ("beta", "norm"))
    figure = swept(words, None, "norm", heat=True)
    assert [one.get_text() for one in figure.axes[0].get_xticklabels()] == ["pre", "post"]
    with pytest.raises(InvalidInput, match="needs two axes"):
        swept(words.isel(beta=0), None, "norm", heat=True)
    with pytest.raises(InvalidInput, match="average one"):
        swept(words.expand_dims(seed=2), None, "norm")


def count(beta, seed):
    return {"count": beta + seed, "path": np.arange(3.0) * beta}


def test_a_sweep_draws_itself(tmp_path):
    sweep = af.sweep(count, {"beta": [1.0, 2.0, 4.0], "seed": range(3)}, tmp_path / "s")
    axes = sweep.plot("count", over="seed", label="mean").axes[0]
    assert axes.lines[0].get_ydata().tolist() == [2.0, 3.0, 5.0]
    assert axes.lines[0].get_xdata().tolist() == [1.0, 2.0, 4.0]
    last = sweep.plot("path", over="seed").axes[0].lines[0].get_ydata().tolist()
    assert last == [2.0, 4.0, 8.0]
    for options, message in (({"x": "betta"}, "beta"), ({"at": {"tim": 1}}, "`at` has"), ({"over": "sed"}, "seed")):
        with pytest.raises(InvalidInput, match=message):
            sweep.plot("count", **({"over": "seed"} | options))
    with pytest.raises(InvalidInput, match="did you mean 'count'"):
        sweep.plot("coun")
