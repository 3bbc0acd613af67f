"""Attacks on the server of the lab, each with its refusal; those on memory and by strange values start a process of the lab."""

import contextlib
import http.client
import json
import re
import resource
import socket
import sys
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from attnflow import lab
from attnflow.errors import InvalidInput
from tests.lab.serving import served
from tests.lab.test_python import PATIENCE, SPEC, children, client, server_workers, start, told, wait

KEYS = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"


@pytest.fixture(scope="module")
def server():
    with served(lab.Server()) as made:
        yield made


def raw(server, text, host="127.0.0.1"):
    """The first line of the answer to a request as it is."""
    with socket.create_connection((host, server.server_port), timeout=PATIENCE) as plug:
        plug.sendall(text.encode())
        with plug.makefile("rb") as answer:
            return answer.readline().decode().strip()


def code(sock):
    """How the server ended a talk."""
    while True:
        try:
            sock.recv(timeout=PATIENCE)
        except ConnectionClosed as ended:
            return ended.rcvd.code, ended.rcvd.reason


def test_handshakes_that_are_not_those_of_the_page(server):
    """Two hosts, no host, a host without its port, a page elsewhere, no page, another path, another token: 403."""
    own, token = server.hosts[0], server.token
    good = f"GET /socket?token={token} HTTP/1.1\r\nHost: {own}\r\nOrigin: http://{own}\r\n{KEYS}\r\n"
    assert raw(server, good) == "HTTP/1.1 101 Switching Protocols"
    wrong = {
        f"Host: {own}\r\n": ["", f"Host: {own}\r\nHost: evil.example\r\n", "Host: 127.0.0.1\r\n", "Host: [::1]\r\n"],
        f"Origin: http://{own}\r\n": [
            "",
            "Origin: null\r\n",
            f"Origin: https://{own}\r\n",
            f"Origin: http://{own}.evil.example\r\n",
        ],
        f"token={token}": ["", "token=", f"token={token}x", f"token={token[:-1]}", f"Token={token}"],
        "GET /socket?": ["GET /socket/?", "GET /socketx?", "POST /socket?"],
    }
    for part, others in wrong.items():
        for other in others:
            answer = raw(server, good.replace(part, other))
            assert answer.split()[1:2] in (["403"], ["400"], ["404"], ["501"], []), (other, answer)


def test_other_methods_and_pages_elsewhere_get_no_permission(server):
    """No CORS: a preflight is not answered with a permission, whatever its Origin."""
    for method in ("OPTIONS", "PUT", "DELETE", "POST", "HEAD"):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
        with contextlib.closing(connection):
            asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "GET"}
            connection.request(method, "/", headers=asked)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 501
            assert not [name for name, _ in answer.getheaders() if name.lower().startswith("access-control")]
    for path in ("/%2e%2e/server.py", "/....//server.py", "/main.js/..", "http://evil.example/", "/\\..\\server.py"):
        host = server.hosts[0]
        assert "404" in raw(server, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")


def test_policy_names_this_server_alone(server):
    connection = http.client.HTTPConnection(*server.server_address)
    with contextlib.closing(connection):
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read()
        policy = dict(part.strip().split(" ", 1) for part in answer.getheader("Content-Security-Policy").split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == f"ws://{server.hosts[0]}"
    assert policy["script-src"] == policy["worker-src"] == policy["style-src"] == "'self'"


def test_an_exposed_server_keeps_its_token_and_answers_to_one_name():
    """127.0.0.2 is another host of this machine; what is right for it is wrong for every other name."""
    with served(lab.Server(expose="127.0.0.2")) as server:
        port = server.server_port
        assert server.address.startswith(f"http://127.0.0.2:{port}/?token=")
        get = "GET / HTTP/1.1\r\nHost: {}\r\n\r\n"
        assert "200" in raw(server, get.format(f"127.0.0.2:{port}"), "127.0.0.2")
        for other in (f"127.0.0.1:{port}", f"localhost:{port}", "evil.example"):
            assert "403" in raw(server, get.format(other), "127.0.0.2")
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        address, origin = f"ws://127.0.0.2:{port}/socket?token=", f"http://127.0.0.2:{port}"
        for token, page in ((server.token[1:], origin), ("", origin), (server.token, f"http://127.0.0.1:{port}")):
            with pytest.raises(InvalidStatus), connect(address + token, origin=page):
                pass
        with connect(address + server.token, origin=origin) as socket_:
            socket_.send("[]")
            assert code(socket_)[0] == 1008
    for name in ("", "0.0.0.0", "::", "*"):
        with pytest.raises(InvalidInput, match="name the one host"):
            lab.Server(expose=name)


def test_clients_messages_credits_and_silence_are_bounded(server, faults):
    with contextlib.ExitStack() as stack:
        four = [stack.enter_context(client(server)) for _ in range(4)]
        wait(lambda: len(server.talks) == 4)
        with client(server) as fifth:
            assert code(fifth) == (1013, "the lab has 4 clients already")
        four[0].send("x" * 2**16)  # not too long, but no message
        assert code(four[0])[0] == 1008
        four[1].send("x" * (2**16 + 1))
        assert code(four[1])[0] == 1009
        with contextlib.suppress(ConnectionClosed):  # the server may hang up before the third piece is sent
            four[2].send(["x" * 40_000] * 3)  # one message in three pieces
        assert code(four[2])[0] == 1009
        idle = faults.replace("seconds until a silent client leaves", 0.0)
        assert code(four[3]) == (1008, "no message in 0 seconds")
        faults.replace("seconds until a silent client leaves", idle)
        wait(lambda: not server.talks)
        faults.replace("command of an engine", [sys.executable, "-c", "import time; time.sleep(999)"])
        with client(server) as greedy:
            start(greedy, spec=SPEC)
            with contextlib.suppress(ConnectionClosed):
                for _ in range(17):
                    greedy.send('{"credit": 1}')
            assert code(greedy)[0] == 1008
        for text in ('{"set": 3}', '{"set": {"beta": "hot"}}', '{"set": {"beta": 1e99}}', '{"set": {"beta": true}}'):
            with client(server) as wrong:
                start(wrong, spec=SPEC)
                wrong.send(text)
                assert code(wrong)[0] == 1008
    wait(lambda: not server.talks)


def in_pieces(socket_, text, count):
    """Send a message as `count` frames, of which all but the first and the last are empty."""
    socket_.send([text, *[""] * (count - 2)])  # `send` adds an empty last frame


def test_a_message_has_a_bounded_number_of_frames(server):
    """Empty frames have no size, so that the bound of the size of a message does not count them."""
    with client(server) as patient:
        for _ in range(3):  # frames of one message do not count for the next
            in_pieces(patient, '{"credit": 1}', 64)
        patient.send('{"set": {"beta": "' + "\u00e9" * 100 + '"}}')
        number, reason = code(patient)
        assert (number, len(reason.encode()) <= 123) == (1008, True)
        assert reason.startswith("`beta` is '\u00e9\u00e9")
    with client(server) as hasty:
        with contextlib.suppress(ConnectionClosed):  # the server may hang up before the last piece is sent
            in_pieces(hasty, '{"credit": 1}', 65)
        assert code(hasty) == (1008, "a message in more than 64 frames")
    wait(lambda: not server.talks)


NO_JSON = [
    "[" * 60_000,
    '{"start": {"number": ' + "[" * 900 + "]" * 900 + "}}",
    '{"start": {"number": ' + "9" * 60_000 + "}}",
    '{"start": {"number": 1, "number": NaN}}',
    '{"start": {}, "start": []}',
    '{"credit": 1, "set": {"beta": 1}}',
    *(f'{{"set": {{"beta": {beta}}}}}' for beta in ("NaN", "-Infinity", "1e999", "9" * 4000, "[" * 900 + "]" * 900)),
]


@pytest.mark.parametrize("message", NO_JSON, ids=range(len(NO_JSON)))
def test_what_json_cannot_hold_ends_the_talk_with_a_sentence(server, faults, message):
    faults.replace("command of an engine", ["no process is started"])
    with client(server) as socket_:
        socket_.send(message)
        ending, reason = code(socket_)
        assert ending == 1008
        assert reason
    wait(lambda: not server.talks)


def spec(**changes):
    """The specification SPEC as JSON, with entries of its field, tokens or work that are JSON already."""
    text = json.dumps(SPEC)
    for key, value in changes.items():
        assert f'"{key}": ' in text
        text = re.sub(rf'"{key}": [\d.]+', lambda _, key=key, value=value: f'"{key}": {value}', text)
    return text


NESTED = "[" * 400 + "]" * 400
STRANGE = [
    *(f'"spec": {spec(beta=beta)}' for beta in ("NaN", "Infinity", "1e999", "null", NESTED, f"[{'9' * 4000}]")),
    *(f'"spec": {spec(until=until)}' for until in ("NaN", "1e999", "9" * 4000)),
    *(f'"spec": {spec(seed=seed)}' for seed in ("NaN", "9" * 400, str(2**53 + 1))),
    f'"spec": {spec(n="1e999")}',
    f'"spec": {spec()[:-1]}, "name": "\\ud800"}}',
    f'"spec": {NESTED}',
    f'"spec": {spec()}, "spec": {{"probe": {{"network": "/etc/passwd", "texts": ["a b"]}}}}',
    *(f'"spec": {spec()}, "axes": {axes}' for axes in ("NaN", "[NaN, 0]", "[0, 1e999]", NESTED, f"[0, {'9' * 4000}]")),
    *(f'"spec": {spec()}, "then": {then}' for then in ("[[NaN, 1]]", "[[0, NaN]]", f"[[{'9' * 400}, 1]]", NESTED)),
    *(f'"run": {run}' for run in ("NaN", NESTED, '"/etc"')),
    f'"save": NaN, "spec": {spec()}',
]


def test_strange_values_are_refused_in_a_sentence_and_the_process_goes_on(server):
    """Numbers that JSON or an array cannot hold, deep lists, repeated keys: one process refuses them all."""
    with client(server) as socket_:
        for number, message in enumerate(STRANGE):
            socket_.send(f'{{"start": {{"number": {number}, {message}}}}}')
            answer = told(socket_, "error", "begun", "ended")
            assert answer.get("number") == number, (message[:80], answer)
            assert not re.search(r"Error:|has ended", answer["error"]), (message[:80], answer)
        socket_.send('{"forms": 1}')
        assert "solve" in told(socket_, "forms", "error")["forms"]["kinds"]
        assert len(children()) == 1
    wait(lambda: not children())


def is_served(server):
    host = server.hosts[0]
    return raw(server, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n") == "HTTP/1.1 200 OK"


@pytest.mark.slow
def test_slow_clients_keep_the_page_from_nobody(faults):
    """More of them than there are places: the oldest make way, whether they are silent or send a byte now and then."""
    faults.replace("connections that wait", 4)
    faults.replace("seconds of a request", 3600.0)
    with served(lab.Server()) as server, contextlib.ExitStack() as stack:
        slow = []
        for _ in range(3):
            for beginning in (b"", b"G", b"GET / HTTP/1.1\r\nHost:", f"GET /socket?token={server.token}".encode()):
                plug = socket.create_connection(server.server_address, timeout=PATIENCE)
                slow.append(stack.enter_context(plug))
                plug.sendall(beginning)
            assert is_served(server)
            wait(lambda: len(server.waiting) <= 4)
        for plug in slow[:-4]:
            with contextlib.suppress(ConnectionResetError):
                assert plug.recv(100) == b""


@pytest.mark.parametrize("beginning", ["", "GET / HTTP/1.1\r\nHost: ", "GET /socket?token="])
def test_the_time_of_a_request_is_that_of_all_its_bytes(faults, beginning):
    """A client that sends bytes often enough for every read is sent away all the same."""
    faults.replace("seconds of a request", 1.0)
    with served(lab.Server()) as server, socket.create_connection(server.server_address) as plug:
        plug.settimeout(0.05)
        plug.sendall(beginning.encode())
        end = time.monotonic() + PATIENCE / 4
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < end:
                with contextlib.suppress(TimeoutError):
                    assert plug.recv(100) == b""
                    break
                plug.sendall(b"x")
        assert time.monotonic() < end
        wait(lambda: not server.waiting)


def test_every_answer_has_a_policy_and_two_hosts_are_refused(server):
    own = server.hosts[0]
    token = f"GET /socket?token=x HTTP/1.1\r\nHost: {own}\r\n{KEYS}\r\n"
    requests = {
        200: f"GET / HTTP/1.1\r\nHost: {own}\r\n\r\n",
        404: f"GET /none HTTP/1.1\r\nHost: {own}\r\n\r\n",
        403: f"GET / HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n",
        501: f"POST / HTTP/1.1\r\nHost: {own}\r\n\r\n",
        400: "GET / HTTP/x\r\n\r\n",
        505: "GET / HTTP/2.0\r\n\r\n",
        414: f"GET /{'x' * 70_000} HTTP/1.1\r\n\r\n",
        431: f"GET / HTTP/1.1\r\nHost: {'x' * 70_000}\r\n\r\n",
    }
    for status, text in [*requests.items(), (403, requests[403].replace("GET / ", "GET /main.js ")), (403, token)]:
        with socket.create_connection(server.server_address, timeout=PATIENCE) as plug:
            plug.sendall(text.encode())
            with plug.makefile("rb") as stream:
                assert stream.readline().split()[1] == str(status).encode()
                headers = http.client.parse_headers(stream)
        policy = headers.get_all("Content-Security-Policy")
        assert len(policy) == 1
        assert policy[0].startswith("default-src 'none'; ")
        assert "unsafe" not in policy[0]
        assert headers.get_all("X-Content-Type-Options") == ["nosniff"]
        assert headers.get_all("Referrer-Policy") == ["no-referrer"]
        assert len(headers.get_all("Content-Type")) == 1
        assert status == 200 or headers["Content-Type"].startswith("text/plain")


NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "1.5", "true", '"1"', "[1]", str(2**53)]


@pytest.mark.parametrize("number", NUMBERS)
def test_flows_have_whole_numbers(server, faults, number):
    """NaN, which JSON cannot say, would go back to the page with the next message about the flow."""
    faults.replace("command of an engine", ["no process is started"])
    with client(server) as socket_:
        socket_.send(f'{{"start": {{"run": "x", "number": {number}}}}}')
        ending, reason = code(socket_)
        assert ending == 1008
        assert reason.startswith("`number` is ")
        assert reason.endswith("; send a whole number below 2^53")
    wait(lambda: not server.talks)


@pytest.mark.slow
def test_a_process_that_wants_too_much_memory_is_refused_it(server, faults):
    """With 300 MiB that the system leaves it, instead of 6 GiB: 10^7 coordinates are 80 MB, and work needs several copies of them."""
    faults.replace(
        "command of an engine", ["sh", "-c", f"ulimit -d {300 * 2**10}; exec {sys.executable} -m attnflow.lab.worker"]
    )
    faults.replace("seconds of work per frame", 3600.0)
    large = SPEC | {"tokens": {"name": "uniform", "n": 10**5, "seed": 0, "space": {"name": "sphere", "dim": 100}}}
    with client(server) as socket_:
        start(socket_, spec=large)
        assert "memory" in told(socket_, "error")["error"]
        assert len(server.talks) == 1  # the talk goes on
    wait(lambda: not server.talks)
    assert not children()


def test_an_engine_has_six_gibibytes(server):
    with client(server) as socket_:
        socket_.send('{"forms": 1}')
        told(socket_, "forms")
        (worker,) = server_workers()
        assert resource.prlimit(int(worker), resource.RLIMIT_DATA) == 2 * (6 * 2**30,)
    wait(lambda: not children())
