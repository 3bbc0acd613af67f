"""A small driver of Chromium over the DevTools protocol: pages, scripts, keys, screenshots, console messages."""

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--enable-unsafe-swiftshader",
]
PATIENCE = 120.0
"""Seconds after which a page that does not come to what a test waits for is given up."""


TESTS = tuple(
    Path(__file__).parents[1] / name for name in ("lab/test_page.py", "plots/test_player.py", "site/test_built.py")
)
LAB = "globalThis.lab && lab.facts().flows[0]?.t !== undefined"
"""The page of the lab shows tokens."""


def wanted():
    """Whether the tests of pages run: where a Chromium is found, or is required."""
    return found() is not None or os.environ.get("ATTNFLOW_BROWSER") == "required"


def found():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One tab. Console errors, exceptions and refused requests are collected in `errors`."""

    def __init__(self, socket):
        self.socket, self.numbers, self.errors, self.requests = socket, itertools.count(1), [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """The result of one method of the protocol; what happens meanwhile is noted."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=PATIENCE))
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._note(message)

    def _note(self, message):
        kind, params = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif kind == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif kind == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(str(params["args"]))
        elif kind == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def size(self, width, height, phone=False):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1 + phone, mobile=phone
        )

    def prefer(self, **features):
        """Media features, as prefers_color_scheme="dark"."""
        given = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=given)

    def open(self, address, ready=LAB):
        """Go to an address and wait until an expression holds there."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.until(ready)

    def ask(self, expression):
        """The value of an expression of JavaScript; promises are waited for."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def until(self, expression):
        """Wait until the expression holds."""
        self.wait(lambda: self.ask(f"Boolean({expression})"), expression)

    def wait(self, condition, words="a condition"):
        """Wait until a function says yes."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"waited in vain for {words}; errors: {self.errors}"
            time.sleep(0.05)

    def facts(self):
        return self.ask("lab.facts()")

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "")

    def drag(self, start, end):
        """The mouse from one point to another, in steps."""
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], button="left", clickCount=1)
        for k in range(1, 6):
            x, y = (a + (b - a) * k / 5 for a, b in zip(start, end, strict=True))
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="left", buttons=1)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], button="left", clickCount=1)

    def screenshot(self, path, whole=False):
        got = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(got["data"]))


@contextlib.contextmanager
def browser(*flags):
    """A page of a Chromium of its own, with a fresh profile."""
    from websockets.sync.client import connect

    assert found(), "ATTNFLOW_BROWSER asks for a browser, but there is no Chromium on the path"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [found(), *FLAGS, *flags, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
        try:
            port = _port(Path(profile) / "DevToolsActivePort", process)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                target = next(one for one in json.load(answer) if one["type"] == "page")
            with connect(target["webSocketDebuggerUrl"], max_size=None, compression=None) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            process.wait(10)


def _port(path, process):
    end = time.monotonic() + PATIENCE
    while not (path.exists() and path.read_text().strip()):
        assert process.poll() is None, "the browser ended"
        assert time.monotonic() < end, "the browser did not start"
        time.sleep(0.05)
    return int(path.read_text().split()[0])
