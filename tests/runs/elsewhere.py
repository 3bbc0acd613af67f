"""A run where Python has neither `fcntl` nor `resource` nor /proc, as on Windows: `python elsewhere.py FOLDER LOCKS`.

LOCKS is "system" (a lock that the system ends with its process, as `filelock` has on Windows too) or "file" (the mere
existence of a file, which `filelock` uses where there is nothing else).
"""

import itertools
import subprocess
import sys
import time
from pathlib import Path


def hide(event, arguments):
    if event == "open" and str(arguments[0]).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", arguments[0])


folder, locks, *hold = sys.argv[1:]
if locks == "system":
    import filelock  # noqa: F401 (it keeps the module that is hidden from all others)
sys.addaudithook(hide)
sys.modules.update(dict.fromkeys(("fcntl", "resource")))

from attnflow.errors import RunLocked  # noqa: E402
from attnflow.runs import Run, execute, list_runs, open_run, parse_spec, resume  # noqa: E402

TEXT = """
[tokens]
name = "uniform"
space = { name = "sphere", dim = 3 }
n = 6
[field]
name = "attention"
beta = 4.0
[solve]
until = 3.0
chunk = 1
save = { name = "evenly", count = 6 }
method = { name = "fixed", step = 0.25 }
"""


def refused(path):
    try:
        resume(path)
    except RunLocked as error:
        return "another process is writing" in str(error)
    return False


def main():
    path = Path(folder) / "run"
    calls = itertools.count()
    run, flow = execute(parse_spec(TEXT), path, cancel=lambda: next(calls) > 3)
    assert flow.outcome.ending.value == run.facts()["status"] == "interrupted"
    assert run.is_held() is False
    with run.lock():
        assert run.is_held() is True
        assert refused(path)
    holder = subprocess.Popen([sys.executable, __file__, folder, locks, "hold"], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        run.update(status="running")
        assert run.is_held() is True
        assert run.facts()["status"] == "running"
        assert refused(path)
    finally:
        holder.kill()
        holder.wait()
    assert run.is_held() is False
    assert run.facts()["status"] == "interrupted"
    run, flow = resume(path)
    assert flow.outcome.ending.value == run.facts()["status"] == "finished"
    assert run.manifest()["peak_memory"] == 0  # not known
    run.verify()
    assert open_run(path).positions.sizes["time"] == 7
    assert [found.path for found in list_runs(folder)] == [path]
    assert run.is_held() is False


if hold:
    with Run(Path(folder) / "run").lock():
        print("held", flush=True)
        time.sleep(600)
else:
    main()
