"""Equilibria and branches: certified with their indices, refused where they are none, confirmed by the checker."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attnflow as af
from attnflow import certify
from attnflow.errors import InvalidInput, MissingExtra
from tests.certify.false import changed
from tests.certify.shapes import CASES, CUBE, antiprism, poles, ring, simplex

ROOT = Path(__file__).parents[2]


def counts(found):
    assert isinstance(found, certify.Certificate), found
    return tuple(found.claims[name] for name in ("unstable", "stable", "rotations"))


def test_forty_configurations_have_their_indices():
    assert len(CASES) >= 40
    assert {(name, beta): counts(certify.equilibrium(x, beta)) for name, x, beta, _ in CASES} == {
        (name, beta): index for name, _, beta, index in CASES
    }


@pytest.mark.parametrize(
    ("tokens", "beta"),
    [
        (ring(4, 2), 0.0),  # a continuum of equilibria
        (ring(3, 2), -2 / 3),  # the index changes at -2/3, within rounding of this float
        (ring(5, 2) @ np.diag([1.0, -1.0]) + 0.0 * 1, float("1e-300")),  # degenerate to every precision in use
        (ring(3, 2)[[0, 0, 1]], 2.0),  # no equilibrium
        (np.array([[1.0, 0.0], [np.cos(1e-4), np.sin(1e-4)], [-1.0, 0.0]]), 1.0),  # nearly one
    ],
)
def test_what_is_no_nondegenerate_equilibrium_is_undecided(tokens, beta):
    found = certify.equilibrium(tokens, beta)
    assert isinstance(found, certify.Undecided)
    assert found.reason
    with pytest.raises(TypeError):
        bool(found)


def test_noise_is_undecided():
    rng = np.random.default_rng(0)
    noisy = CUBE + 1e-3 * rng.standard_normal(CUBE.shape)
    assert isinstance(certify.equilibrium(noisy / np.linalg.norm(noisy, axis=1)[:, None], 2.0), certify.Undecided)


def test_a_ring_with_a_double_orbit_is_one_orbit():
    """Turned and permuted tokens give the same counts: the orbit is one, whatever its representative."""
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    assert counts(certify.equilibrium(CUBE[::-1] @ turn, 3.0)) == (11, 2, 3)


def test_what_a_float_solver_finds_is_certified():
    field = af.Attention(2.0)
    found = af.stability.find_equilibrium(field, af.Tokens(ring(5, 2), space=af.Sphere(2)))
    assert counts(certify.equilibrium(found, 2.0)) == (found.spectrum.index, 0, 1)


def test_masses_count():
    """Two antipodal clusters of masses 3 and 1 as two tokens: one unstable direction, one rotation (by hand)."""
    tokens = af.Tokens(poles(1, 1, 2), masses=[0.75, 0.25], space=af.Sphere(2))
    assert counts(certify.equilibrium(tokens, 1.0)) == (1, 0, 1)


def test_branches_go_over_intervals_and_stop_at_bifurcations():
    found = certify.branch(ring(4, 3), (1.0, 2.0))
    assert counts(found) == (4, 1, 3)
    assert certify.check(found).confirmed
    stuck = certify.branch(ring(3, 2), (-0.7, -0.6), least=1e-3)
    assert isinstance(stuck, certify.Undecided)
    assert -0.7 < float(stuck.where.split("= ")[1]) < -0.66  # the index changes at -2/3


@pytest.mark.long
@pytest.mark.parametrize(
    ("tokens", "beta", "unstable"),
    [(CUBE, (1.0, 3.0), 11), (antiprism(1.0), (1.0, 1.1), 13), (simplex(3), (1.0, 2.0), 5)],
    ids=["cube", "square antiprism", "tetrahedron"],
)
def test_branches_of_polytopes_are_confirmed(tokens, beta, unstable):
    found = certify.branch(tokens, beta)
    assert found.claims["unstable"] == unstable
    assert certify.check(found).confirmed


def test_a_certificate_is_saved_loaded_and_confirmed(tmp_path):
    found = certify.equilibrium(CUBE, 9.0)
    path = found.save(tmp_path / "cube.json")
    assert certify.Certificate.load(path) == found
    verdict = certify.check(path)
    assert verdict.confirmed
    assert "11 unstable, 2 stable and 3 rotational" in verdict.statement
    with pytest.raises(TypeError):
        bool(found)
    with pytest.raises(InvalidInput, match="no certificate"):
        certify.Certificate.load(tmp_path / "none.json")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(InvalidInput, match="no certificate"):
        certify.Certificate.load(tmp_path / "deep.json")


def at_zero(one):
    """At beta = 0 the cube is degenerate."""
    one["claims"]["beta"] = one["data"]["boxes"][0]["beta"] = [0.0, 0.0]
    one["data"]["boxes"][0]["middle"] = 0.0


CHANGES = {
    "unstable": lambda one: one["claims"].update(unstable=12),
    "stable": lambda one: one["claims"].update(stable=1),
    "rotations": lambda one: one["claims"].update(rotations=4),
    "distance": lambda one: one["claims"].update(distance=3.0),  # all of the sphere: there are other orbits
    "tokens": lambda one: one["data"]["tokens"].__setitem__(0, one["data"]["tokens"][1]),  # two at one corner
    "masses": lambda one: one["data"]["masses"].__setitem__(0, 1.001),
    "beta": at_zero,
}


def test_the_checker_rejects_false_claims():
    one = certify.equilibrium(CUBE, 9.0).to_json()
    assert certify.check(one).confirmed
    for name, change in CHANGES.items():
        verdict = certify.check(changed(one, change))
        assert not verdict.confirmed, name
        assert verdict.reason, name


def run(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_checker_needs_neither_flint_nor_the_search(tmp_path):
    path = certify.equilibrium(ring(3, 2), 1.0).save(tmp_path / "triangle.json")
    code = (
        "import sys; sys.modules['flint'] = None\n"
        "from attnflow.cli import main\nsys.argv[1:] = ['check', sys.argv[1], '--json']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        "seen = [m for m in sys.modules if m.startswith('attnflow.certify.') and 'checking' not in m]\n"
        "print(code, seen, 'jax' in sys.modules, file=sys.stderr)"
    )
    done = run(code, str(path))
    assert json.loads(done.stdout)["confirmed"] is True
    assert done.stderr.splitlines()[-1].split(" ", 1)[1] == "[] False"
    other = changed(json.loads(path.read_text()), lambda one: one["claims"].update(unstable=1))
    path.write_text(json.dumps(other))
    assert json.loads(run(code, str(path)).stdout)["confirmed"] is False


def test_without_flint_one_sentence(faults):
    faults.module("flint")
    with pytest.raises(MissingExtra, match=r"^proofs need python-flint; install `attnflow\[certify\]`\.$"):
        certify.equilibrium(CUBE, 1.0)


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="unit vectors"):
        certify.equilibrium(2 * CUBE, 1.0)
    with pytest.raises(InvalidInput, match="finite"):
        certify.equilibrium(CUBE, float("nan"))
    with pytest.raises(InvalidInput, match="smaller first"):
        certify.branch(CUBE, (2.0, 1.0))


def test_the_equilibrium_is_as_near_as_the_certificate_says():
    """A ring with one token off by e: the nearest equilibrium has equal gaps, so that some token is e/2 away at least."""
    for off in (1e-9, 4e-10, 1e-12):
        angles = 2 * np.pi * np.arange(4) / 4
        angles[0] += off
        found = certify.equilibrium(np.column_stack([np.cos(angles), np.sin(angles)]), 2.0)
        if isinstance(found, certify.Certificate):
            assert off / 2 < found.claims["distance"] + 1e-15
            assert certify.check(found).confirmed
    assert isinstance(found, certify.Certificate)


SAVED = sorted((ROOT / "docs" / "certificates").glob("*.json"))


QUICKLY = ("consensus", "cube", "flow", "plateau", "unstable-modes")


@pytest.mark.long
def test_small_certificates_of_the_documents_are_confirmed():
    """Lists over intervals of beta, and six tokens, take minutes: `make long`, campaigns/certificates.py."""
    found = {path.stem: certify.check(path) for path in SAVED if path.stem in QUICKLY}
    assert sorted(found) == list(QUICKLY)
    assert all(one.confirmed for one in found.values())
    assert "11 unstable, 2 stable" in found["cube"].statement


@pytest.mark.long
@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_every_saved_certificate_is_confirmed(path):
    assert certify.check(path).confirmed
