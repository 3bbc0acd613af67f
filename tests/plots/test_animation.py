"""Animations: what is shown when, cursors on the curves, files that are whole and load nothing."""

import base64
import dataclasses
import math
import re
import types

import numpy as np
import pytest
from PIL import Image

import attnflow as af
from attnflow import plots
from attnflow.errors import InvalidInput, RunError
from attnflow.meanfield import CircleBasis, SphereBasis, evolve, perturbed
from attnflow.plots.ticks import FIRST, LAST, even_ticks, long_ticks
from tests.marks import graded
from tests.plots.flows import Scale, TimeAxis, player_data

SHORT = {"seconds": 3.0, "fps": 4, "width": 240}


@pytest.fixture(scope="module")
def flow():
    """Ten frames of twelve tokens on the circle, two clusters at the end."""
    tokens = af.tokens.clustered(af.Sphere(2), centres=np.eye(2), n=12, spread=0.3, seed=0)
    return af.solve(af.Attention(9.0), tokens, 9.0, save=af.saving.Evenly(9), method=af.Fixed(0.25))


@pytest.fixture(scope="module")
def long():
    return af.solve_long(af.Attention(40.0), af.uniform(af.Sphere(3), n=8, seed=1))


@pytest.fixture(scope="module")
def batch():
    tokens = af.uniform(af.Sphere(3), n=8, seed=range(3))
    return af.solve(af.Attention(4.0), tokens, 2.0, save=af.saving.Evenly(4), method=af.Fixed(0.25))


def test_frames_are_even_in_time():
    log_time = np.log(np.append(1e-300, np.arange(1, 101.0)))
    axis = TimeAxis(Scale.LINEAR, -np.inf, log_time[-1])
    ticks = even_ticks(log_time, axis, 5.0, 10)
    assert len(ticks) == round((5 - FIRST - LAST) * 10)
    assert set(np.diff(ticks.frame)) <= {3, 4}  # 100 intervals on 32 pictures
    assert (ticks.frame[0], ticks.frame[-1]) == (0, 100)
    assert np.array_equal(ticks.log_time, log_time[ticks.frame])
    assert ticks.seconds.sum() == pytest.approx(5.0)
    few = even_ticks(log_time[::50], dataclasses.replace(axis, last=log_time[-1]), 5.0, 10)
    assert few.frame.tolist() == [0, 1, 2]  # three frames are three pictures, however long
    assert few.seconds.sum() == pytest.approx(5.0)


def test_a_long_flow_takes_half_of_its_time_in_log_time():
    log_time = np.array([-np.inf, -30.0, 0.0, 1.0, 2.0, 50.0, 99.0])
    path = np.array([0.0, 0.0, 0.0, 0.05, 0.1, 0.1, 3.0])
    ticks = long_ticks(log_time, path, TimeAxis(Scale.LOGARITHMIC, -1.0, 100.0), 20.0, 20)
    assert 1 not in ticks.frame  # before the left end of the axis
    assert np.all(np.diff(ticks.frame) >= 0)
    assert np.all(np.diff(ticks.log_time[1:]) >= 0)
    assert ticks.log_time[0] == -np.inf
    assert ticks.log_time[-1] == 100.0
    shown = log_time[ticks.frame]
    assert np.all(shown <= ticks.log_time + 1e-9)  # never a frame that is still to come
    later = np.append(log_time[[2, 2, *range(3, 7)]], np.inf)[ticks.frame]
    assert np.all(later > ticks.log_time - 1e-9)
    plateau = (ticks.log_time > 2.2) & (ticks.log_time < 49.8)
    steps = np.diff(ticks.log_time[plateau])
    assert np.ptp(steps) < 1e-9
    # of 2, which all log times and all ways have: its length in log t, and what tokens went just before it
    assert plateau.mean() == pytest.approx((48 / 101 + 0.05 / 0.16) / 2, abs=0.02)


@pytest.mark.slow
def test_cursors_are_on_the_data(flow):
    made = plots.animate(flow, **SHORT)
    energy, count = made.cursors
    for k in range(len(made)):
        made.show(k)
        frame = made.ticks.frame[k]
        time = flow.time.values[frame]
        assert energy.line.get_xdata()[0] == count.line.get_xdata()[0] == pytest.approx(time, rel=1e-12)
        assert energy.dot.get_data()[1][0] == flow.energy.values[frame]
        found = made.scene.data.clusters.isel(time=frame)
        shown = count.dot.get_data()[1][0]
        assert shown == int(found["count"]) if bool(found["condensed"]) else np.isnan(shown)
        assert ("0" if time == 0 else f"{time:.3g}") in made.label.get_text()
    curve = energy.axes.lines[0]
    assert np.array_equal(curve.get_ydata(), flow.energy.values)


def test_tokens_are_where_they_were_computed(flow):
    made = plots.animate(flow, **SHORT)
    for k in (0, len(made) - 1):
        made.show(k)
        x = flow.positions.values[made.ticks.frame[k]]
        dots = np.asarray(made.scene.dots[0].get_offsets())
        away = np.linalg.norm(x[:, None] - dots[None], axis=2)
        assert away.min(axis=1).max() < 0.02  # tokens that have met are one disc
        assert away.min(axis=0).max() < 1e-12  # and every disc is a token
    assert len(dots) == 2
    assert made.scene.dots[0].get_sizes() == pytest.approx([made.scene.dots[0].get_sizes()[0]] * 2)


@pytest.mark.slow
def test_long_time_is_in_order(long):
    made = plots.animate(long, **SHORT)
    merges = long.merges["log_time"].values
    energy, count = made.cursors
    x = []
    for k in range(len(made)):
        made.show(k)
        frame = made.ticks.frame[k]
        x.append(energy.line.get_xdata()[0])
        assert energy.dot.get_data()[1][0] == long.dataset["energy"].values[frame]
        assert count.dot.get_data()[1][0] == 8 - np.sum(merges <= long.log_time.values[frame])
    assert np.all(np.diff(x) >= 0)
    assert x[-1] == pytest.approx(math.exp(made.scene.axis.last))
    assert energy.axes.get_xscale() == count.axes.get_xscale() == "log"
    assert made.seconds == pytest.approx(3.0, abs=1 / 4)  # a whole number of pictures


def test_a_gif_has_the_pictures(flow, tmp_path):
    seen = []
    made = plots.animate(flow, tmp_path / "a.gif", on_picture=lambda k, of: seen.append((k, of)), **SHORT)
    assert seen == [(k + 1, len(made)) for k in range(len(made))]
    with Image.open(tmp_path / "a.gif") as picture:
        waits = []
        for k in range(picture.n_frames):
            picture.seek(k)
            waits.append(picture.info["duration"])
        assert picture.size == (240, 126)
        assert picture.n_frames == len(made)
        assert picture.info["loop"] == 0
        assert sum(waits) == pytest.approx(1000 * made.seconds, abs=10)
        picture.seek(0)
        first = np.asarray(picture.convert("RGB"))
    assert first[0, 0].tolist() == [255, 255, 255]
    exact = next(made.pictures())
    assert np.abs(first.astype(int) - exact).mean() < 1.0
    assert [path.name for path in tmp_path.iterdir()] == ["a.gif"]


def test_a_page_loads_nothing(long, tmp_path):
    plots.animate(long, tmp_path / "a.html", **SHORT)
    page = (tmp_path / "a.html").read_text()
    for word in ("http:", "https:", "src=", "import(", "fetch(", "<link", "NaN"):
        assert word not in page, word
    assert page.count("<script>") == page.count("<canvas") == 1


def test_the_player_has_the_same_numbers(long):
    made = plots.animate(long, **SHORT)
    data = player_data(made)
    assert len(data["frame"]) == len(data["label"]) == len(made)
    (view,) = data["views"]
    raw = np.frombuffer(base64.b64decode(view["points"]), "<i2").reshape(-1, view["count"], view["dim"])
    points = raw * view["width"] / 32767
    k = len(made) // 2
    cloud = made.scene.cloud(0, int(made.ticks.frame[k]))
    assert np.abs(points[data["frame"][k]] - cloud.points).max() < 1e-4
    made.show(k)
    for cursor, panel in zip(made.cursors, data["panels"], strict=True):
        spot = cursor.axes.transData.transform([(cursor.line.get_xdata()[0], cursor.dot.get_data()[1][0])])[0]
        unit = 700 / made.figure.bbox.width
        assert panel["x"][k] == pytest.approx(spot[0] * unit, abs=0.01)
        assert panel["y"][k] == pytest.approx((made.figure.bbox.height - spot[1]) * unit, abs=0.01)
    assert "iframe" in made._repr_html_()


@pytest.mark.slow
def test_a_value_that_is_not_known_keeps_its_time():
    # Many tokens that have just begun to move: at some times the number of clusters depends on the threshold.
    start = af.uniform(af.Sphere(3), n=40, seed=0)
    flow = af.solve(af.Attention(4.0), start, 1.0, save=af.saving.Evenly(9), method=af.Fixed(0.25))
    made = plots.animate(flow, **SHORT)
    data = player_data(made)
    unknown = [panel for panel in data["panels"] if None in panel["y"]]
    assert unknown
    for panel in data["panels"]:
        assert np.all(np.diff(panel["x"]) > 0)


@graded("basis", [CircleBasis(16), SphereBasis(16)], ids=lambda basis: type(basis).__name__)
def test_a_density_moves(basis, tmp_path):
    flow = evolve(af.Attention(4.0), perturbed(basis, 1, 0.1), 0.1, save=3)
    made = plots.animate(flow, tmp_path / "a.gif", **SHORT)
    with Image.open(tmp_path / "a.gif") as picture:
        assert picture.n_frames == len(made) == 4
    energy, entropy = made.cursors
    assert energy.dot.get_data()[1][0] == flow.dataset["energy"].values[-1]
    assert entropy.dot.get_data()[1][0] == flow.dataset["entropy"].values[-1]
    if isinstance(basis, SphereBasis):
        with pytest.raises(InvalidInput, match="gif or mp4"):
            made.save(tmp_path / "a.html")
        assert not (tmp_path / "a.html").exists()
    else:
        made.save(tmp_path / "a.html")
        drawn = np.asarray(made.scene.line.get_ydata())
        assert np.array_equal(drawn, made.scene.view.values(3))


def test_a_member_of_a_batch(batch):
    first, second = (plots.animate(batch, member=index, **SHORT) for index in (None, {"seed": 1}))
    assert np.array_equal(first.scene.data.flow.positions.values, batch.positions.values[0])
    assert np.array_equal(second.scene.data.flow.positions.values, batch.positions.values[1])


def test_refusals_are_one_sentence(flow, batch, tmp_path, faults):
    none = dataclasses.replace(flow, dataset=flow.dataset.isel(time=slice(0)))
    blind = dataclasses.replace(flow, dataset=flow.dataset.drop_vars("positions"))
    for made, words in (
        (lambda: plots.animate(flow, tmp_path / "a.avi"), "html, gif or mp4"),
        (lambda: plots.animate(flow, tmp_path / "a", format="webm"), "`format` is 'webm'"),
        (lambda: plots.animate(flow, seconds=0.1), "`seconds` is 0.1"),
        (lambda: plots.animate(flow, fps=100), "`fps` is 100"),
        (lambda: plots.animate(flow, width=10), "`width` is 10"),
        (lambda: plots.animate(none), "no frame was saved"),
        (lambda: plots.animate(blind), "no positions"),
        (lambda: plots.animate(batch, member={"seed": 3}), "from 0 to 2"),
        (lambda: plots.animate(batch, member={"beta": 0}), "dimensions seed"),
        (lambda: plots.animate("flow"), "`flow` is str"),
        (lambda: plots.animate(flow, tmp_path / "nowhere" / "a.gif", **SHORT), "cannot write"),
    ):
        with pytest.raises((InvalidInput, RunError), match=words) as refused:
            made()
        assert re.search(r"\.$", str(refused.value))
    faults.module("imageio_ffmpeg")
    with pytest.raises(InvalidInput, match=r"attnflow\[video\]"):
        plots.animate(flow, tmp_path / "a.mp4", **SHORT)
    assert not list(tmp_path.iterdir())


def test_an_interrupt_leaves_no_file(flow, tmp_path):
    def stop(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plots.animate(flow, tmp_path / "a.gif", on_picture=stop, **SHORT)
    assert not list(tmp_path.iterdir())


def ffmpeg(folder, faults, script):
    """A program in the place of FFmpeg, which is a large download; its last argument is the film."""
    program = folder / "ffmpeg"
    program.write_text(f"#!/bin/sh\nfor last; do :; done\n{script}\n")
    program.chmod(0o755)
    faults.module("imageio_ffmpeg", types.SimpleNamespace(get_ffmpeg_exe=lambda: str(program)))


def test_a_film_gets_every_picture(flow, tmp_path, tmp_path_factory, faults):
    ffmpeg(tmp_path_factory.mktemp("program"), faults, 'cat > "$last"')
    made = plots.animate(flow, tmp_path / "a.mp4", **SHORT)
    pixels = np.frombuffer((tmp_path / "a.mp4").read_bytes(), np.uint8).reshape(-1, 126, 240, 3)
    assert len(pixels) == 12  # three seconds, four pictures in each
    pictures = list(made.pictures())
    assert np.array_equal(pixels[0], pictures[0])
    assert np.array_equal(pixels[-1], pictures[-1])
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_a_film_that_fails_is_one_sentence(flow, tmp_path, tmp_path_factory, faults):
    ffmpeg(tmp_path_factory.mktemp("program"), faults, "cat > /dev/null; echo no codec >&2; exit 1")
    with pytest.raises(RunError, match="no codec"):
        plots.animate(flow, tmp_path / "a.mp4", **SHORT)
    assert not list(tmp_path.iterdir())


def test_lighter_goes_to_white(long):
    """Colours of the far side of a sphere go 66 % of the way to white, to whole numbers."""
    data = player_data(plots.animate(long, **SHORT))
    near, far = (np.array([list(bytes.fromhex(colour[1:])) for colour in data[name]]) for name in ("colours", "pale"))
    np.testing.assert_allclose(far, near + 0.66 * (255 - near), atol=1)
