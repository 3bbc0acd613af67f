"""One WebSocket over a connected socket; the protocol is that of the package websockets, without its sockets."""

import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from attnflow.errors import InvalidInput
from attnflow.lab import limits

SLOW = 30.0
"""Seconds that a client may take to receive what it is sent."""
REASON = 123
"""Bytes of the reason in a closing frame, by the protocol."""


class Closed(Exception):
    """The other side has left, or was sent away."""


class WebSocket:
    """Messages of a client, one after the other; sending is safe from several threads."""

    def __init__(self, connected: socket.socket):
        self.socket, self.protocol = connected, ServerProtocol(max_size=limits.MESSAGE)
        self.lock = threading.Lock()
        self.messages: deque[str | bytes] = deque()
        self.pieces: list[Frame] = []
        """The frames so far of a message that is not complete, `limits.PIECES` at most."""

    def accept(self, why_not: Callable[[Request], str], headers: Mapping[str, str], patience: float) -> bool:
        """Read the request and answer it; True if messages may follow.

        Arguments:
            why_not: gives the reason of a refusal, empty for none.
            headers: headers of a refusal.
            patience: seconds that the request may take, however it comes.
        """
        end = time.monotonic() + patience
        asked: list[Any] = []
        while not asked:
            if time.monotonic() > end or not self._wait(end - time.monotonic()) or not (data := self._received()):
                return False
            self.protocol.receive_data(data)
            if self.protocol.handshake_exc is not None:
                return False
            asked = [event for event in self.protocol.events_received() if isinstance(event, Request)]
        words = why_not(asked[0])
        answer = self.protocol.reject(403, f"{words}\n") if words else self.protocol.accept(asked[0])
        if answer.status_code != 101:
            for name, value in headers.items():
                answer.headers.pop(name, None)
                answer.headers[name] = value
        with self.lock:
            self.protocol.send_response(answer)
            self._flush()
        return self.protocol.state is OPEN

    def receive(self, timeout: float) -> str | bytes | None:
        """The next message; None if none comes in this time.

        Raises:
            Closed: if the other side has left.
            InvalidInput: if a message has too many frames.
        """
        end = time.monotonic() + timeout
        while not self.messages:
            left = end - time.monotonic()
            if left <= 0 or not self._wait(left):
                return None
            data = self._received()
            with self.lock:
                self.protocol.receive_data(data) if data else self.protocol.receive_eof()
                for event in self.protocol.events_received():
                    self._take(event)
                self._flush()
            if not self.messages and self.protocol.state is not OPEN:
                raise Closed
        return self.messages.popleft()

    def send(self, message: str | bytes) -> None:
        """One message."""
        with self.lock:
            if self.protocol.state is not OPEN:
                raise Closed
            if isinstance(message, str):
                self.protocol.send_text(message.encode())
            else:
                self.protocol.send_binary(message)
            self._flush()

    def close(self, code: int = CloseCode.GOING_AWAY, reason: str = "") -> None:
        """Say good-bye; a reason that is too long for the protocol is cut."""
        with self.lock, contextlib.suppress(Closed):
            if self.protocol.state is OPEN:
                self.protocol.send_close(code, reason.encode()[:REASON].decode(errors="ignore"))
                self._flush()

    def _take(self, event: Any) -> None:
        """Add a frame to its message; when the message is complete, it waits in `messages`.

        The protocol bounds the size of a message. The number of its frames is bounded here: empty ones have no size.
        """
        if not isinstance(event, Frame) or event.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        self.pieces.append(event)
        if len(self.pieces) > limits.PIECES:
            raise InvalidInput(f"a message in more than {limits.PIECES} frames")
        if event.fin:
            whole = b"".join(bytes(piece.data) for piece in self.pieces)
            is_text = self.pieces[0].opcode is Opcode.TEXT
            self.pieces = []
            self.messages.append(whole.decode(errors="replace") if is_text else whole)

    def _wait(self, seconds: float) -> bool:
        return bool(select.select([self.socket], [], [], max(seconds, 0))[0])

    def _received(self) -> bytes:
        try:
            return self.socket.recv(65536)
        except OSError:
            return b""

    def _flush(self) -> None:
        """Send what the protocol has to say; an empty piece ends the connection."""
        try:
            self.socket.settimeout(SLOW)
            for data in self.protocol.data_to_send():
                if data:
                    self.socket.sendall(data)
                else:
                    self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            raise Closed from None
