"""A run with my own kernel: killed after its first checkpoint, resumed, opened and drawn.

The specification above names the kernel; the plugin says what it is. The run folder records the text and the hash of
the plugin.
"""

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

# %% [markdown]
# The run starts in a process of its own, which is killed as soon as there is a checkpoint. `attnflow resume` goes on
# from there, and the result is the same to the last bit as that of a run without interruption.

# %%
first = subprocess.Popen([*attnflow, "run", str(here / "own_kernel.toml"), "--out", "gentle", "--set", size, *plugin])
while first.poll() is None and not os.path.exists("gentle/checkpoint"):
    time.sleep(0.05)
first.kill()
first.wait()
subprocess.run([*attnflow, "resume", "gentle", *plugin], check=True)

# %% [markdown]
# `open_run` gives the same flow that `solve` would have returned.

# %%
flow = af.open_run("gentle", plugins=[here / "own_kernel.py"])
print(flow)
flow.plot().savefig("kill_and_resume.png")
