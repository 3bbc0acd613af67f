"""The suite runs with JAX as users have it (32-bit by default), and with its strictest promotion rules."""

import contextlib
import functools
import gc
import os
import signal

from tests import compiler

compiler.hurry()  # before anything compiles

import jax  # noqa: E402
import jax.monitoring  # noqa: E402
import jaxtyping  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

import attnflow as af  # noqa: E402
from attnflow.compilations import make_room  # noqa: E402
from tests.faults import faults  # noqa: E402, F401
from tests.lab import browser  # noqa: E402
from tests.measured import Measured  # noqa: E402

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
    if config.getoption("--measure"):
        config.pluginmanager.register(Measured(config.getoption("--measure")))
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


def pytest_addoption(parser):
    parser.addoption("--measure", metavar="FOLDER", help="write what every case costs into FOLDER (tests/measured.py)")


def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput") and compiler.AS_USERS not in os.environ:
        compiler.tidy()


def pytest_ignore_collect(collection_path):
    """Without a browser the tests of pages are not collected, except where `.ci/run` requires them."""
    return True if collection_path in browser.TESTS and not browser.wanted() else None


def pytest_terminal_summary(terminalreporter):
    if not browser.wanted():
        names = " and ".join(path.relative_to(path.parents[2]).as_posix() for path in browser.TESTS)
        terminalreporter.write_line(f"not collected: {names}, as there is no Chromium here")


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # modules and test items stay for the whole run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """A case that is compiled as users do runs in a process of its own."""
    if pyfuncitem.get_closest_marker("optimised") is None or compiler.AS_USERS in os.environ:
        return None
    passed, printed = compiler.as_users(pyfuncitem.nodeid)
    if not passed:
        pytest.fail(printed, pytrace=False)
    return True


class _Programs:
    """Programs compiled since memory maps were counted; to count them reads a file of up to 65,530 lines."""

    new, enough = 0, 25

    @classmethod
    def count(cls, name, _seconds, **_facts):
        cls.new += name.endswith("backend_compile_duration")


jax.monitoring.register_event_duration_secs_listener(_Programs.count)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    if _Programs.new >= _Programs.enough:  # hundreds of tests compile programs of their own
        _Programs.new = 0
        make_room(0.3)


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
