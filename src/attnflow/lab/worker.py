"""The process of one client, `python -m attnflow.lab.worker [RUNS]`: messages come in, frames go out.

Both are pieces with a letter for their kind, T for text in JSON and B for a frame, and their length. In: {"forms": 1},
{"credit": 1}, {"set": {"beta": number}}, and {"start": what} with one of

    {"spec": table, "axes": axes, "then": [[t, beta], ...]}    work to carry out
    {"run": name, "axes": axes, "at": [k, ...]}                a finished run, a stream, or a sweep and a point of it
    {"save": name, "spec": table} or {"save": name, "address": text}    a run folder to write

Out: {"forms": ..., "runs": names, "undrawn": {name: reason}}, {"begun": ...}, frames, one a credit,
{"changed": {"t": t, "beta": beta, "planned": whether it was in "then"}}, {"ended": words}, {"error": words},
{"stopped": 1} when work made way for other work. The process ends with its input.
"""

import contextlib
import json
import os
import struct
import sys
import threading
import traceback
from pathlib import Path
from typing import IO, Any

HEAD = struct.Struct("<cI")


def read_piece(stream: IO[bytes]) -> tuple[bytes, bytes] | None:
    """The next piece, None at the end."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    kind, length = HEAD.unpack(head)
    content = stream.read(length)
    return (kind, content) if len(content) == length else None


def write_piece(stream: IO[bytes], kind: bytes, content: bytes) -> None:
    """One piece, at once."""
    stream.write(HEAD.pack(kind, len(content)) + content)
    stream.flush()


class Worker:
    """Listens in a thread, works in the main one."""

    def __init__(self, root: Path | None, inward: IO[bytes], outward: IO[bytes]):
        self.root, self.inward, self.outward = root, inward, outward
        self.changed = threading.Condition()
        self.forms = False
        """Whether forms are asked for."""
        self.next: dict[str, Any] | None = None
        """The work that waits; of several, the last one."""
        self.credits = 0
        self.changes: Any = None
        """Of beta, while work is carried out that can go on at another one."""

    def listen(self) -> None:
        """Take messages until the input ends; then the process ends, whatever it is doing."""
        while (piece := read_piece(self.inward)) is not None:
            message = json.loads(piece[1])
            with self.changed:
                if "credit" in message:
                    self.credits += 1
                elif "forms" in message:
                    self.forms = True
                elif "set" in message:
                    if self.changes is not None and self.next is None:
                        self.changes.now = message["set"]["beta"]
                else:
                    self.next, self.credits = message["start"], 0
                self.changed.notify_all()
        os._exit(0)

    def is_cancelled(self) -> bool:
        """Whether other work waits."""
        return self.next is not None

    def say(self, **message: Any) -> None:
        """A message to the page."""
        write_piece(self.outward, b"T", json.dumps(message, allow_nan=False).encode())

    def give(self, frame: bytes) -> None:
        """A frame, when there is a credit for it."""
        from attnflow.interrupts import Cancelled
        from attnflow.lab.carried import Turn

        changes = self.changes
        with self.changed:
            self.changed.wait_for(lambda: self.credits or self.is_cancelled() or (changes and changes.now is not None))
            if self.is_cancelled():
                raise Cancelled
            if changes and (beta := changes.taken()) is not None:
                raise Turn(beta)
            self.credits -= 1
        write_piece(self.outward, b"B", frame)

    def serve(self) -> None:
        """One thing after the other."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.forms or self.next is not None)
                forms, self.forms = self.forms, False
                asked = None
                if not forms:
                    asked, self.next = self.next, None
            if asked is None:
                self.tell_forms()
            else:
                self.start(asked)

    def tell_forms(self) -> None:
        """Say what can be chosen: forms, the names of what can be opened, and why other folders cannot be drawn."""
        from attnflow.lab.forms import forms
        from attnflow.lab.sources import listed, why_not_drawn

        reasons = {name: why_not_drawn(path) for name, path in listed(self.root).items()}
        undrawn = {name: reason for name, reason in reasons.items() if reason}
        self.say(forms=forms(), runs=[name for name in reasons if name not in undrawn], undrawn=undrawn)

    def source(self, asked: dict[str, Any]) -> Any:
        """Where the frames come from that a message asks for."""
        from attnflow.lab.carried import Carried, Changes
        from attnflow.lab.saving import Saved
        from attnflow.lab.sources import chosen, opened
        from attnflow.lab.swept import opened_sweep

        axes, number = asked.get("axes"), asked.get("number")
        if "save" in asked:
            return Saved(asked, self.root, self.is_cancelled)
        if "run" not in asked:
            self.changes = Changes(asked.get("then", []))

            def changed(t: float, beta: float, planned: bool) -> None:
                self.say(changed={"t": t, "beta": beta, "planned": planned}, number=number)

            return Carried.of_table(asked.get("spec"), axes, self.is_cancelled, self.changes, changed)
        path = chosen(asked["run"], self.root)
        if (path / "sweep.json").is_file():
            return opened_sweep(path, axes, asked.get("at"), self.is_cancelled)
        return opened(path, axes)

    def start(self, asked: Any) -> None:
        """Stream what a message asks for."""
        from attnflow.errors import AttnflowError
        from attnflow.interrupts import Cancelled

        number = asked.get("number")
        try:
            ended = self.source(asked).stream(lambda facts: self.say(begun=facts, number=number), self.give)
        except Cancelled:
            self.say(stopped=1)
        except AttnflowError as error:
            self.say(error=str(error), number=number)
        except Exception as error:
            if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):  # the words of XLA
                self.say(error="there is not enough memory for this; choose something smaller.", number=number)
            else:  # a mistake of the library's: the client hears of it, and can go on
                traceback.print_exc()
                self.say(error=f"{type(error).__name__}: {error}", number=number)
        else:
            if self.is_cancelled():
                self.say(stopped=1)
            else:
                self.say(ended=ended, number=number)
        finally:
            self.changes = None


def _bound_memory() -> None:
    """Limit the memory of the process, where the system can."""
    from attnflow.lab.limits import MEMORY

    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def _keep_programs() -> None:
    """Find compiled programs on disk, where that is possible."""
    from attnflow.compilations import cache_compilations
    from attnflow.errors import AttnflowError

    with contextlib.suppress(AttnflowError):
        cache_compilations()


def main() -> None:
    """Serve one client by the standard streams; what anything prints goes to the error stream."""
    outward = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    worker = Worker(root, sys.stdin.buffer, outward)
    _bound_memory()
    _keep_programs()
    threading.Thread(target=worker.listen, daemon=True).start()
    worker.serve()


if __name__ == "__main__":
    main()
