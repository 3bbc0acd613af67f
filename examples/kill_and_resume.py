"""A run with my own kernel: killed after its first checkpoint, resumed, opened and drawn."""

import os
import pathlib
import subprocess
import sys
import time

import attnflow as af

here = pathlib.Path(__file__).parent
attnflow = [sys.executable, "-m", "attnflow"]
plugin = ["--plugin", str(here / "own_kernel.py"), "--no-figures"]
size = f"tokens.n={32 if os.environ.get('ATTNFLOW_SMALL') else 512}"
first = subprocess.Popen([*attnflow, "run", str(here / "own_kernel.toml"), "--out", "gentle", "--set", size, *plugin])
while first.poll() is None and not os.path.exists("gentle/checkpoint"):
    time.sleep(0.05)
first.kill()
first.wait()
subprocess.run([*attnflow, "resume", "gentle", *plugin], check=True)
flow = af.open_run("gentle", plugins=[here / "own_kernel.py"])
print(flow)
flow.plot().savefig("kill_and_resume.png")
