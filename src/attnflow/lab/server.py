"""The page from this machine: files of the page alone, to this machine alone, by the standard library."""

import http.server
import importlib.resources
import mimetypes
from typing import Any

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "worker-src 'self'",
        "img-src 'self' data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
"""The page loads its own files and connects to nothing."""


class Server(http.server.ThreadingHTTPServer):
    """Serves the page on 127.0.0.1, on `port` or, with 0, on a free one; `serve_forever()` runs it."""

    daemon_threads = True

    def __init__(self, port: int = 0):
        folder = importlib.resources.files("attnflow.lab").joinpath("page")
        self.files = {f"/{file.name}": file.read_bytes() for file in folder.iterdir() if file.is_file()}
        self.files["/"] = self.files["/index.html"]
        scripts = sorted(path for path in self.files if path.endswith(".js"))
        self.preloads = ", ".join(f"<{path}>; rel=modulepreload" for path in scripts)
        """A header that lets the browser fetch all modules at once, rather than import after import."""
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}/"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """One of the files; a page elsewhere that points its own name at this machine is refused (DNS rebinding)."""
        hosts = {f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost")}
        path = self.path.partition("?")[0]
        if self.headers.get("Host") not in hosts:
            self._answer(403, "text/plain", b"this server answers to its own address alone\n")
        elif path not in self.server.files:
            self._answer(404, "text/plain", b"no such file\n")
        else:
            kind = "text/html" if path == "/" else mimetypes.guess_type(path)[0] or "application/octet-stream"
            self._answer(200, kind, self.server.files[path])

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "private, max-age=60",  # the worker imports modules that the page has
        }
        if kind == "text/html":
            headers["Link"] = self.server.preloads
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed for a request."""
