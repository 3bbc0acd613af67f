"""Commands of the command line in this process; importing JAX anew for each would be most of the time."""

import contextlib
import io
import subprocess

from attnflow.cli import main
from tests.faults import environment, temporary_faults


def attnflow(*arguments, cwd, check=None, encoding="utf-8", **variables):
    """Run a command in a folder, on a terminal of an encoding, with further environment variables.

    The result has `returncode`, `stdout` and `stderr`; `check` is the exit code that must come.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2))
    code = 0
    with (
        contextlib.chdir(cwd),
        environment(**{"COLUMNS": "200"} | variables),
        temporary_faults() as faults,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        faults.replace("command line", ["attnflow", *arguments])
        faults.replace("keep compiled programs", lambda: None)  # for a process of one's own
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    printed, said = (stream.buffer.getvalue().decode(encoding) for stream in (out, err))
    if check is not None:
        assert code == check, said
    return subprocess.CompletedProcess(arguments, code, printed, said)
