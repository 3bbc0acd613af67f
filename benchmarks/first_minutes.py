"""CPU seconds of what a new user does first, each in a fresh process: cold, and with programs compiled before.

`python benchmarks/first_minutes.py [ROW ...] [--checkout DIR]` prints a table; a row is chosen by part of its name, and
another checkout of attnflow is measured with --checkout. CPU seconds of the process and its threads, user and system,
mean something on a busy machine too. Programs are kept as `attnflow.cache_compilations` keeps them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

START = """
import time
began = time.process_time()
def lap(name):
    global began
    now = time.process_time()
    print(f"LAP {name}: {now - began:.2f}")
    began = now
import numpy as np, attnflow as af
"""
TEN_LINES = (
    START
    + """
tokens = af.uniform(af.Sphere(3), n=2_000, seed=0)
field = af.Attention(beta=9.0)
field.velocity(tokens)
lap("import, tokens, velocity")
flow = af.solve(field, tokens, until=40.0)
lap("solve")
flow.clusters()
lap("clusters")
af.theory.uniform.growth_rates(beta=9.0, d=3)
af.plot(flow).savefig("flow.pdf")
lap("plot")
"""
)
FRAME = (
    START
    + """
tokens = af.uniform(af.Sphere(3), n=1_000, seed=0)
field = af.Attention(9.0, sum=af.sums.Tiled())
def seconds(frames):
    af.solve(field, tokens, 3.0, save=frames)
    before = time.process_time()
    flow = af.solve(field, tokens, 3.0, save=frames)
    return time.process_time() - before, sum(flow.steps.values())
few, steps = seconds(8)
many, _ = seconds(200)
print(f"LAP one field of n = 1,000: {few / steps / 13:.4f}")
print(f"LAP one frame: {(many - few) / 192:.4f}")
"""
)
LAYER = (
    START
    + """
tokens = af.uniform(af.Sphere(576), n=255, seed=0)
for name, call in (("clusters", lambda: af.observe.clusters(tokens, scale=0.3)),
                   ("effective_rank", lambda: af.observe.effective_rank(tokens))):
    call()
    before = time.process_time()
    for _ in range(5):
        call()
    print(f"LAP {name} of a layer, after the first: {(time.process_time() - before) / 5:.4f}")
"""
)
SPEC = """
name = "eight"
[tokens]
name = "uniform"
n = 8
space = { name = "sphere", dim = 3 }
[field]
name = "attention"
beta = 2.0
[solve]
until = 1.0
"""
COMMAND = "from attnflow.cli import main; main()"
ROWS = {
    "README's ten lines (without animate)": ["-c", TEN_LINES],
    "one saved frame": ["-c", FRAME],
    "clusters and effective_rank, n = 255, d = 576": ["-c", LAYER],
    "attnflow run, 8 tokens to t = 1": ["-c", COMMAND, "run", "eight.toml", "--out", "eight"],
    "attnflow list": ["-c", COMMAND, "list"],
    "attnflow presets": ["-c", COMMAND, "presets"],
    "attnflow experiments": ["-c", COMMAND, "experiments"],
}


def measure(arguments: list[str], checkout: Path, cache: Path) -> tuple[float, list[str]]:
    """CPU seconds of one process in an empty folder, and the times it printed."""
    kept = {
        "JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0", "EQX_ON_ERROR": "nan",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "eight.toml").write_text(SPEC)
        before = os.times()
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, cwd=folder,
            env=os.environ | kept | {"PYTHONPATH": str(checkout / "src")},
        )  # fmt: skip
        after = os.times()
    if done.returncode:
        sys.exit(f"{arguments[-1]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return used, [line.removeprefix("LAP ") for line in done.stdout.splitlines() if line.startswith("LAP ")]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="parts of names of rows; all if left out")
    parser.add_argument("--checkout", type=Path, default=Path(__file__).resolve().parents[1])
    given = parser.parse_args()
    print("| CPU seconds | cold | compiled before |\n|---|---|---|")
    for name, arguments in ROWS.items():
        if given.rows and not any(part in name for part in given.rows):
            continue
        with tempfile.TemporaryDirectory() as cache:
            (cold, first), (warm, second) = (measure(arguments, given.checkout.resolve(), Path(cache)) for _ in "ab")
        print(f"| {name} | {cold:.2f} | {warm:.2f} |")
        for a, b in zip(first, second, strict=True):
            part, seconds = a.rsplit(": ", 1)
            print(f"| – {part} | {seconds} | {b.rsplit(': ', 1)[1]} |", flush=True)


if __name__ == "__main__":
    main()
