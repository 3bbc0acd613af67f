"""What a user would evaluate attention with instead, an exact reference, and a fair clock."""

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[[], Any]
"""One field at the tokens; returns when it is there."""

BLOCK = 1 << 23
"""Pairs that NumPy holds at a time: 64 MiB in float64. Twice or half as many take the same time; few are slower."""
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def with_numpy(x: np.ndarray, beta: float) -> Run:
    """Rows of the n x n array, as many as fit; weights are at most 1 on the sphere, so no maximum is taken."""
    rows = max(1, min(len(x), BLOCK // len(x)))
    keys, scale = np.ascontiguousarray(x.T), x.dtype.type(beta)

    def run() -> np.ndarray:
        out = np.empty_like(x)
        for first in range(0, len(x), rows):
            weights = (scale * x[first : first + rows]) @ keys
            weights -= scale
            np.exp(weights, out=weights)
            out[first : first + rows] = (weights @ x) / np.sum(weights, axis=1, keepdims=True)
        return out

    return run


def with_torch(x: np.ndarray, beta: float) -> Run:
    """`scaled_dot_product_attention` on the GPU if there is one, else in as many threads as there are cores."""
    import torch

    torch.set_num_threads(CORES)
    y = torch.from_numpy(np.array(x))[None, None].to("cuda" if torch.cuda.is_available() else "cpu")

    def run() -> Any:
        with torch.no_grad():
            out = torch.nn.functional.scaled_dot_product_attention(y, y, y, scale=beta)[0, 0]
        if y.is_cuda:
            torch.cuda.synchronize()
        return out

    return run


def with_keops(x: np.ndarray, beta: float) -> Run:
    """A symbolic n x n array, reduced by softmax; arrays of torch, so that a GPU is used if there is one."""
    import torch
    from pykeops.torch import LazyTensor

    y = torch.from_numpy(np.array(x)).to("cuda" if torch.cuda.is_available() else "cpu")
    query, key = LazyTensor(y[:, None, :]), LazyTensor(y[None, :, :])

    def run() -> Any:
        out = (beta * (query | key)).sumsoftmaxweight(key, axis=1)
        if y.is_cuda:
            torch.cuda.synchronize()
        return out

    return run


def release() -> None:
    """Give the memory of a GPU back that torch keeps for later."""
    if (torch := sys.modules.get("torch")) and torch.cuda.is_available():
        torch.cuda.empty_cache()


NEEDS = {"NumPy": ("numpy",), "torch": ("torch",), "KeOps": ("torch", "pykeops")}
PEERS: dict[str, Callable[[np.ndarray, float], Run]] = {"NumPy": with_numpy, "torch": with_torch, "KeOps": with_keops}


def missing() -> dict[str, str]:
    """Peers that cannot run here, and the package that is not installed."""
    found = {name: [p for p in needs if importlib.util.find_spec(p) is None] for name, needs in NEEDS.items()}
    return {name: lacks[0] for name, lacks in found.items() if lacks}


def exact(x: np.ndarray, beta: float, rows: np.ndarray) -> np.ndarray:
    """The softmax mean at some tokens, in float64 by log-sum-exp, a few rows at a time."""
    keys = np.asarray(x, np.float64)
    found = []
    for part in np.array_split(rows, max(1, rows.size * len(x) // (1 << 24))):
        logits = beta * (keys[part] @ keys.T)
        logits -= np.max(logits, axis=1, keepdims=True)
        np.exp(logits, out=logits)
        found.append((logits @ keys) / np.sum(logits, axis=1, keepdims=True))
    return np.concatenate(found)


def numbers(out: Any) -> np.ndarray:
    """The result of a run as a NumPy array."""
    return np.asarray(out.cpu() if type(out).__module__.startswith("torch") else out)


def race(runs: dict[str, Run], rounds: int, seconds: float, look: Callable[[Any], float]) -> dict[str, dict[str, Any]]:
    """Best time of each over rounds in which all take turns, and `look` of the first result.

    Whoever would exceed `seconds` in all sits out the rounds that are left. A run that fails, say for lack of memory,
    is reported with its reason.
    """
    found: dict[str, dict[str, Any]] = {}
    spent = dict.fromkeys(runs, 0.0)
    for turn in range(rounds):
        for name, run in runs.items():
            mine = found.setdefault(name, {"kind": "measured", "seconds": np.inf})
            if mine["kind"] == "failed" or (turn and spent[name] + mine["seconds"] > seconds):
                continue
            try:
                began = time.perf_counter()
                out = run()
                taken = time.perf_counter() - began
            except (MemoryError, RuntimeError) as error:
                found[name] = {"kind": "failed", "why": str(error).splitlines()[0][:200]}
                continue
            spent[name] += taken
            mine["seconds"] = min(mine["seconds"], taken)
            if turn == 0:
                mine["error"] = look(out)
            del out
    return found
