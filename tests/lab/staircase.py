"""The recording of the page, made by the library: python -m tests.lab.staircase writes page/staircase.js anew."""

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
    """Times and angles of tokens on the circle, from the start to consensus; angles as parts of a turn."""
    flow = af.solve_long(af.Attention(beta=BETA), af.uniform(af.Sphere(2), n=TOKENS, seed=SEED))
    data = flow.dataset
    x = data["positions"].transpose("time", "token", "dim").values
    turns = np.round(np.arctan2(x[..., 1], x[..., 0]) * TURN / (2 * np.pi)).astype(int) % TURN
    times = [float(f"{t:.4g}") for t in data["time"].values]
    return {"beta": BETA, "times": times, "angles": turns.tolist()}


def text():
    """The module of the page that holds the recording."""
    made = json.dumps(recording(), separators=(",", ":"))
    return f"/** Made by `python -m tests.lab.staircase`. */\n\nexport const STAIRCASE = {made};\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
