"""Throughput of ensembles: many small systems and many values of beta in one batched call.

    python benchmarks/ensemble.py [--systems 2048] [--betas 90] [--layers 10] [--dtype float32 float64] [--json FILE]

The setting of the published phase diagrams (n = 32 tokens on S^2, 90 values of beta, softmax layers of step 0.1):
systems x betas members, here 184,320. attnflow runs `advance` on one batch; the peers are a batched PyTorch code (all
members at once, and in the group size that is fastest for it) and a plain NumPy loop over members (timed on 2,048 of
them). All in one process, same start, same dtype; the results are compared. Times are the best of three without
compilation, given per pair of tokens and layer. Target: three times faster than batched PyTorch in the same dtype on
two CPU cores. The same script runs on a GPU (PyTorch on the CPU then, unless it sees the device).
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import attnflow as af

N, D, STEP = 32, 3, 0.1


def start(systems: int, betas: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Positions (systems, n, d) and the values of beta."""
    return af.uniform(af.Sphere(D), n=N, seed=range(systems)).positions.astype(dtype), np.linspace(0.1, 9.0, betas)


def with_attnflow(x: np.ndarray, beta: np.ndarray, layers: int) -> np.ndarray:
    tokens = af.Tokens(x, dims=["seed"], dtype=x.dtype)
    field = af.Attention(af.Along("beta", beta))
    return af.advance(field, tokens, 0.0, layers * STEP, af.Layers(STEP)).positions


def with_torch(x: np.ndarray, beta: np.ndarray, layers: int, group: int) -> np.ndarray:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    members = np.broadcast_to(x, (len(beta), *x.shape)).reshape(-1, N, D)
    scale = np.repeat(beta, len(x)).astype(x.dtype)
    out = []
    with torch.no_grad():
        for k in range(0, len(members), group):
            y = torch.from_numpy(np.ascontiguousarray(members[k : k + group])).to(device)
            b = torch.from_numpy(scale[k : k + group]).to(device)[:, None, None]
            for _ in range(layers):
                weights = torch.softmax(b * (y @ y.transpose(1, 2)), dim=-1)
                y = torch.nn.functional.normalize(y + STEP * weights @ y, dim=-1)
            out.append(y.cpu().numpy())
    return np.concatenate(out).reshape(len(beta), *x.shape)


def with_numpy(x: np.ndarray, beta: np.ndarray, layers: int) -> np.ndarray:
    out = np.empty((len(beta), *x.shape), x.dtype)
    for i, b in enumerate(beta):
        for j, y in enumerate(x):
            for _ in range(layers):
                logits = x.dtype.type(b) * (y @ y.T)
                w = np.exp(logits - logits.max(axis=1, keepdims=True))
                y = y + x.dtype.type(STEP) * (w / w.sum(axis=1, keepdims=True)) @ y
                y = y / np.linalg.norm(y, axis=1, keepdims=True)
            out[i, j] = y
    return out


def best(call: Callable[[], np.ndarray], repeat: int) -> tuple[float, np.ndarray]:
    result, times = call(), []
    for _ in range(repeat):
        began = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - began)
    return min(times), result


def measure(systems: int, betas: int, layers: int, dtype: Any) -> dict[str, Any]:
    x, beta = start(systems, betas, dtype)
    unit = 1e9 / (layers * N * N)
    ours, result = best(lambda: with_attnflow(x, beta, layers), 3)
    found: dict[str, Any] = {"attnflow": ours / (len(beta) * len(x)) * unit}
    few = max(1, 2048 // betas)
    slow, loop = best(lambda: with_numpy(x[:few], beta, layers), 1)
    found["numpy"] = slow / (len(beta) * few) * unit
    found["difference"] = float(np.abs(loop - result[:, :few]).max())
    try:
        import torch
    except ImportError:
        return found
    torch.set_num_threads(2)
    groups = {}
    for group in (256, 2048, len(beta) * len(x)):
        groups[group], theirs = best(lambda group=group: with_torch(x, beta, layers, group), 2)
        found["difference"] = max(found["difference"], float(np.abs(theirs - result).max()))
    fastest = min(groups, key=lambda group: groups[group])
    found["torch group"] = fastest
    found["torch all at once"] = groups[len(beta) * len(x)] / (len(beta) * len(x)) * unit
    found["torch"] = groups[fastest] / (len(beta) * len(x)) * unit
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=2048)
    parser.add_argument("--betas", type=int, default=90)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--json", default=None)
    arguments = parser.parse_args()
    print(f"device: {jax.devices()[0]}; nanoseconds per pair and layer, ratios to attnflow in brackets")
    results = {}
    for name in arguments.dtype:
        found = measure(arguments.systems, arguments.betas, arguments.layers, np.dtype(name))
        results[name] = found
        ours = found["attnflow"]
        columns = [k for k in ("attnflow", "torch", "torch all at once", "numpy") if k in found]
        text = "  ".join(f"{k} {found[k]:.2f} ({found[k] / ours:.1f}x)" for k in columns)
        print(f"{name}: {text}; largest difference {found['difference']:.1e}", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
