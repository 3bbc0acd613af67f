"""Parts of the page in an embedded V8: sums, clusters, plateaus, theory, the state in the address, lines of Python."""

import ast
import contextlib

import numpy as np
import pytest
from scipy.special import eval_legendre

import attnflow as af
from attnflow import theory
from tests.lab import staircase, v8
from tests.lab.test_engine import FLOW, setting

SUMS = """(setting) => {
  const [x, m] = [modules.starts.positions(setting), modules.starts.masses(setting)];
  return ["pairs", setting.sum].map((name) => {
    const [total, vector] = [new Float64Array(m.length), new Float64Array(x.length)];
    const { d, beta, causal, tol } = setting;
    modules.sums.choose({ d, beta, causal, m, tol, name }).evaluate(x, m, total, vector);
    return { total, vector, m };
  });
}"""


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("d", "name"), [(2, "circle"), (3, "harmonics")])
def test_series_agree_with_pairs(d, name, causal):
    """The softmax mean is off by at most `tol`; a mean of two errors of tol min mass/4 over a total of at least the mass."""
    for beta, zipf in ((0.0, 0.0), (0.3, 1.0), (9.0, 0.5), (60.0, 0.0)):
        pairs, series = v8.call(SUMS, setting(d=d, n=60, beta=beta, zipf=zipf, causal=causal, sum=name, tol=1e-9))
        means = [np.reshape(one["vector"], (60, d)) / np.reshape(one["total"], (60, 1)) for one in (pairs, series)]
        assert np.abs(means[0] - means[1]).max() < 1e-9


def test_the_cheapest_sum_is_chosen():
    def chosen(**about):
        best = v8.call("modules.sums.offers", {"lightest": 1 / about["n"], "tol": 1e-6} | about)
        return min(best, key=lambda offer: offer["seconds"])["name"]

    assert chosen(d=2, beta=9, n=100_000) == "circle"
    assert chosen(d=3, beta=9, n=20_000) == "harmonics"
    assert chosen(d=3, beta=100, n=200) == "pairs"
    assert chosen(d=2, beta=9, n=4) == "pairs"
    # masses so small that round-off of a series would exceed 1e-6
    assert chosen(d=2, beta=9, n=5000, lightest=1e-12) == "pairs"


@pytest.mark.parametrize("d", [2, 3])
def test_clusters_are_those_of_the_library(d):
    """Labels, largest mass first, of tokens between scattered and condensed."""
    rng = np.random.default_rng(5)
    for scale in (0.08, 0.3, 0.5):
        centres = rng.standard_normal((12, d))
        x = centres[rng.integers(12, size=200)] + 0.15 * rng.standard_normal((200, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        masses = rng.random(200) + 0.1
        masses /= masses.sum()
        found = v8.call(
            "(x, m, d, scale) => modules.clusters.clusters(Float64Array.from(x), Float64Array.from(m), d, scale)",
            x.ravel().tolist(),
            masses.tolist(),
            d,
            scale,
        )
        expected = af.observe.clusters(af.Tokens(x, masses), scale=scale)
        assert found["labels"] == expected.labels.tolist()
        assert found["condensed"] == expected.condensed
        np.testing.assert_allclose(found["radii"], expected.radii, atol=1e-7)


@pytest.mark.parametrize("d", [2, 3])
def test_modes_obey_the_addition_theorem(d):
    """The square of the size of degree k is sum_ij m_i m_j P_k(<x_i, x_j>), in float32."""
    x, masses = af.uniform(af.Sphere(d), n=50, seed=8).positions, np.arange(1, 51) ** -0.5
    masses /= masses.sum()
    found = v8.call(
        "(x, m, d) => modules.observe.modes(Float64Array.from(x), Float64Array.from(m), d, 12)",
        x.ravel().tolist(),
        masses.tolist(),
        d,
    )
    overlaps, degrees = np.clip(x @ x.T, -1, 1), range(1, 13)
    kernels = [np.cos(k * np.arccos(overlaps)) if d == 2 else eval_legendre(k, overlaps) for k in degrees]
    np.testing.assert_allclose(found, [np.sqrt(masses @ kernel @ masses) for kernel in kernels], rtol=1e-5)


def test_attention_is_shown_row_by_row():
    x, masses = af.uniform(af.Sphere(3), n=40, seed=9).positions, np.full(40, 1 / 40)
    for causal in (False, True):
        found = v8.call(
            """(x, m, causal) => modules.observe.attention(
              Float64Array.from(x), Float64Array.from(m), 3, { beta: 3, causal }, new Int32Array(m.length))""",
            x.ravel().tolist(),
            masses.tolist(),
            causal,
        )
        weights = np.exp(3 * (x @ x.T - 1)) * (np.tri(40) if causal else 1)
        expected = 255 * weights / weights.max(axis=1, keepdims=True)
        assert np.abs(np.reshape(found["weights"], (40, 40)) - expected).max() <= 0.5 + 1e-9


def test_the_tree_accounts_for_every_cluster():
    """At every frame the branches that have begun and not ended are the names of the tokens; the end is one cluster."""
    frames = v8.call(
        """(setting) => {
          const engine = new modules.engine.Engine(setting);
          return Array.from({ length: 60 }, (_, k) => 0.1 * 1.13 ** k).map((t) => {
            while (!engine.towards(t));
            const { names, tree, count } = engine.frame(t);
            return { names, count, births: tree.births.length, ends: tree.merges.length, merges: [...tree.merges] };
          });
        }""",
        setting(d=2, n=30, beta=3.0, tol=1e-4),
    )
    for frame in frames:
        assert frame["births"] - frame["ends"] == len({*frame["names"]} - {255})
    assert frames[-1]["count"] == 1
    assert any(one["into"] >= 0 for one in frames[-1]["merges"])


def test_the_tree_forgets_what_fell_apart():
    """Cluster 1 merges into 0, which falls apart; 3 merges into 2, which lasts."""
    births = [{"t": k, "name": k} for k in range(4)]
    ends = [(4, 1, 0), (5, 3, 2), (6, 0, -1)]
    merges = [{"t": t, "name": name, "into": into} for t, name, into in ends]
    kept = v8.call("modules.charts.lasting", {"births": births, "merges": merges})
    assert kept == {"births": births[2:], "merges": [{"t": 5, "name": 1, "into": 0}]}


def test_plateaus_are_those_of_the_library():
    rng = np.random.default_rng(6)
    for _ in range(20):
        time = np.concatenate([[0.0], np.cumsum(rng.exponential(size=39) * np.linspace(0.1, 3, 39))])
        count = np.maximum(1, 6 - np.cumsum(rng.random(40) < 0.12))
        condensed = np.arange(40) > rng.integers(10)
        energy = np.sort(-rng.random(40))
        rows = zip(time.tolist(), count.tolist(), condensed.tolist(), energy.tolist(), strict=True)
        frames = [dict(zip(("t", "count", "condensed", "energy"), row, strict=True)) for row in rows]
        found = v8.call("modules.history.plateaus", frames)
        expected = af.observe.plateaus(time, count, condensed, energy)
        assert [one["clusters"] for one in found] == [one.clusters for one in expected]
        np.testing.assert_allclose([one["end"] for one in found], [one.end for one in expected], rtol=1e-12)
        np.testing.assert_allclose([one["energy"] for one in found], [one.energy for one in expected], rtol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.5, 9.0, 100.0, 400.0])
def test_theory_is_that_of_the_library(beta):
    """Quotients of Bessel functions by the same continued fraction; the rest is a few rounded operations."""
    for d in (2, 3):
        for model in ("SA", "USA0"):
            rates = v8.call("(beta, d, model) => modules.theory.growthRates(beta, d, 12, { model })", beta, d, model)
            expected = theory.uniform.growth_rates(beta, d, k=np.arange(1, 13), model=model)
            np.testing.assert_allclose(rates, expected, rtol=1e-11, atol=1e-11)
        assert v8.call("modules.theory.dominantDegree", beta, d) == theory.uniform.dominant_degree(beta, d)
    assert v8.call("modules.theory.expectedModes", beta) == pytest.approx(
        theory.landscape.expected_modes(beta), rel=1e-12
    )
    for masses in ([0.5, 0.5], [0.7, 0.1]):
        for model in ("SA", "USA0"):
            got = v8.call("modules.theory.logMergeTime", 1.9, beta, masses, 0.05, model)
            expected = theory.merging.log_merge_time(1.9, beta, masses=masses, until=0.05, model=model)
            assert got == pytest.approx(float(expected), rel=1e-11, abs=1e-11)
            met = v8.call("modules.theory.meetingPoint", 1.9, beta, masses, model)
            assert met == pytest.approx(
                float(theory.merging.meeting_point(1.9, beta, masses=masses, model=model)), rel=1e-12
            )


def test_the_next_merge_comes_when_theory_says():
    """Three point clusters, two of them closer: the engine links them at the predicted time.

    The third is so far that it changes log t by less than 1e-6: its own merge takes e^14 times as long.
    """
    angles = np.array([0.0, 0.9, 3.6])
    centres, masses = np.stack([np.cos(angles), np.sin(angles)], 1).ravel().tolist(), [0.25, 0.35, 0.4]
    next_ = v8.call(
        "(centres, masses) => modules.theory.nextMerge({ centres, masses }, 2, { beta: 16, model: 'SA' }, 0.25)",
        centres,
        masses,
    )
    assert next_["pair"] == [0, 1]
    field = v8.call(
        """(x, m, t) => {
          const setting = { d: 2, beta: 16, model: "SA", causal: false, value: null, tol: 1e-9 };
          const field = new modules.field.Field(2, Float64Array.from(m), setting);
          const stepper = new modules.steps.Stepper(field, Float64Array.from(x), 2, { t: 0, tol: 1e-9, kappa: 0 });
          while (stepper.t < t) stepper.step(t);
          return { x: stepper.x, energy: modules.theory.pointEnergy(stepper.x, m, 2, 16) };
        }""",
        centres,
        masses,
        float(np.exp(next_["logTime"])),
    )
    x = np.reshape(field["x"], (3, 2))
    assert np.arccos(x[0] @ x[1]) == pytest.approx(0.25, abs=1e-4)
    assert next_["energy"] > field["energy"] > v8.call("modules.theory.pointEnergy", centres, masses, 2, 16)


def test_the_address_keeps_every_setting_and_clamps_what_is_strange():
    given = "#space=circle&n=50000&beta=30&model2=USA0&then=1.5:4,7:60&value=1,0,0,-2&t=12.5"
    state = v8.call("modules.state.parsed", given)
    assert (state["n"], state["model2"], state["value"], state["t"]) == (50000, "USA0", "1,0,0,-2", 12.5)
    reread = (
        "(state) => { const notes = {}; return [modules.state.parsed(modules.state.written(state), notes), notes]; }"
    )
    assert v8.call(reread, state) == [state, {}]
    strange = "#space=cube&n=1e99&beta=-5&seed=x&model=<b>&value=1,2,3&then=nan:1,5:&pitch=99&noise=&theme=toString&yaw=%&unknown=1"
    state = v8.call("modules.state.parsed", strange)
    expected = {
        "space": "sphere",
        "n": 20000,
        "beta": 0,
        "seed": 0,
        "model": "SA",
        "value": "I",
        "then": "",
        "pitch": 1.57,
        "noise": 0,
    }
    assert {key: state[key] for key in expected} == expected
    assert "unknown" not in state


GARBAGE = [
    "",
    "foo",
    "-1",
    "1e99",
    "99999999",
    "2.5",
    "1,2,3",
    "1,0,0,-11",
    "principal,1",
    "{",
    "nan:1,5:",
    "x" * 20001,
]
ACCEPTED = """(space, garbage) => {
  const { TABLE, parsed, accepted } = modules.state;
  const state = parsed(`#space=${space}&then=1:2&zipf=0.5&words=a b&points=1,2,3,4&run=mine`);
  return Object.entries(TABLE).flatMap(([key, { label, low, high, type }]) => garbage.map((given) => {
    const notes = { [key]: "an older note" };
    const value = accepted(key, given, state, notes);
    const isSame = value === given || (given !== "" && value === Number(given));
    const isAllowed = typeof value === "string" || (low <= value && value <= high && (type === "number" || Number.isInteger(value)));
    return { key, given, isSame, isAllowed, ending: `: ${label} = ${value || (value === 0 ? 0 : "none")}.`, note: notes[key] ?? "" };
  }));
}"""
ASIDE = ("The first ", "The last ", "There is no point ")
"""How notes begin that say what a text means and leave it as it is."""


@pytest.mark.parametrize("space", ["circle", "sphere"])
def test_no_setting_is_changed_without_a_word(space):
    """Whatever is given for whichever setting is accepted as it is, or a note says what stands there instead."""
    rows = v8.call(ACCEPTED, space, GARBAGE)
    assert len(rows) > 400
    for row in rows:
        note = row["note"]
        assert row["isAllowed"], row
        if row["isSame"]:
            assert note == "" or note.startswith(ASIDE) or note.endswith("cannot be read."), row
        else:
            assert note.endswith(row["ending"]), row


@pytest.mark.parametrize(
    ("key", "text", "value", "note"),
    [
        ("value", "foo", "I", "“foo” is no matrix; give I, -I or 9 numbers from -10 to 10, by rows: V = I."),
        ("value", "−I", "-I", None),
        ("n", "99999999", 20000, "99999999 is above 20000 tokens, the most on the sphere: tokens = 20000."),
        ("n", "2.7", 3, "2.7 is not whole: tokens = 3."),
        ("beta", "", 9, "No number was given: β = 9."),
        ("noise", "-1", 0, "-1 is below 0: noise κ = 0."),
        (
            "axes",
            "x",
            "principal",
            "“x” names no coordinates; give principal, or two or three such as 0,1,4: coordinates = principal.",
        ),
        ("axes", "0, 1 4", "0, 1 4", None),
        ("model", "<b>", "SA", "“<b>” is none of SA, USA0: attention = SA."),
        ("words", "w " * 130, ("w " * 130).strip(), "The first 120 of 130 words are tokens."),
        ("points", ",".join(["1,2"] * 401), ",".join(["1,2"] * 401), "The first 400 of 401 points are tokens."),
        ("points", "1,x,2", "1,x,2", "1 of 3 angles cannot be read."),
        ("points", "1,2,3", "1,2,3", "The last angle has no partner, and is left out."),
        ("t", "20000", 10000, "20000 is above 10000, where this page stops: time = 10000."),
        ("then", "3:1,x,2:1", "2:1,3:1", "1 of 3 changes of β cannot be read: later β = 2:1,3:1."),
    ],
)
def test_notes_say_what_was_refused_or_limited(key, text, value, note):
    got = v8.call(
        "(key, given) => { const notes = {}; const { parsed, accepted } = modules.state;"
        "return [accepted(key, given, parsed(''), notes), notes[key] ?? null]; }",
        key,
        text,
    )
    assert got == [value, note]


def test_an_address_and_another_space_say_what_they_change():
    notes = """(hash) => {
      const notes = {};
      const state = modules.state.parsed(hash, notes);
      const other = {};
      const moved = modules.state.consistent({ ...state, space: "sphere" }, other);
      return [notes, other, moved];
    }"""
    address = "#n=50000&space=circle&value=0,1,-1,0&then=1:2&seed=7"
    assert v8.call(notes, address)[0] == {}  # the order of the parts does not matter
    _, changes, state = v8.call(notes, address)
    assert (state["n"], state["value"], state["seed"], state["then"]) == (20000, "I", 7, "1:2")
    assert sorted(changes) == ["n", "value"]
    refusals = v8.call(notes, "#colour=blue&spec=%7B&source=python&shape=cube&t=1e9")[0]
    assert refusals == {
        "shape": "“shape” is no setting of this page.",
        "spec": "This address has a specification that cannot be read: specification = none.",
        "colour": "“blue” is none of cluster, word: tokens by = cluster.",
    }


def test_forms_refuse_numbers_that_the_page_would_change():
    for text in ("9007199254740992", "[1, 12345678901234567890]", "1e309", "[1e999]"):
        assert not v8.call("modules.forms.isExact", text)
    for text in ("9007199254740991", "0.12345678901234567", "1e300", "rk4", "[1, 2.5]", "-12", ""):
        assert v8.call("modules.forms.isExact", text)


DRAWN = """(chart, frames) => {
  const [paths, texts] = [[], []];
  const pen = { path: (points, look) => paths.push({ points, look }), text: (x, y, words) => texts.push(words), rect() {}, dot() {} };
  const history = new modules.history.History(2, 3);
  for (const frame of frames) history.push({ condensed: true, clusters: null, ...frame });
  const run = { history, index: 0, colour: "own", setting: {}, prediction: null };
  modules.charts[chart](pen, 330, 190, { runs: [run], chosen: 0, colours: {} });
  const x = modules.axes.timeScale(modules.axes.inner(330, 190), frames.at(-1).t);
  return { curves: paths.filter(({ look }) => look.stroke === "own"), texts, at: frames.map(({ t }) => x(t)) };
}"""


def frames_of(times, betas):
    """Frames whose energy says how many of them came before."""
    rows = enumerate(zip(times, betas, strict=True))
    return [{"t": t, "beta": beta, "energy": -1.0 / (k + 1), "count": 9 - k} for k, (t, beta) in rows]


def test_curves_show_where_beta_changed():
    """Dotted lines stand at the last frames before a change; no strong stroke leads across them."""
    times, betas = [0.1, 0.3, 1.0, 3.0, 5.0, 7.0], [9, 9, 25, 25, 4, 4]
    for chart, written in (("drawEnergy", ["β = 4", "β = 25"]), ("drawCounts", ["β = 4", "β = 25"]), ("drawTree", [])):
        strokes = v8.call(DRAWN, chart, frames_of(times, betas))
        dotted = [path["points"] for path in strokes["curves"] if path["look"].get("dash")]
        assert sorted(points[0][0] for points in dotted) == [strokes["at"][1], strokes["at"][3]]
        assert all(points[0][0] == points[1][0] for points in dotted)
        assert [words for words in strokes["texts"] if "β" in words] == written
    energy = v8.call(DRAWN, "drawEnergy", frames_of(times, betas))["curves"]
    strong = [path["points"] for path in energy if not path["look"].get("dash") and "alpha" not in path["look"]]
    assert [[round(x, 9) for x, _ in line] for line in strong] == [
        [round(x, 9) for x in strokes["at"][k : k + 2]] for k in (0, 2, 4)
    ]
    steady = v8.call(DRAWN, "drawEnergy", frames_of(times, [9] * 6))
    assert [len(path["points"]) for path in steady["curves"]] == [6]


@pytest.mark.parametrize("chart", ["drawEnergy", "drawCounts"])
def test_frames_before_the_axis_begins_are_one_point(chart):
    """The axis is logarithmic and begins at 0.05: frames at t = 0, 0.01, 0.03 have one place on it."""
    curves = v8.call(DRAWN, chart, frames_of([0, 0.01, 0.03, 0.2, 1.0], [9] * 5))["curves"]
    curve = max((path["points"] for path in curves), key=len)
    assert len({y for x, y in curve if x == curve[0][0]}) == 1
    assert v8.call("(t) => modules.axes.onAxis(t.map((one) => ({ t: one })))", [0]) == [{"t": 0}]


def test_energy_never_falls_at_a_fixed_beta_alone():
    words = """(setting, betas) => {
      const engine = new modules.engine.Engine(setting);
      const frames = betas.map((beta, k) => {
        engine.set({ beta }, 0.1 * k);
        while (!engine.towards(0.1 * (k + 1)));
        return engine.frame(0.1 * (k + 1));
      });
      return modules.predict.predict(setting, frames, 1).words.energy;
    }"""
    fixed, changed = (v8.call(words, setting(n=12, tol=1e-4), betas) for betas in ([9, 9, 9], [9, 9, 4]))
    assert fixed.startswith("E never falls at a fixed β.")
    assert changed == f"{fixed} Dotted: β changed, and E depends on β."


def test_times_beyond_numbers_are_written_as_powers():
    assert v8.call("modules.axes.shownExp", 140 * np.log(10) * (1 + 1e-12)) == "10¹⁴⁰"
    assert v8.call("modules.axes.shownExp", 400 * np.log(10) + np.log(2.5)) == "2.5·10⁴⁰⁰"
    for value in (1.2e5, 3e40, 9.96e299):
        assert v8.call("modules.axes.shownExp", np.log(value)) == v8.call("(value) => modules.axes.shown(value)", value)


def test_every_panel_has_words_whatever_the_setting():
    panels = v8.call("() => modules.save.PANELS.map((one) => one[0])")
    for change in (
        {},
        {"causal": True},
        {"value": [-1, 0, 0, 0, -1, 0, 0, 0, -1]},
        {"kappa": 0.1},
        {"d": 2, "beta": 30.0},
    ):
        found = v8.call(
            """(setting) => {
              const engine = new modules.engine.Engine(setting);
              const frames = [0, 0.2].map((t) => { while (!engine.towards(t)); return engine.frame(t); });
              return modules.predict.predict(setting, frames, 1);
            }""",
            setting(tol=1e-4) | change,
        )
        assert all(found["words"][name] for name in panels)
        assert (found["fastest"] is not None) == (not change.get("causal") and "value" not in change)


def test_marks_of_an_axis_read_differently_and_words_at_one_place_are_one_label():
    drawn = """(low, high) => {
      const texts = [];
      const pen = { path() {}, text: (x, y, words) => texts.push(words) };
      modules.axes.valueAxis(pen, modules.axes.inner(300, 180), low, high, {});
      return texts;
    }"""
    for low, high in ((-0.01182, -0.01169), (-0.2, 0.01), (0, 0), (2, 2.001)):
        marks = v8.call(drawn, low, high)
        assert len(set(marks)) == len(marks)
    labels = """() => {
      const texts = [];
      const pen = { text: (x, y, words) => texts.push(words) };
      const frame = { positions: [1, 0, 1, 0, -1, 0, Math.cos(0.01), Math.sin(0.01)] };
      const what = { setting: { d: 2, n: 4 }, frame, eye: {}, colours: {}, labels: ["a", "b", "c", "a"] };
      modules.sphere.drawLabels(pen, 400, 400, what);
      return texts;
    }"""
    assert v8.call(labels) == ["a b", "c"]


def test_painted_points_take_the_place_of_those_of_the_beginning():
    state = v8.call("modules.state.parsed", "#start=points&space=circle")
    first = v8.call("modules.state.withPoints", state, [[0, 1, 0], [1, 0, 0]])
    assert first == "1571,0"
    assert v8.call("modules.state.withPoints", state | {"points": first}, [[0, -1, 0]]) == "1571,0,-1571"


def test_lines_of_python_repeat_the_flow(tmp_path):
    """With a change of beta: the engine and the library agree to the accuracy of both, 1e-6 after the growth by e^5."""
    state = v8.call("modules.state.parsed", "#n=24&seed=3&zipf=0.5&beta=4&then=1:9&mask=causal&accuracy=1e-8")
    lines = v8.call("modules.save.toPython", state, 2, False)
    assert len(lines.splitlines()) <= 14
    scope = {}
    with contextlib.chdir(tmp_path):
        exec("\n".join(line for line in lines.splitlines() if "plot" not in line), scope)
    got = v8.call(
        """(setting, beta) => {
          const engine = new modules.engine.Engine(setting);
          while (!engine.towards(1));
          engine.set({ beta }, 1);
          while (!engine.towards(2));
          return engine.stepper.at(2);
        }""",
        setting(seed=3, zipf=0.5, beta=4.0, causal=True),
        9.0,
    )
    np.testing.assert_allclose(np.reshape(got, (24, 3)), scope["tokens"].positions, atol=1e-6)
    for hash_ in ("#start=ring&space=circle&noise=0.1", "#value=1,0,0,0,1,0,0,0,-1&model=USA0"):
        ast.parse(v8.call("modules.save.toPython", v8.call("modules.state.parsed", hash_), 5, False))


def test_a_second_start_of_the_same_setting_is_the_same_flow():
    first, again = (v8.call(FLOW, setting(kappa=0.05, tol=1e-4), 0.4) for _ in range(2))
    assert first == again


@pytest.mark.slow
def test_the_recording_is_what_the_library_computes():
    """Times were rounded to four digits, angles to 2^-16 of a turn; solve_long itself is repeatable."""
    (times, turns), (fresh_times, fresh_turns) = staircase.stored(), staircase.recording()
    np.testing.assert_allclose(times, fresh_times, rtol=1e-3)
    differences = (turns - fresh_turns + 2**15) % 2**16 - 2**15
    assert np.abs(differences).max() <= 1
