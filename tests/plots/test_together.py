"""A density over tokens: heights, times and distances are those of the two; everything else is refused."""

import numpy as np
import pytest

import attnflow as af
from attnflow import meanfield as mf
from attnflow.errors import InvalidInput
from tests.plots.flows import density_flow


def tokens_of(basis, n=4000):
    return mf.quiet(mf.perturbed(basis, degree=1, amplitude=0.25), n)


@pytest.mark.parametrize("basis", [mf.CircleBasis(8), mf.ZonalBasis(5, 8)], ids=["circle", "zonal"])
def test_the_histogram_is_relative_to_the_uniform_measure(basis):
    """Quiet tokens of rho: n m(bin)/m_0(bin) is the mean of rho over the bin.

    rho = 1 + a c P_1 with a slope of at most 0.25 sqrt(d) per radian; a bin of 2 pi/63 or pi/63 is off by half its width
    times the slope, 0.03. The first bins of a zonal density hold few tokens: 1 % of the mass at least is asked for.
    """
    rho, tokens = mf.perturbed(basis, degree=1, amplitude=0.25), tokens_of(basis)
    height, edges, _ = af.plot([rho, tokens]).axes[0].patches[0].get_data()
    middle = (edges[1:] + edges[:-1]) / 2
    is_zonal = isinstance(basis, mf.ZonalBasis)
    points = {"heights": np.cos(middle)} if is_zonal else {"angles": middle}
    mass = np.histogram(np.arccos(tokens.positions[:, -1]), edges)[0] if is_zonal else np.full(len(middle), 63)
    many = mass > 40
    assert many.sum() > 20
    np.testing.assert_allclose(height[many], rho(**points)[many], atol=0.1)
    assert np.abs(height[many] - 1).max() > 0.15  # the uniform measure would fail


@pytest.mark.slow
def test_a_density_and_tokens_in_one_picture():
    basis = mf.CircleBasis(8)
    density, tokens = density_flow(), tokens_of(basis, 60)
    flow = af.solve(af.Attention(4.0), tokens, 1.0, save=[0.0, 0.5, 1.0], method=af.Fixed(0.25))
    figure = af.plot([density, flow], figsize=(6, 4))
    assert figure.get_size_inches().tolist() == [6, 4]
    curves = [axes for axes in figure.axes if axes.get_xlabel().startswith("angle")]
    assert [axes.get_title() for axes in curves] == ["$t = 0$", "$t = 1$"]
    assert [text.get_text() for text in curves[0].get_legend().get_texts()] == ["60 tokens", "density"]
    (distances,) = [axes for axes in figure.axes if axes.get_ylabel().startswith("$W_1$")]
    shown = distances.lines[0].get_ydata()
    expected = [af.transport.distance(flow.tokens(k), density.density(at)) for k, at in ((0, 0), (2, 1))]
    np.testing.assert_allclose(shown, expected)
    named = af.plot({"limit": density, "particles": flow})
    assert "particles" in [text.get_text() for text in named.axes[0].get_legend().get_texts()]
    alone = af.plot([density.density(0), flow[0]])
    np.testing.assert_allclose(alone.axes[0].lines[0].get_ydata().max(), 1.25, atol=1e-3)


def test_the_tokens_go_less_far_than_the_density():
    density = density_flow(amplitude=0.1, times=(0.0, 0.5, 1.0, 1.5))
    flow = af.solve(
        af.Attention(4.0), tokens_of(mf.CircleBasis(8), 60), 1.0, save=[0.0, 0.5, 1.0], method=af.Fixed(0.25)
    )
    titles = [axes.get_title() for axes in af.plot([flow, density]).axes if axes.get_xlabel().startswith("angle")]
    assert titles[-1] == "$t = 1$"


def test_a_density_alone_and_on_the_sphere():
    basis = mf.SphereBasis(6)
    rho = mf.perturbed(basis, degree=1, amplitude=0.25)
    assert rho.plot().axes[0].name == "mollweide"
    both = af.plot([rho, af.uniform(af.Sphere(3), n=12, seed=0)])
    assert len(both.axes[0].collections[-1].get_offsets()) == 12


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (lambda flow, rho, x: [flow, x], "a flow and a single moment"),
        (lambda flow, rho, x: [flow, flow], "beside a density give tokens"),
        (lambda flow, rho, x: [rho, x, x], "holds Density, Tokens, Tokens"),
        (lambda flow, rho, x: [rho, af.uniform(af.Sphere(3), n=4, seed=0)], "the tokens are on Sphere"),
    ],
)
def test_other_pairs_are_refused(others, words):
    flow = density_flow()
    with pytest.raises(InvalidInput, match=words):
        af.plot(others(flow, flow.density(0), af.uniform(af.Sphere(2), n=4, seed=0)))
