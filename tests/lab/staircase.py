"""The recording of the page, made by the library: python -m tests.lab.staircase writes page/staircase.js anew."""

import base64
import json
from pathlib import Path

import numpy as np

import attnflow as af
from attnflow import lab

FILE = Path(lab.__file__).parent / "page" / "staircase.js"
BETA, TOKENS, SEED, TURN = 25.0, 32, 3, 65536
MOST = 1e290
"""Later times have no number in JavaScript."""


def recording():
    """Times and angles of tokens on the circle, from the start to consensus; angles as whole parts of a turn."""
    flow = af.solve_long(af.Attention(beta=BETA), af.uniform(af.Sphere(2), n=TOKENS, seed=SEED))
    data = flow.dataset
    x = data["positions"].transpose("time", "token", "dim").values
    turns = np.round(np.arctan2(x[..., 1], x[..., 0]) * TURN / (2 * np.pi)).astype(int) % TURN
    times = [float(f"{t:.4g}") for t in data["time"].values]
    return times, turns


def stored():
    """Times and angles, as `recording` gives them, from the module of the page."""
    table = json.loads(FILE.read_text(encoding="utf-8").partition("STAIRCASE = ")[2].rstrip(";\n"))
    turns = np.frombuffer(base64.b64decode(table["angles"]), "<u2")
    return table["times"], turns.astype(int).reshape(len(table["times"]), TOKENS)


def text():
    """The module of the page that holds the recording: angles are unsigned 16-bit numbers in Base64."""
    times, turns = recording()
    angles = base64.b64encode(turns.astype("<u2").tobytes()).decode()
    table = json.dumps({"beta": BETA, "times": times, "angles": angles}, separators=(",", ":"))
    return f"/** Made by `python -m tests.lab.staircase`. */\n\nexport const STAIRCASE = {table};\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
