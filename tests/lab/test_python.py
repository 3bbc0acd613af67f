"""The engine in Python: frames against credits, what is refused, and that nothing is left running."""

import contextlib
import io
import json
import os
import struct
import subprocess
import time

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import attnflow as af
from attnflow import lab, runs
from attnflow.lab.frames import pack
from attnflow.lab.worker import Worker, read_piece
from tests.faults import Faults
from tests.lab.serving import served
from tests.lab.v8 import call

SPEC = {
    "tokens": {"name": "uniform", "n": 24, "seed": 5, "space": {"name": "sphere", "dim": 5}},
    "field": {"name": "attention", "beta": 4.0},
    "solve": {"until": 2.0, "save": {"name": "evenly", "count": 20}},
}
PATIENCE = 120


def unpack(message):
    """What a frame says, with its arrays."""
    magic, length = struct.unpack("<4sI", message[:8])
    assert magic == b"AFL1"
    said, at = json.loads(message[8 : 8 + length]), 8 + length
    for name, kind, shape in said.pop("arrays"):
        assert kind in {"<f4", "<f8", "|u1", "<u2", "<u4", "<i2"}
        said[name] = np.frombuffer(message, kind, int(np.prod(shape)), at).reshape(shape)
        at += -(-said[name].nbytes // 8) * 8
    assert at == len(message)
    return said


def answered(root, **request):
    """Return what the engine says to a request for work, as one table, and the frames that it gives."""
    worker = Worker(root, io.BytesIO(), io.BytesIO())
    worker.credits = 10**6
    worker.start(request)
    return pieces(worker)


def offered(root):
    """Return the forms, the names of what can be opened, and what the engine says of other folders."""
    worker = Worker(root, io.BytesIO(), io.BytesIO())
    worker.tell_forms()
    return pieces(worker)[0]


def pieces(worker):
    """Return the messages of an engine as one table, and its frames."""
    worker.outward.seek(0)
    messages, frames = {}, []
    while piece := read_piece(worker.outward):
        kind, content = piece
        if kind == b"B":
            frames.append(unpack(content))
        else:
            messages |= json.loads(content)
    return messages, frames


def children():
    """Processes of engines that this one has started."""
    listed = subprocess.run(["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return [line for line in listed.stdout.splitlines() if "attnflow.lab.worker" in line]


def wait(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    runs.execute(runs.parse_spec(toml(SPEC)), folder / "done")
    (folder / "secret.txt").write_text("nobody reads this")
    with served(lab.Server(runs=folder)) as made, pytest.MonkeyPatch.context() as patch:
        Faults(patch).replace("seconds of work per frame", 3600.0)  # a busy machine is no failure
        yield made
    wait(lambda: not children())


def toml(table):
    import tomli_w

    return tomli_w.dumps(table)


@contextlib.contextmanager
def client(server, token=None, origin=None, host=None):
    port = server.server_port
    address = f"ws://127.0.0.1:{port}/socket?token={server.token if token is None else token}"
    headers = {} if host is None else {"Host": host}
    origin = f"http://127.0.0.1:{port}" if origin is None else origin
    with connect(address, origin=origin or None, additional_headers=headers, max_size=None, compression=None) as made:
        yield made


def start(socket, **asked):
    socket.send(json.dumps({"start": asked}))


def told(socket, *keys):
    """The next message with one of these keys; frames and others are passed over."""
    while True:
        message = socket.recv(timeout=PATIENCE)
        if isinstance(message, str) and set(json.loads(message)) & set(keys):
            return json.loads(message)


def test_a_flow_comes_frame_by_frame_and_makes_way_for_the_next(server):
    """Frames are those of the library; none comes without a credit; one process does one thing after the other."""
    with client(server) as socket:
        socket.send('{"forms": 1}')
        assert told(socket, "forms")["runs"] == ["done"]
        start(socket, spec=SPEC, axes=[0, 3, 4], number=1)
        facts = told(socket, "begun", "error")["begun"]
        assert (facts["n"], facts["d"], facts["shown"], facts["frames"]) == (24, 5, 3, 21)
        with pytest.raises(TimeoutError):
            socket.recv(timeout=0.5)
        found = []
        for _ in range(21):
            socket.send('{"credit": 1}')
            found.append(unpack(socket.recv(timeout=PATIENCE)))
        assert "reached t = 2" in told(socket, "ended", "error")["ended"]
        flow = af.runs.open_run(server.runs / "done")
        expected = flow.dataset["positions"].values[:, :, [0, 3, 4]]
        # float32 keeps 24 bits of numbers of size 1
        np.testing.assert_allclose([one["positions"] for one in found], expected, rtol=0, atol=2**-24)
        np.testing.assert_allclose([one["t"] for one in found], flow.dataset["time"].values, rtol=1e-12)
        np.testing.assert_allclose([one["energy"] for one in found], flow.dataset["energy"].values, rtol=1e-12)
        last = af.observe.clusters(flow.tokens(-1), scale=af.observe.cluster_scale(4.0))
        np.testing.assert_array_equal(found[-1]["labels"], last.labels)
        assert found[-1]["attention"].shape == (24, 24)

        start(socket, run="done", number=2)
        assert told(socket, "begun", "error")["number"] == 2
        socket.send('{"credit": 1}')
        again = unpack(socket.recv(timeout=PATIENCE))
        assert again["positions"].shape == (24, 3)
        assert again["energy"] == pytest.approx(found[0]["energy"], rel=1e-12)

        start(socket, spec=SPEC | {"tokens": {"name": "file", "path": "/etc/passwd"}}, number=3)
        assert "names a file" in told(socket, "error")["error"]
        for name in ("../done", "secret.txt", "/etc", "", 3):
            start(socket, run=name)
            assert "open one of done" in told(socket, "error")["error"]
        start(socket, spec=SPEC | {"field": {"name": "attention", "beta": "hot"}})
        assert "beta" in told(socket, "error")["error"]
        assert len(children()) == 1
    wait(lambda: not children())


@pytest.mark.parametrize(
    "change",
    [{"token": "x"}, {"origin": "http://evil.example"}, {"origin": ""}, {"host": "evil.example"}, {"token": ""}],
)
def test_pages_elsewhere_are_refused(server, change):
    with pytest.raises(InvalidStatus) as refused, client(server, **change):
        pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "message",
    ["nonsense", "[]", "{}", '{"open": 1}', '{"start": 1}', b"bytes", '{"credit": 1, "forms": 1}', "[" * 60000],
)
def test_what_is_no_message_ends_the_talk(server, message):
    with client(server) as socket:
        socket.send(message)
        with pytest.raises(ConnectionClosed) as ended:
            socket.recv(timeout=PATIENCE)
        assert ended.value.rcvd.code == 1008
    assert not children()


def test_many_clients_who_vanish_shout_and_ask_for_too_much(server):
    """A small load test: 50 clients; at most four are served, the page stays there, nothing is left running."""
    heavy = SPEC | {"tokens": SPEC["tokens"] | {"n": 20_000}, "solve": {"until": 1e6}}
    codes = []
    with contextlib.ExitStack() as stack:
        for k in range(50):
            socket = stack.enter_context(client(server))
            with contextlib.suppress(ConnectionClosed):
                if k % 12 == 0:
                    start(socket, spec=heavy)
                    socket.send('{"credit": 1}')
                elif k % 3:
                    socket.send("x" * (64 * 1024 + 1))
                else:
                    socket.send(os.urandom(1000))
                if k % 2:
                    socket.socket.close()  # without a word
                elif k % 12:
                    socket.recv(timeout=PATIENCE)
            if socket.protocol.close_rcvd:
                codes.append(socket.protocol.close_rcvd.code)
            assert len(children()) <= 4
    assert set(codes) >= {1008, 1009}
    wait(lambda: not children())
    wait(lambda: not server.talks)
    with client(server) as socket:
        start(socket, spec=SPEC | {"tokens": SPEC["tokens"] | {"n": 10**6}})
        assert "at most 100000" in told(socket, "error")["error"]


def test_work_that_does_not_stop_is_ended_with_its_process(server, faults):
    faults.replace("seconds until work is ended", 0.0)
    with client(server) as socket:
        heavy = SPEC | {"tokens": SPEC["tokens"] | {"n": 3000}, "solve": {"until": 1e6}}
        start(socket, spec=heavy, number=1)
        assert told(socket, "begun", "error")["number"] == 1
        first = server_workers()
        start(socket, run="done", number=2)
        assert told(socket, "begun", "error")["number"] == 2
        assert not set(server_workers()) & set(first)
        faults.replace("seconds of work per frame", -1.0)
        socket.send('{"credit": 1}')
        assert "took more than" in told(socket, "error")["error"]
    wait(lambda: not children())


def server_workers():
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return [line.split()[0] for line in listed.stdout.splitlines() if "attnflow.lab.worker" in line]


def test_densities_and_batches_are_shown():
    """A density is points with masses; of a batch the first member is shown, with its beta."""
    ring = {"name": "perturbed", "basis": {"name": "circle", "degree": 4}, "degree": 1, "amplitude": 0.1}
    cells = {"cells": {"name": "circle", "count": 32}, "density": ring, "field": SPEC["field"]}
    cells["evolve_cells"] = {"until": 0.1, "save": {"name": "evenly", "count": 1}}
    messages, (first, _) = answered(None, spec=cells)
    x, m = first["positions"].astype(float), first["masses"].astype(float)
    # the density 1 + 0.1 cos: its first moment is 0.1/2, cells of width 2 pi/32 shrink it by less than 1 - width^2/6
    assert first["order"] == pytest.approx(0.05, rel=(2 * np.pi / 32) ** 2 / 6)
    np.testing.assert_allclose(np.linalg.norm(m @ x), first["order"], rtol=1e-6)
    batch = SPEC | {"field": {"name": "attention", "beta": [9.0, 1.0]}, "solve": {"until": 0.1}}
    of_batch, frames = answered(None, spec=batch)
    last = frames[-1]
    assert last["beta"] == 9.0
    assert last["modes"][0] == pytest.approx(last["order"], rel=1e-6)  # float32; P_1 = <x, y>, so both are |sum m x|
    assert (messages["begun"]["kind"], of_batch["begun"]["kind"]) == ("density", "tokens")


def test_streams_are_opened_by_name_and_nothing_outside_the_folder(tmp_path):
    """Layers of a network as frames, words with them; links that lead out of the folder are not listed."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "runs"
    folder.mkdir()
    states = rng.normal(size=(3, 6, 9))
    af.probe.Stream(states, labels=list("abcdef")).save(folder / "net.npz")
    af.probe.Stream(states).save(tmp_path / "outside.npz")
    (folder / "link.npz").symlink_to(tmp_path / "outside.npz")
    (folder / "notes.txt").write_text("no stream")
    offers = offered(folder)
    assert (offers["runs"], offers["undrawn"]) == (["net.npz"], {})
    messages, frames = answered(folder, run="net.npz", axes=[0, 8])
    assert [messages["begun"][key] for key in ("labels", "d", "shown", "frames")] == [list("abcdef"), 9, 2, 3]
    unit = states / np.linalg.norm(states, axis=2, keepdims=True)
    # float32 keeps 24 bits of numbers of size 1
    np.testing.assert_allclose([one["positions"] for one in frames], unit[:, :, [0, 8]], rtol=0, atol=2**-24)
    assert "open one of net.npz" in answered(folder, run="../outside.npz")[0]["error"]
    assert "two or three" in answered(folder, run="net.npz", axes=[0, 0])[0]["error"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (3, "send a table"),
        ({"tokens": {"n": 10**5, "space": {"dim": 1000}}}, "coordinates"),
        ({"solve": {"save": {"count": 10**6}}}, "at most 100000"),
        ({"field": {"beta": float("inf")}}, "finite"),
        ({"tokens": {"name": "file", "path": "x"}}, "names a file"),
        ({"field": {"x": None}}, "`field.x` is null"),
    ],
)
def test_tables_are_refused_before_anything_is_built(table, words):
    messages, frames = answered(None, spec=table)
    assert words in messages["error"]
    assert (messages.keys(), frames) == ({"error", "number"}, [])


def test_forms_have_every_word_and_the_page_fills_them_in():
    """A form that is changed to each kind and word of it gives a table that specifications read."""
    found = offered(None)["forms"]
    assert {"attention", "total"} <= found["words"]["field"].keys()
    assert "file" not in found["words"]["tokens"]
    assert [one["name"] for one in found["kinds"]["solve"]][:3] == ["field", "tokens", "until"]
    for kind in ("solve", "solve_long"):
        spec = call("(f, s, k) => modules.forms.asKind(f, s, k)", found, SPEC, kind)
        assert runs.parse_spec(toml(spec)).kind == kind
    changed = call("(s) => modules.forms.changed(s, ['field', 'beta'], 7)", SPEC)
    assert changed == SPEC | {"field": {"name": "attention", "beta": 7}}
    assert [call("(t) => modules.forms.read(t)", text) for text in ("2.5", "[1, 2]", "mean", " ")] == [
        2.5,
        [1, 2],
        "mean",
        None,
    ]


def test_the_page_reads_frames_as_they_are_written():
    arrays = {
        "positions": np.arange(6, dtype="<f4").reshape(2, 3),
        "labels": np.array([1, 0], "<u2"),
        "radii": np.array([0.1, 0.1], "<f4"),
        "cluster_masses": np.array([0.5, 0.5], "<f4"),
        "centres": np.zeros((2, 3), "<f4"),
    }
    frame = pack({"t": 1.5, "count": 2, "condensed": True, "scale": 0.5, "energy": float("nan"), "beta": 4.0}, arrays)
    made = call(
        "(bytes) => new modules.frames.Unpacker({ n: 2, masses: null }).frame("
        "modules.frames.unpacked(Uint8Array.from(bytes).buffer))",
        list(frame),
    )
    assert made["positions"] == list(range(6))
    assert (made["t"], made["energy"], made["count"], made["names"]) == (1.5, None, 2, [1, 0])
    assert len(made["tree"]["births"]) == 2


def test_principal_coordinates_follow_the_tokens_without_jumps(tmp_path):
    """Columns stay orthonormal, and small random motions move what is seen by little.

    Float32 rounds what is seen by 2^-24 at most. The least squares that find the columns divide by singular values of
    the tokens, of size sqrt(300/7), so that a column is off by less than sqrt(300) 2^-24/5 = 2.1e-7, a product of two
    by less than 4.2e-7.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 7))
    x = x / np.linalg.norm(x, axis=1, keepdims=True) + np.cumsum(0.02 * rng.normal(size=(21, 300, 7)), axis=0)
    af.probe.Stream(x).save(tmp_path / "walk.npz")
    seen = [frame["positions"] for frame in answered(tmp_path, run="walk.npz")[1]]
    for tokens, points in zip(x / np.linalg.norm(x, axis=2, keepdims=True), seen, strict=True):
        columns = np.linalg.lstsq(tokens, points)[0]
        np.testing.assert_allclose(columns.T @ columns, np.eye(3), atol=1e-6)
    # without a rotation to the columns before them some axes flip, which moves tokens by 0.67 on average; with it 0.045
    assert np.abs(np.diff(seen, axis=0)).mean(axis=(1, 2)).max() < 0.5


def test_sizes_of_degrees_are_those_of_the_page(tmp_path):
    """Two routes: zonal functions of overlaps, and sums over harmonics (float32 of both: 2^-23 of numbers up to 1)."""
    for d in (2, 3):
        tokens = af.uniform(af.Sphere(d), n=40, seed=1)
        x = np.asarray(tokens.positions)
        af.probe.Stream([x, x]).save(tmp_path / f"{d}.npz")
        own = answered(tmp_path, run=f"{d}.npz")[1][0]["modes"]
        page = call("(x, d, n) => modules.observe.modes(x, new Array(n).fill(1 / n), d, 12)", x.ravel().tolist(), d, 40)
        np.testing.assert_allclose(own, page, rtol=1e-6, atol=1e-7)
