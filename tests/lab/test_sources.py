"""What the engine in Python shows beside plain work: changes of beta, points of sweeps, folders that it writes."""

import json
import os
import re
import shutil
import tomllib

import numpy as np
import pytest

import attnflow as af
from attnflow import lab, runs
from tests.lab.serving import served
from tests.lab.test_python import PATIENCE, SPEC, answered, client, offered, start, told, toml, unpack

HALF = 2.0**-24
"""Frames are float32, which keeps 24 bits of numbers of size 1."""


def test_beta_changes_on_the_way_as_in_two_flows_one_after_the_other(faults):
    """An address repeats what a reader did; the library gives the same by two calls of `solve`."""

    def taken(count):
        for _ in range(count):
            socket.send('{"credit": 1}')
            yield unpack(socket.recv(timeout=PATIENCE))

    faults.replace("seconds of work per frame", 3600.0)  # a busy machine is no failure
    with served(lab.Server()) as server, client(server) as socket:
        start(socket, spec=SPEC, axes=[0, 1, 2])
        told(socket, "begun", "error")
        frames = list(taken(8))
        socket.send('{"set": {"beta": 1.0}}')
        change = told(socket, "changed", "error")["changed"]
        frames += taken(13)
        assert told(socket, "ended", "error")["ended"] == "the end, at t = 2, with β changed on the way."
        start(socket, spec=SPEC, axes=[0, 1, 2], then=[[change["t"], 1.0]])
        told(socket, "begun", "error")
        again = list(taken(8))
        assert told(socket, "changed", "error")["changed"] == change | {"planned": True}
        again += taken(13)
    assert change == {"t": pytest.approx(0.7, rel=1e-15), "beta": 1.0, "planned": False}
    for one, other in zip(frames, again, strict=True):
        assert one["t"] == other["t"]
        np.testing.assert_array_equal(one["positions"], other["positions"])
    assert [one["beta"] for one in frames] == 8 * [4.0] + 13 * [1.0]
    tokens = af.uniform(af.Sphere(5), n=24, seed=5)
    first = af.solve(af.Attention(4.0), tokens, 0.7, save=7)
    second = af.solve(af.Attention(1.0), first.tokens(-1), 1.3, save=13)
    expected = np.asarray(second.tokens(-1).positions)[:, :3]
    # the first call ends its last step at 0.7, the lab does not: both follow the flow to rtol = 1e-8, of numbers of
    # size 1 over a time in which distances grow by less than e^(2 t) = e^4 (|DX| <= 2 at these beta)
    np.testing.assert_allclose(frames[-1]["positions"], expected, rtol=0, atol=HALF + np.exp(4) * 1e-7)
    np.testing.assert_allclose([one["t"] for one in frames], 0.1 * np.arange(21), rtol=1e-14)


def test_changes_of_beta_are_checked():
    for wrong in ([[1.0]], [["a", 1.0]], [[-1.0, 2.0]], [[0.0, 1e9]], [[9.0, 1.0]] * 151, 3):
        assert re.match("`then`|`beta`", answered(None, spec=SPEC, then=wrong)[0]["error"])
    assert len(answered(None, spec=SPEC, then=[[9.0, 1.0]] * 150)[1]) == 21
    batch = SPEC | {"field": {"name": "attention", "beta": [9.0, 1.0]}}
    assert "one system" in answered(None, spec=batch, then=[[0.0, 2.0]])[0]["error"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a sweep that kept positions, one that did not, and one of a function."""
    root = tmp_path_factory.mktemp("swept")
    short = SPEC | {"solve": {"until": 0.2, "save": {"name": "evenly", "count": 2}}}
    axes = {"field.beta": [1.0, 9.0], "tokens.seed": [0, 1, 2]}
    af.sweep(runs.parse_spec(toml(short)), axes, root / "kept")
    short["solve"]["keep"] = ["energy"]
    af.sweep(runs.parse_spec(toml(short)), axes, root / "again")
    af.sweep(product, {"beta": [1.0, 2.0], "seed": range(3)}, root / "numbers")
    return root


def product(beta: float, seed: int):
    return {"product": beta * seed}


def shown(root, name, at):
    messages, frames = answered(root, run=name, axes=[0, 1, 2], at=at)
    return messages["begun"], frames


def test_a_point_of_a_sweep_is_a_flow_with_curves_through_it(folder):
    assert offered(folder)["runs"] == ["again", "kept", "numbers"]
    told, frames = shown(folder, "kept", [1, 2])
    data = af.open_sweep(folder / "kept").dataset
    np.testing.assert_allclose(
        [one["positions"] for one in frames], data["positions"].values[1, 2, :, :, :3], rtol=0, atol=HALF
    )
    assert [one["beta"] for one in frames] == 3 * [9.0]
    sweep = told["sweep"]
    assert sweep["at"] == [1, 2]
    assert [axis["values"] for axis in sweep["axes"]] == [[1.0, 9.0], [0, 1, 2]]
    beta, seed = sweep["curves"]["energy"]
    energy = data["energy"].values[:, :, -1]
    # numbers are sent with eight digits
    np.testing.assert_allclose(beta["values"], energy[:, 2], rtol=1e-7)
    np.testing.assert_allclose(seed["values"], energy[1], rtol=1e-7)
    np.testing.assert_allclose(beta["mean"], energy.mean(axis=1), rtol=1e-7)
    np.testing.assert_allclose(beta["error"], energy.std(axis=1, ddof=1) / np.sqrt(3), rtol=1e-7)
    again, computed = shown(folder, "again", [1, 2])
    assert "positions" not in af.open_sweep(folder / "again").dataset
    for one, other in zip(frames, computed, strict=True):  # a flow alone and in a group differ by rounding
        np.testing.assert_allclose(one["positions"], other["positions"], rtol=0, atol=2 * HALF + 1e-7)
    assert again["sweep"]["curves"]["energy"][0] == beta


def test_a_folder_that_names_a_file_does_not_have_it_read(folder, tmp_path, faults):
    """A sweep and a run of somebody else, whose specifications name a file of this machine."""
    reads = [faults.calls(point) for point in ("read tokens", "read tokens of a specification")]
    shutil.copytree(folder / "again", tmp_path / "sweep")
    plan = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    table = tomllib.loads(plan["source"]["text"])
    table["solve"]["observe"] = {"x": {"name": "distance", "nu": {"name": "file", "path": "/etc/passwd"}}}
    plan["source"]["text"] = toml(table)
    del plan["digest"]  # as plans of earlier versions
    (tmp_path / "sweep" / "sweep.json").write_text(json.dumps(plan))
    messages, frames = answered(tmp_path, run="sweep", at=[1, 2])
    assert "names a file" in messages["ended"]
    assert len(frames) == 1
    run = tmp_path / "run"
    run.mkdir()
    (run / "spec.toml").write_text(toml(table))
    facts = {"format": 1, "wall_time": 0, "peak_memory": 0, "versions": {}, "status": "finished", "kind": "solve"}
    facts |= dict.fromkeys(("name", "spec_hash", "created", "device", "platform", "dtype"), "")
    (run / "manifest.json").write_text(json.dumps(facts))
    assert "names a file" in offered(tmp_path)["undrawn"]["run"]
    assert "names a file" in answered(tmp_path, run="run")[0]["error"]
    assert reads == [[], []]


def test_a_sweep_of_a_function_has_numbers_alone(folder):
    told, frames = shown(folder, "numbers", None)
    assert (told["n"], len(frames), told["sweep"]["at"]) == (0, 1, [0, 0])
    along_beta = told["sweep"]["curves"]["product"][0]
    assert (along_beta["along"], along_beta["mean"]) == ("beta", [1.0, 2.0])
    for wrong in ([0], [0, 3], [0, -1], [0, "1"], "0,0"):
        assert "one for each axis" in answered(folder, run="numbers", at=wrong)[0]["error"]


def test_a_run_folder_is_written_below_the_chosen_folder_alone(tmp_path, faults):
    """What an address shows is carried out as `attnflow run --from-url` does it; a name cannot lead elsewhere."""
    address = "#space=circle&n=6&beta=2&t=0.2"
    drawn = []
    faults.replace("draw a run", lambda run, result: drawn.append(run.path) or {})
    messages, frames = answered(tmp_path, save="mine", address=address)
    assert messages == {"begun": {"saving": "mine"}, "ended": f"written: {tmp_path / 'mine'}", "number": None}
    assert (frames, drawn) == ([], [tmp_path / "mine"])
    flow = runs.open_run(tmp_path / "mine")
    again = af.solve(af.Attention(2.0), af.uniform(af.Sphere(2), n=6), 0.2)
    np.testing.assert_array_equal(flow.dataset["positions"].values, again.dataset["positions"].values)
    (tmp_path / "link").symlink_to(tmp_path.parent)
    for name in ("mine", "link", "../x", "/x", "a/b", ".x", "", "x" * 81, "a\0", None, 3):
        assert re.search("another name|give a name", answered(tmp_path, save=name, spec=SPEC)[0]["error"])
    for root in (None, tmp_path / "mine"):
        assert "without a folder of runs" in answered(root, save="new", spec=SPEC)[0]["error"]
    changing = answered(tmp_path, save="new", address=address + "&then=0.1:4")[0]
    assert "changes beta on its way" in changing["error"]
    from_file = answered(tmp_path, save="new", spec=SPEC | {"tokens": {"name": "file", "path": "x"}})[0]
    assert "names a file" in from_file["error"]
    faults.replace("bytes of a saved run", 1000)
    assert "at most" in answered(tmp_path, save="new", spec=SPEC)[0]["error"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "mine"]


def test_links_and_pipes_inside_a_run_are_not_followed(tmp_path):
    root = tmp_path / "runs"
    for name in ("fine", "bad", "inside", "pipe"):
        (root / name).mkdir(parents=True)
        (root / name / "manifest.json").write_text("{}")
    (root / "inside" / "link").symlink_to("manifest.json")
    os.mkfifo(root / "pipe" / "arrays")
    os.mkfifo(root / "waits.npz")
    secret = tmp_path / "secret"
    secret.mkdir()
    (root / "bad" / "arrays").symlink_to(secret)
    (root / "out").symlink_to(secret)
    (secret / "manifest.json").write_text("{}")
    offers = offered(root)
    assert {*offers["runs"], *offers["undrawn"]} == {"fine", "bad", "inside", "pipe"}
    assert not re.search("a link|open one of", answered(root, run="fine")[0]["error"])  # its manifest says nothing
    for name in ("bad", "inside", "pipe"):
        assert "a link, a pipe or a device" in answered(root, run=name)[0]["error"]
    for name in ("out", "..", ".", "fine/../bad", str(secret)):
        assert "open one of" in answered(root, run=name)[0]["error"]


def test_limits_are_those_of_the_page():
    from tests.lab.v8 import call

    assert call("() => modules.state.CHANGES") == 150
    spec = json.loads(json.dumps(SPEC))
    other = call("(s) => modules.state.specOf({ spec: JSON.stringify(s), spec2: '' }, true)", spec)
    assert other == spec | {"field": {"name": "attention", "beta": 25}}
    mine = {"tokens": {"n": 3}, "field": {"name": "attention", "beta": 2}, "solve": {"until": 7}}
    shared = call(
        "(s, o) => modules.state.specOf({ spec: JSON.stringify(s), spec2: JSON.stringify(o) }, true)", spec, mine
    )
    assert shared == mine | {"tokens": spec["tokens"]}
    assert (
        call(
            "(s) => modules.state.otherBeta({ spec: JSON.stringify(s), run: '' }, {...s, field: {...s.field, beta: 7}}, false)",
            spec,
        )
        == 7
    )
    assert (
        call(
            "(s) => modules.state.otherBeta({ spec: JSON.stringify(s), run: '' }, {...s, solve: {until: 7}}, false)",
            spec,
        )
        is None
    )


PREDICTED = """(setting, beta, t) => {
  const frame = (t) => ({ t, beta, condensed: false, count: 9, modes: new Array(12).fill(0.01), clusters: null });
  const { grown, fastest, next } = modules.predict.predict(setting, [frame(0), frame(t)], 1);
  return { grown, fastest, next };
}"""


@pytest.mark.parametrize("d", [3, 6])
def test_theory_stands_beside_flows_by_python(d):
    """Growth rates of plain attention in the dimension of the tokens, whatever is drawn of them."""
    from attnflow import theory
    from tests.lab.v8 import call

    def facts(**field):
        space = {"name": "sphere", "dim": d}
        table = SPEC | {"tokens": SPEC["tokens"] | {"space": space}, "field": SPEC["field"] | field}
        table["solve"] = {
            "until": 0.1,
            "method": {"name": "fixed", "step": 0.1},
            "save": {"name": "evenly", "count": 1},
        }
        return answered(None, spec=table)[0]["begun"]

    told = facts()
    assert (told["theory"], facts(normaliser={"name": "unnormalised", "clock": "USA0"})["theory"]) == ("SA", "USA0")
    assert facts(mask={"name": "causal"})["theory"] is facts(value=(-np.eye(d)).tolist())["theory"] is None
    plain = {"model": "SA", "causal": False, "value": None, "kappa": 0, "start": "", "remote": True, "full": d}
    found = call(PREDICTED, told | plain | {"d": 3}, 4.0, 0.5)
    rates = theory.uniform.growth_rates(4.0, d, k=np.arange(1, 13))
    np.testing.assert_allclose(found["grown"], 0.01 * np.exp(0.5 * rates), rtol=1e-10)
    assert found["fastest"] == theory.uniform.dominant_degree(4.0, d)
