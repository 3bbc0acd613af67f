"""The suite runs with JAX as users have it (32-bit by default), and with its strictest promotion rules."""

import contextlib
import functools
import gc
import signal
import zlib

import jax
import jaxtyping
import numpy as np
import pytest

import attnflow as af
from attnflow.compilations import make_room
from tests import tiers

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# tracing makes millions of short-lived objects beside a large constant heap; at the usual thresholds a tenth of the
# suite's time is collections that find nothing
gc.set_threshold(50_000, 10, 10)

# what a shell runs in the background ignores Ctrl-C, but some tests press it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    """With checked annotations (`make shapes`), leave a value of a wrong type to the refusal that a test waits for."""
    if config.getoption("jaxtyping_packages", None):
        pytest.raises = functools.partial(_raises, pytest.raises)
        from numpy._typing import _NestedSequence

        # NumPy's ArrayLike stands for tuples too, but looks for a method that they lack
        _NestedSequence.register(tuple)


@contextlib.contextmanager
def _raises(raises, expected, **keywords):
    kinds = expected if isinstance(expected, tuple) else (expected,)
    of_values = all(issubclass(kind, ValueError) for kind in kinds)  # as all refusals of arguments are
    with raises(expected, **keywords) as caught, unchecked() if of_values else contextlib.nullcontext():
        yield caught


@contextlib.contextmanager
def unchecked():
    """For values of wrong types, given on purpose: annotations are not checked here."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


def pytest_collection_modifyitems(items):
    """Cases that are studies because they take long (`tests/tiers.py`); three of four are left to `make long`."""
    studies = tiers.names()
    for item in items:
        if item.nodeid in studies:
            item.add_marker(pytest.mark.slow)
            if zlib.crc32(item.nodeid.encode()) % 4:
                item.add_marker(pytest.mark.rare)


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # modules and test items stay for the whole run


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    make_room(0.3)  # hundreds of tests compile programs of their own


@pytest.fixture
def choices_of_a_cpu(monkeypatch):
    """Sums are chosen as on a CPU, wherever the test runs."""
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")


@pytest.fixture
def four():
    """The four tokens of the field oracle."""
    return af.from_array(np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1], [-0.6, 0, 0.8]]))


def rotation(d, seed=0):
    """A Haar orthogonal matrix."""
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    return q * np.sign(np.diag(r))
