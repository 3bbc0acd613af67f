"""The page from this machine: its files by the standard library and, with the extra `lab`, an engine in Python.

Files and the WebSocket at /socket share one port. The socket asks for the token that is in the address of the page, and
every request for a Host of its own; pages elsewhere can therefore neither read nor drive anything.
"""

import contextlib
import hmac
import http.server
import importlib.resources
import importlib.util
import mimetypes
import secrets
import socket
import threading
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attnflow.errors import InvalidInput
from attnflow.lab import limits
from attnflow.wording import shown

HEADERS = {
    "Content-Type": "text/plain; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer; a file of the page has its own type and policy."""
CONNECTIONS = 64
"""Connections without a client of the WebSocket at the same time; for one more the one that waits longest is closed."""
PATIENCE = 10.0
"""Seconds from the beginning of a request, or of the wait for one, to the end of its answer, however it comes."""
SOCKET = "/socket"


def policy(host: str) -> str:
    """The page loads its own files and connects to its own server alone."""
    return "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "worker-src 'self'",
            "img-src 'self' data: blob:",
            f"connect-src ws://{host}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )


def has_extra() -> bool:
    """Whether the package of the extra `lab` is installed."""
    return importlib.util.find_spec("websockets") is not None


class Server(http.server.ThreadingHTTPServer):
    """Serves the page on 127.0.0.1, on `port` or, with 0, on a free one; `serve_forever()` runs it.

    Arguments:
        port: the port; 0 takes a free one.
        runs: a run folder or a sweep, a folder of such, or a file of a stream: what the page may open.
        expose: another host of this machine to answer on; who knows the address of the page can use it.
        token: what the address of the page holds; random unless it is given.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, port: int = 0, *, runs: str | Path | None = None, expose: str | None = None, token: str | None = None
    ):
        folder = importlib.resources.files("attnflow.lab").joinpath("page")
        self.files = {f"/{file.name}": file.read_bytes() for file in folder.iterdir() if file.is_file()}
        self.files["/"] = self.files["/index.html"]
        scripts = sorted(path for path in self.files if path.endswith(".js"))
        self.preloads = ", ".join(f"<{path}>; rel=modulepreload" for path in scripts)
        """A header that lets the browser fetch all modules at once, rather than import after import."""
        self.runs = None if runs is None else Path(runs)
        if self.runs is not None and not self.runs.exists():
            raise InvalidInput(f"`runs` is {shown(str(runs))}, which does not exist; give a run folder.")
        if expose is not None and expose in ("", "0.0.0.0", "::", "*"):
            raise InvalidInput(f"`expose` is {shown(expose)}; name the one host under which the page is opened.")
        self.names = ["127.0.0.1", "localhost"] if expose is None else [expose]
        self.token = secrets.token_urlsafe(24) if token is None else token
        self.python = has_extra()
        self.waiting: dict[Any, float] = {}
        """Connections whose request is not answered, with the moments at which they began to wait, oldest first."""
        self.lock = threading.Lock()
        self.clients = threading.BoundedSemaphore(limits.CLIENTS)
        self.talks: set[Any] = set()
        try:
            super().__init__((self.names[0], port), _Handler)
        except (OSError, UnicodeError) as error:
            here = "" if expose is None else f" and `expose` {shown(expose)}"
            raise InvalidInput(f"`port` is {port}{here}, where no server can be: {error}; give another.") from None

    @property
    def address(self) -> str:
        """Where the page is; with the extra it holds the token, and the run that is shown first."""
        token = f"?token={self.token}" if self.python else ""
        single = self.runs is not None and limits.is_single(self.runs)
        run = f"#source=python&run={urllib.parse.quote(self.runs.name)}" if self.python and single and self.runs else ""
        return f"http://{self.names[0]}:{self.server_port}/{token}{run}"

    @property
    def hosts(self) -> list[str]:
        """What requests may call this server."""
        return [f"{name}:{self.server_port}" for name in self.names]

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for each connection; where too many wait, those that have waited longest make way."""
        self.wait_for(request)
        self.service_actions()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the requests of a connection, until one side has enough."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def service_actions(self) -> None:
        """Hang up on connections that take too long, and on the oldest where there are too many; their threads end.

        The server calls this after every connection and twice a second.
        """
        with self.lock:
            for request, began in list(self.waiting.items()):
                if len(self.waiting) <= CONNECTIONS and time.monotonic() - began <= PATIENCE:
                    break
                del self.waiting[request]
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def wait_for(self, request: Any) -> None:
        """Give a connection its time for the next request."""
        with self.lock:
            self.waiting.pop(request, None)
            self.waiting[request] = time.monotonic()

    def _leave(self, request: Any) -> None:
        """A connection waits no longer: it is closed, or belongs to a client."""
        with self.lock:
            self.waiting.pop(request, None)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Files by the standard library; a connection that asks for the socket is handed to `websockets`."""
        request.settimeout(PATIENCE)
        with contextlib.suppress(OSError):
            start = f"GET {SOCKET}".encode()
            if self.python and request.recv(len(start), socket.MSG_PEEK) == start:
                request.settimeout(None)
                self._talk(request)
            else:
                super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing is printed for a connection that broke."""

    def _talk(self, request: Any) -> None:
        """A WebSocket, for one client of few."""
        from attnflow.lab.clients import Client
        from attnflow.lab.websocket import CloseCode, Closed, WebSocket

        connection = WebSocket(request)
        with contextlib.suppress(Closed):
            if not connection.accept(self._why_not, HEADERS, PATIENCE):
                return
            if not self.clients.acquire(blocking=False):
                connection.close(CloseCode.TRY_AGAIN_LATER, f"the lab has {limits.CLIENTS} clients already")
                return
            self._leave(request)
            self.talks.add(connection)
            try:
                Client(connection, self.runs).talk()
            finally:
                self.talks.discard(connection)
                self.clients.release()

    def _why_not(self, asked: Any) -> str:
        """Why a WebSocket is refused: another Host, a page elsewhere, no token. Empty if it is not."""
        path, _, query = asked.path.partition("?")
        token = urllib.parse.parse_qs(query).get("token", [""])[0]
        host, origin = asked.headers.get_all("Host"), asked.headers.get_all("Origin")
        own = len(host) == 1 and host[0] in self.hosts and origin == [f"http://{host[0]}"]
        fine = path == SOCKET and own and hmac.compare_digest(token.encode(), self.token.encode())
        return "" if fine else "this socket is for the page of this server"

    def server_close(self) -> None:
        """Send all clients away; their processes end."""
        super().server_close()
        for connection in list(self.talks):
            connection.close(reason="the server has been closed")


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # of HTTP/0.9 answers have no headers
    timeout = PATIENCE

    def handle_one_request(self) -> None:
        """The next request of the connection, which has its time however it comes."""
        self.server.wait_for(self.connection)
        super().handle_one_request()

    def do_GET(self) -> None:
        """One of the files; a page elsewhere that points its own name at this machine is refused (DNS rebinding)."""
        path, hosts = self.path.partition("?")[0], self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            self._answer(403, b"this server answers to its own address alone\n")
        elif path not in self.server.files:
            self._answer(404, b"no such file\n")
        else:
            kind = "text/html" if path == "/" else mimetypes.guess_type(path)[0] or "application/octet-stream"
            headers = {
                "Content-Type": f"{kind}; charset=utf-8",
                "Content-Security-Policy": policy(hosts[0]),
                "Cache-Control": "private, max-age=60",  # the worker imports modules that the page has
                **({"Link": self.server.preloads} if kind == "text/html" else {}),
            }
            self._answer(200, self.server.files[path], headers)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request for a file with the name of the error, and end the connection."""
        self.close_connection = True
        phrase = http.HTTPStatus(code).phrase
        self._answer(code, b"" if self.command == "HEAD" else f"{phrase}\n".encode(), {"Connection": "close"})

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed for a request."""
