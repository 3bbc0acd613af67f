"""One client of the lab: what it sends is checked and handed to a process of its own, which can always be ended."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from websockets.frames import CloseCode

from attnflow.errors import InvalidInput
from attnflow.lab import limits
from attnflow.lab.limits import checked_beta, read_message
from attnflow.lab.websocket import Closed, WebSocket
from attnflow.lab.worker import read_piece, write_piece

COMMAND = [sys.executable, "-m", "attnflow.lab.worker"]
"""The process of a client."""
LOOK = 0.25
"""Seconds between two looks at the clock."""


class Client:
    """The talk with one page over a WebSocket."""

    def __init__(self, socket: WebSocket, root: Path | None):
        self.socket, self.root = socket, root
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()
        self.start: str | None = None
        """The message of the work under way."""
        self.cancelled: float | None = None
        """When work that had begun was told to make way for other work."""
        self.credits: list[float] = []
        """When the credits were given that have not been answered."""
        self.began: float | None = None
        """When work was asked for that has not begun."""
        self.number: Any = None
        """Of the work that was asked for last."""
        self.heard = time.monotonic()

    def talk(self) -> None:
        """Until one side leaves; nothing is left running then."""
        try:
            while True:
                if (message := self.socket.receive(LOOK)) is not None:
                    self._take(message)
                self._look()
        except Closed:
            pass
        except InvalidInput as refused:
            self.socket.close(CloseCode.POLICY_VIOLATION, str(refused))
        finally:
            with self.lock:
                self._end()

    def _take(self, text: Any) -> None:
        """A message of the page: one of four, in JSON."""
        self.heard = time.monotonic()
        message = read_message(text)
        with self.lock:
            if "start" in message:
                self.cancelled = self.heard if self.start is not None and self.began is None else None
                self.start, self.credits, self.began = text, [], self.heard
                self.number = message["start"].get("number")
            elif "credit" in message:
                if self.start is None:
                    return  # the work ended while this credit was under way
                self.credits.append(self.heard)
                if len(self.credits) > limits.CREDITS:
                    raise InvalidInput(f"more than {limits.CREDITS} frames asked for at a time")
                text = '{"credit": 1}'
            elif "set" in message:
                beta = checked_beta(message["set"].get("beta"))
                if self.start is None:
                    return
                text = json.dumps({"set": {"beta": beta}})
            self._hand_over(text)

    def _hand_over(self, text: str) -> None:
        if self.process is None:
            self._begin()
        assert self.process is not None
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            write_piece(self.process.stdin, b"T", text.encode())

    def _begin(self) -> None:
        command = [*COMMAND, *([] if self.root is None else [str(self.root)])]
        environment = dict(os.environ, ATTNFLOW_PROGRESS="off")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        threading.Thread(target=self._relay, args=[self.process], daemon=True).start()

    def _relay(self, process: subprocess.Popen[bytes]) -> None:
        """What the process says goes to the page; when it ends by itself, that is said too."""
        assert process.stdout is not None
        with contextlib.suppress(Closed, ValueError, OSError):
            while (piece := read_piece(process.stdout)) is not None:
                kind, content = piece
                with self.lock:
                    if process is not self.process:
                        return
                    self._note(kind, content)
                self.socket.send(content if kind == b"B" else content.decode())
            with self.lock:
                gone = process is self.process
                if gone:
                    self._end()
            if gone:
                self._complain("the process that computes has ended, perhaps for lack of memory; start again.")

    def _note(self, kind: bytes, content: bytes) -> None:
        """Keep count of what is owed. Whatever is said of work, the work before it has stopped or is just ending."""
        if kind == b"B":
            del self.credits[: self.began is None]
            return
        said = json.loads(content)
        if "forms" in said or "changed" in said:
            return
        self.cancelled = None
        if "stopped" in said or said.get("number") != self.number:
            return
        self.began = None
        if "begun" not in said:
            self.start, self.credits = None, []

    def _look(self) -> None:
        """Send away who is idle, end work that does not stop or takes too long."""
        now = time.monotonic()
        if now - self.heard > limits.IDLE:
            raise InvalidInput(f"no message in {limits.IDLE:g} seconds")
        with self.lock:
            stuck = self.cancelled is not None and now - self.cancelled > limits.CANCEL
            owed_since = min([*self.credits[:1], *([] if self.began is None else [self.began])], default=now)
            slow = now - owed_since > limits.PER_CREDIT
            if not stuck and not slow:
                return
            start, owed = self.start, len(self.credits)
            self._end()
            if stuck and start is not None:  # the new work in a new process
                self.start, self.credits, self.began = start, [now] * owed, now
                for text in (start, *['{"credit": 1}'] * owed):
                    self._hand_over(text)
        if slow and not stuck:
            self._complain(f"a frame took more than {limits.PER_CREDIT:g} seconds; choose something smaller.")

    def _complain(self, words: str) -> None:
        self.socket.send(json.dumps({"error": words}))

    def _end(self) -> None:
        """End the process, if there is one, and wait for it."""
        process, self.process = self.process, None
        self.start, self.cancelled, self.credits, self.began = None, None, [], None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
