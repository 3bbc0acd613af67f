"""Compiled programs are kept on disk and read back by another process."""

import os
import subprocess
import sys

import pytest

from attnflow import compilations
from attnflow.errors import InvalidInput
from tests.faults import environment

SOLVE = """
import sys, attnflow as af
print(af.cache_compilations(sys.argv[1]))
import jax
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name))
af.solve(af.Attention(1.0), af.uniform(af.Sphere(4), n=3), 0.1, save=1, method=af.Fixed(0.1), keep=["positions"])
print(sum(name.endswith("cache_hits") for name in hits), sum(name.endswith("cache_misses") for name in hits))
"""


def run(code, *args):
    own = {
        name: value for name, value in os.environ.items() if name not in ("EQX_ON_ERROR", "JAX_COMPILATION_CACHE_DIR")
    }
    return subprocess.run([sys.executable, "-c", code, *args], env=own, capture_output=True, text=True)


@pytest.mark.long
def test_a_second_process_reads_the_programs_of_the_first(tmp_path):
    first, second = (run(SOLVE, str(tmp_path)).stdout.split() for _ in range(2))
    assert first[0] == str(tmp_path)
    assert list(tmp_path.iterdir())
    assert int(second[1]) > int(first[1])
    assert int(second[2]) < int(first[2])


COUNTED = """
import jax, attnflow as af
made = []
jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: made.append(name))
def count(call):
    before = sum(name.endswith("backend_compile_duration") for name in made)
    call()
    print(sum(name.endswith("backend_compile_duration") for name in made) - before)
mf = af.meanfield
density = lambda: mf.perturbed(mf.CircleBasis(8), 1, 0.3)
tokens = lambda seed: af.uniform(af.Sphere(4), n=3, seed=seed)
for beta in (1.0, 2.0):
    count(lambda: af.solve(af.Attention(beta), tokens(int(beta)), 0.1, save=1))
    count(lambda: af.solve(af.Attention(beta), tokens(range(2)), 0.1, save=1, method=af.Layers(0.1)))
    count(lambda: af.advance(af.Attention(beta), tokens(0), 0.0, 0.1, af.Layers(0.1)))
    count(lambda: af.Attention(beta).velocity(tokens(0)))
    count(lambda: mf.evolve(af.Attention(beta), density(), 0.1, kappa=0.1, save=1))
"""


@pytest.mark.long
def test_programs_are_few_and_compiled_once():
    """The start, slices and measures of a flow, and two constants of Diffrax; nothing for arrays made on the host."""
    counts = [int(line) for line in run(COUNTED).stdout.split()]
    assert len(counts) == 10
    assert all(count <= most for count, most in zip(counts[:5], (5, 3, 1, 1, 4), strict=True)), counts
    assert counts[5:] == [0] * 5


def test_programs_are_kept_however_small_and_however_fast_they_compile(faults, tmp_path):
    options = {}
    faults.replace("change a setting of JAX", options.__setitem__)
    assert compilations.cache_compilations(tmp_path) == tmp_path
    assert options == {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }


@pytest.mark.slow
def test_it_must_come_first():
    done = run("import equinox, attnflow as af; af.cache_compilations()")
    assert "InvalidInput: Equinox is imported already" in done.stderr.splitlines()[-1]
    assert "call attnflow.cache_compilations() before anything else" in done.stderr.splitlines()[-1]


def test_a_user_without_a_home(faults):
    faults.fail("home folder", RuntimeError("no home"))
    with environment(XDG_CACHE_HOME=None), pytest.raises(InvalidInput, match="give a folder"):
        compilations.user_cache("compiled")


@pytest.mark.long
def test_programs_make_room_for_others():
    """Programs are forgotten when they hold many maps of memory, and work again when they are called again."""
    import jax
    import jax.numpy as jnp

    with open("/proc/self/maps") as maps, open("/proc/sys/vm/max_map_count") as limit:
        used = sum(1 for _ in maps) / int(limit.read())
    traced = []

    @jax.jit
    def square(x):
        traced.append(x)
        return x * x

    assert square(jnp.arange(3.0))[2] == 4
    assert not compilations.make_room(2 * used)
    assert square(jnp.arange(3.0))[2] == 4
    assert len(traced) == 1
    assert compilations.make_room(used / 2)
    assert square(jnp.arange(3.0))[2] == 4
    assert len(traced) == 2
