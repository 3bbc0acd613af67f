"""The effective step: known of a flow, and of layers that are none."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from tests.probe.flow_network import FlowNetwork

IDS = np.random.default_rng(4).integers(0, 30, 24)


@pytest.fixture(scope="module")
def stream():
    return FlowNetwork(beta=4.0, step=0.25, layers=4).run(IDS)


def test_layers_that_are_euler_steps_of_a_flow_give_its_step(stream):
    """a = ε v exactly: one step of the flow, up to rounding (1e-12: 24 tokens, norms of order 1, and no cancellation)."""
    found = af.probe.effective_step(stream)
    assert found.step == pytest.approx(0.25, rel=1e-10)
    assert found.beta == 4.0
    assert found.r2 == pytest.approx(1.0, abs=1e-12)
    assert found.r2_free == pytest.approx(1.0, abs=1e-12)
    assert found.distance < 1e-5


def test_of_a_decoder_a_token_sees_itself_and_earlier_ones():
    """Euler steps of causal attention, to rounding; a token that also saw the next one, or not itself, would be off."""
    stream = FlowNetwork(beta=4.0, step=0.25, layers=4, causal=True).run(IDS)
    no_sinks = [np.zeros(len(IDS), bool)]  # else the first token would be left out, as most attention goes there
    step = af.probe.effective_step(stream, sinks=no_sinks)
    assert step.step == pytest.approx(0.25, rel=1e-10)
    assert step.beta == 4.0
    assert step.r2 == pytest.approx(1.0, abs=1e-12)
    everyone = af.probe.Stream(stream.hidden[0], after_attention=stream.after_attention[0])
    assert af.probe.effective_step(everyone, sinks=no_sinks).r2 < 0.99


def test_it_is_the_effective_time_of_a_single_layer(stream):
    """Two routes: sums over pairs of overlaps here, the velocity of the field there. Of one layer both are one fit."""
    part = af.probe.Stream(stream.hidden[0][1:3], causal=False)
    one = af.probe.effective_step(part, betas=[3.0])
    other = af.probe.measure(part, beta=3.0, families=["updates"]).sel(kept="without sinks", part="layer").isel(text=0)
    assert one.step == pytest.approx(float(other["effective_time"][0]), rel=1e-9)
    assert one.r2 == pytest.approx(float(other["effective_time_r2"][0]), rel=1e-9)
    assert one.r2 == pytest.approx(one.r2_free, rel=1e-12)
    assert np.isnan(one.persistence)


def test_layers_of_unequal_steps_are_farther_from_one_ode(stream):
    """Steps 1 and 3 of equal velocities: ε minimises (1 - ε)² + (1 - ε/3)², so ε = 1.2 and D = (0.04 + 0.36)/2."""
    x = stream.hidden[0][0]
    v = np.asarray(af.Attention(2.0).velocity(af.Tokens(x)))
    both = af.probe.Stream([x, x, x], after_attention=[x + 1e-3 * v, x + 3e-3 * v])
    found = af.probe.effective_step(both, betas=[2.0])
    assert found.step == pytest.approx(1.2e-3, rel=1e-9)
    assert found.distance**2 == pytest.approx(0.2, rel=1e-9)
    assert found.r2_free == pytest.approx(1.0, abs=1e-9)
    assert found.persistence == pytest.approx(1.0, abs=1e-9)


def test_random_updates_are_steps_of_nothing():
    """Of d coordinates one is explained: R² is about 1/(n d) of one layer, and updates do not persist: ± 1/√(n d)."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((40, 30))
    hidden = np.cumsum([x, *(0.1 * rng.standard_normal((6, 40, 30)))], axis=0)
    found = af.probe.effective_step(af.probe.Stream(hidden))
    assert found.r2 < 0.02
    assert abs(found.persistence) < 5 / np.sqrt(5 * 40 * 30)


def test_refusals(stream):
    with pytest.raises(InvalidInput, match="`part` is 'attention'; this stream knows 'layer'"):
        af.probe.effective_step(af.probe.Stream(stream.hidden[0]), part="attention")
    with pytest.raises(InvalidInput, match="hence no layer"):
        af.probe.effective_step(af.probe.Stream(stream.hidden[0][:1]))
    with pytest.raises(InvalidInput, match="`betas` is"):
        af.probe.effective_step(stream, betas=[])
