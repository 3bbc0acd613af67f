"""Does the server of the lab stay up under clients who misbehave? A few minutes on two cores; part of `make long`.

    python campaigns/lab.py                              50 clients at a time, 4 rounds
    python campaigns/lab.py --clients 10 --rounds 1 --record trial.json

The server runs as users start it, `attnflow lab FOLDER --no-open`. One good client follows a flow all the time. Beside
it many clients connect at once, again and again until they find a place: they start settings as heavy as the limits
allow and vanish without a word, replace one heavy setting by the next, send garbage, oversized messages in one and in
many pieces, deeply nested JSON, credits without end, half a handshake, handshakes of pages elsewhere, and paths out of
the folder. Meanwhile the page is fetched four times a second, and memory and processes are counted. It is a finding if
the page or a frame of the good client takes longer than `PATIENCE`, if there are more processes than clients, if memory
grows beyond its bounds, or if anything is left running in the end. Exit code 1 if there is one.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import logging
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import CloseCode
from websockets.sync.client import connect

import _record
from attnflow.lab import limits

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 30.0
"""Seconds for the page, or for a frame of the good client, on two busy cores; work per frame is bounded by 60."""
STUBBORN = 40.0
"""Seconds for which a client comes again while there is no place for it."""
SERVER = 400 * 2**20
"""Bytes of the server itself, at most."""
MARK = "ATTNFLOW_LAB_CAMPAIGN"
GOOD = {
    "tokens": {"name": "uniform", "n": 64, "seed": 1, "space": {"name": "sphere", "dim": 3}},
    "field": {"name": "attention", "beta": 9.0},
    "solve": {"until": 1e4, "save": {"name": "evenly", "count": 100_000}},
}


def heavy(chance: random.Random) -> dict[str, Any]:
    """A setting near the limits: many tokens, many coordinates, or many members."""
    n, d, beta = chance.choice(
        [(100_000, 3, 400.0), (100_000, 100, 9.0), (3_000, 1_000, 1.0), (20_000, 3, [1.0, 9.0, 25.0])]
    )
    tokens = {"name": "uniform", "n": n, "seed": 0, "space": {"name": "sphere", "dim": d}}
    return {"tokens": tokens, "field": {"name": "attention", "beta": beta}, "solve": {"until": 1e6}}


class Attackers:
    """What clients do who mean no good; each is a method that takes the source of chance."""

    def __init__(self, address: str):
        self.port = int(re.findall(r":(\d+)/", address)[0])
        self.host = f"127.0.0.1:{self.port}"
        self.token = address.partition("token=")[2].partition("#")[0]

    def open(self, **other: Any) -> Any:
        """A socket as the page opens it, but for what is `other`."""
        how = {"token": self.token, "origin": f"http://{self.host}", "max_size": None, "compression": None, **other}
        return connect(f"ws://{self.host}/socket?token={how.pop('token')}", **how)

    def vanish(self, chance: random.Random) -> None:
        """Heavy work, and gone without a word."""
        with self.open() as sock:
            sock.send(json.dumps({"start": {"spec": heavy(chance)}}))
            sock.send('{"credit": 1}')
            time.sleep(chance.uniform(0, 4))
            sock.send('{"credit": 1}')
            sock.socket.close()

    def replace(self, chance: random.Random) -> None:
        """One heavy setting after the other."""
        with self.open() as sock:
            for k in range(5):
                sock.send(json.dumps({"start": {"spec": heavy(chance), "number": k}}))
                sock.send('{"credit": 1}')
                time.sleep(chance.uniform(0, 1))

    def garbage(self, chance: random.Random) -> None:
        """What is no message."""
        with self.open() as sock:
            sock.send(
                chance.choice([chance.randbytes(1000), "[" * 60_000, '{"start": {"spec": ', "null", '{"save": 1}'])
            )
            sock.recv(timeout=PATIENCE)

    def oversized(self, chance: random.Random) -> None:
        """More than a message may hold, in one piece or in many."""
        whole = "x" * chance.randint(limits.MESSAGE + 1, 40 * limits.MESSAGE)
        with self.open() as sock:
            sock.send(whole if chance.random() < 0.5 else [whole[k : k + 30_000] for k in range(0, len(whole), 30_000)])
            sock.recv(timeout=PATIENCE)

    def greedy(self, chance: random.Random) -> None:
        """Credits without end."""
        with self.open() as sock:
            sock.send(json.dumps({"start": {"spec": GOOD}}))
            for _ in itertools.count():
                sock.send('{"credit": 1}')

    def elsewhere(self, chance: random.Random) -> None:
        """A page of another server, or one without the token."""
        other: dict[str, Any] = chance.choice(
            [{"token": "x"}, {"origin": "http://evil.example"}, {"additional_headers": {"Host": "evil.example"}}]
        )
        with self.open(**other):
            raise AssertionError(f"a page elsewhere was let in: {other}")

    def half(self, chance: random.Random) -> None:
        """A handshake that does not come to its end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as plug:
            plug.sendall(b"GET /socket?token=" + b"x" * chance.randint(0, 500))
            time.sleep(chance.uniform(0, 3))

    def outside(self, chance: random.Random) -> None:
        """Files outside the folder, by the page and by the socket."""
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", chance.choice(["/../server.py", "/%2e%2e/server.py", "//etc/passwd"]))
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 404, answer.status
        with self.open() as sock:
            asked = chance.choice([{"run": "../secret"}, {"save": "../secret", "spec": GOOD}, {"run": "/etc"}])
            sock.send(json.dumps({"start": asked}))
            assert "error" in str(sock.recv(timeout=PATIENCE))


KINDS = ("vanish", "replace", "garbage", "oversized", "greedy", "elsewhere", "half", "outside")


class Watch:
    """What is measured while the clients do what they do."""

    def __init__(self, server: subprocess.Popen[str], port: int):
        self.server, self.port, self.over = server, port, threading.Event()
        self.page: list[float] = []
        self.workers: list[int] = []
        self.memory: list[tuple[int, int]] = []
        """Bytes of the server, and of the largest of its processes."""
        self.findings: list[str] = []

    def look(self) -> None:
        """Fetch the page and count, until it is over."""
        while not self.over.wait(0.25):
            begin = time.perf_counter()
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
                with contextlib.closing(connection):
                    connection.request("GET", "/")
                    assert connection.getresponse().read().startswith(b"<!doctype html>")
                self.page.append(time.perf_counter() - begin)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                self.findings.append(f"the page was not served: {error!r}")
            own = [resident(pid) for pid in processes() if pid != self.server.pid]
            self.workers.append(len(own))
            self.memory.append((resident(self.server.pid), max(own, default=0)))


def processes() -> list[int]:
    """The server and everything that it started, whoever is its parent now."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}=".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int((Path("/proc") / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def follow(attackers: Attackers, over: threading.Event, waits: list[float], findings: list[str]) -> None:
    """The good client: a frame now and then."""
    try:
        with attackers.open() as sock:
            sock.send(json.dumps({"start": {"spec": GOOD}}))
            assert "begun" in str(sock.recv(timeout=4 * PATIENCE))
            while not over.wait(0.2):
                begin = time.perf_counter()
                sock.send('{"credit": 1}')
                assert isinstance(sock.recv(timeout=2 * PATIENCE), bytes)
                waits.append(time.perf_counter() - begin)
    except (OSError, AssertionError, WebSocketException) as error:
        findings.append(f"the good client lost its flow: {error!r}")


def attack(attackers: Attackers, kind: str, seed: int, counts: Counter[str], findings: list[str]) -> None:
    """What one client does; it comes again while there is no place for it."""
    action: Callable[[random.Random], None] = getattr(attackers, kind)
    end = time.monotonic() + STUBBORN
    while True:
        try:
            action(random.Random(seed))
        except ConnectionClosed as error:
            if error.rcvd is not None and error.rcvd.code == CloseCode.TRY_AGAIN_LATER and time.monotonic() < end:
                counts["no place"] += 1
                time.sleep(0.3)
                continue
            counts[f"{kind}: {'gone' if error.rcvd is None else error.rcvd.code}"] += 1
        except (OSError, WebSocketException, http.client.HTTPException) as error:
            counts[f"{kind}: {type(error).__name__}"] += 1
        except Exception as error:
            findings.append(f"{kind}: {error!r}")
        else:
            counts[f"{kind}: done"] += 1
        return


def campaign(clients: int, rounds: int, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "runs").mkdir()
        command = [sys.executable, "-m", "attnflow", "lab", str(Path(folder) / "runs"), "--no-open"]
        environment = {**os.environ, MARK: "1"}
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert server.stdout is not None
        attackers = Attackers(server.stdout.readline().strip())
        watch, waits, counts = Watch(server, attackers.port), list[float](), Counter[str]()
        looking = threading.Thread(target=watch.look)
        following = threading.Thread(target=follow, args=[attackers, watch.over, waits, watch.findings])
        begin = resident(server.pid)
        looking.start()
        following.start()
        while len(waits) < 5 and following.is_alive():
            time.sleep(0.1)
        waits.clear()  # the first ones waited for compilers
        for k in range(rounds):
            some = [
                threading.Thread(
                    target=attack,
                    args=[attackers, KINDS[j % len(KINDS)], seed + k * clients + j, counts, watch.findings],
                )
                for j in range(clients)
            ]
            for one in some:
                one.start()
            for one in some:
                one.join()
        quiet = time.monotonic()
        while len(processes()) > 2 and time.monotonic() - quiet < PATIENCE:
            time.sleep(0.1)
        if len(processes()) > 2:
            watch.findings.append(f"{len(processes()) - 2} processes of clients who had left were still there")
        ended = time.monotonic() - quiet
        watch.over.set()
        looking.join()
        following.join()
        end = resident(server.pid)
        server.send_signal(signal.SIGINT)
        code = server.wait(PATIENCE)
        server.stdout.close()
        written = [one.name for one in (Path(folder) / "runs").iterdir()] + [one.name for one in Path(folder).iterdir()]
    left = processes()
    most = max(watch.workers, default=0)
    largest = [max(column) for column in zip(*watch.memory, strict=True)]
    for wrong, words in (
        (bool(left), f"left running: {left}"),
        (most > limits.CLIENTS, f"{most} processes for {limits.CLIENTS} clients"),
        (largest[0] > SERVER, f"the server took {largest[0]} bytes"),
        (largest[1] > limits.MEMORY, f"a process took {largest[1]} bytes"),
        (max(watch.page) > PATIENCE or max(waits) > PATIENCE, "an answer took too long"),
        (code not in (0, 128 + signal.SIGINT), f"the server ended with {code}"),
        (written != ["runs"], f"files were written: {written}"),
    ):
        if wrong:
            watch.findings.append(words)
    return {
        "clients": clients,
        "rounds": rounds,
        "counts": dict(sorted(counts.items())),
        "page, s": spread(watch.page),
        "frame of the good client, s": spread(waits),
        "processes": most,
        "last process ended after, s": round(ended, 2),
        "server, MiB": {"begin": mebi(begin), "most": mebi(largest[0]), "end": mebi(end)},
        "largest process, MiB": mebi(largest[1]),
        "load": os.getloadavg()[1],
        "findings": watch.findings,
    }


def spread(seconds: list[float]) -> dict[str, float]:
    found = {"count": len(seconds), "median": statistics.median(seconds), "most": max(seconds)}
    return {name: round(value, 4) for name, value in found.items()}


def mebi(size: int) -> int:
    return round(size / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    logging.disable()  # sockets that were closed on purpose
    path, record = _record.begin(ROOT, "lab", given.record, seed=given.seed)
    record |= campaign(given.clients, given.rounds, given.seed)
    _record.save(record, path)
    print(json.dumps({key: value for key, value in record.items() if key != "source"}, indent=1))
    raise SystemExit(bool(record["findings"]))


if __name__ == "__main__":
    main()
