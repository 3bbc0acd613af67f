"""Time and error of one field at n tokens: what attnflow chooses, its other sums, and what a user would use instead.

    python benchmarks/field.py [--tol 1e-10] [--dtype float64] [--beta 1 10 100] [--dims 2 3 8 64 512] [--max-n N]
                               [--seconds 20] [--rounds 5] [--json FILE] [--figure FILE] [--quick]
    python benchmarks/field.py --calibrate     the constants of src/attnflow/sums/costs.py, as measured here
    python benchmarks/field.py --gpu           on a GPU: pairs/s in float32, circle at 10^7 and sphere at 10^6 tokens

Softmax attention with Q = K = V = I at n uniform tokens on S^(d-1), n = 1000, 3000, 10^4, ... up to 10^6 (10^7 on
S^1); all in one process on the same arrays. Besides the choice every other sum that would meet the tolerance is timed
(Dense where it fits, Harmonics on S^2: what is chosen without ducc0), and three peers: NumPy in blocks of rows,
`torch.nn.functional.scaled_dot_product_attention` (on the GPU if torch has one), KeOps if installed. The first call of
each is timed apart, since some compile in it (KeOps for seconds); the time is the median of later calls, in rounds in
which all take turns. The last column is what the first call takes longer than a later one, compilation included.
Whoever is expected to take more than --seconds is not run: its time, marked ~, is extrapolated from the largest n at
which it was, as n^2 for sums over pairs, and for the others in the way of the cost model that `choose` uses. Errors are
the largest distance of the softmax mean from NumPy's in float64 with log-sum-exp, at 200 random tokens.

Targets, on two CPU cores, float64, tolerance 1e-10: at n = 10^5 and beta = 10, 500 times faster than the best peer on
S^1, 50 times on S^2, 10 times without ducc0; from 10^5 to 10^6 tokens at most 13 times as long on S^1 and S^2; at
d >= 8 at most 1.3 times as long as scaled_dot_product_attention.
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leave torch its share of a GPU

import jax
import numpy as np

import attnflow as af
from _peers import CORES, PEERS, Run, exact, missing, numbers, race, release
from attnflow.kernels import Exponential
from attnflow.special.degrees import basis_size
from attnflow.sums import Circle, Fused, Harmonics, Tiled
from attnflow.sums.costs import costs
from attnflow.sums.series import needed_degree

PAIRS = ("Tiled", "Dense", "Fused", *PEERS)
"""Everything that costs O(n^2)."""
SAMPLE = 200
LIMITS = {3: 16 * 132 * 1.98e9, 64: 990e12 / 3 / 256}
"""Pairs/s of one H200: 16 exponentials a clock on 132 multiprocessors; 256 flop in three products of bf16 halves."""
Row = dict[str, Any]


def tokens_on(d: int, n: int, dtype: str) -> af.Tokens:
    return af.Tokens(af.uniform(af.Sphere(d), n=n, seed=0).positions, dtype=np.dtype(dtype))


def compiled(tokens: af.Tokens, beta: float, chosen: Any) -> tuple[Run, float]:
    """One field at the tokens by this sum, and the seconds that it took to compile."""
    field, here = af.Attention(beta, sum=chosen), jax.device_put(tokens)

    def drive(x: Any, tokens: Any) -> Any:
        return field.drive(tokens.moved(x))

    began = time.perf_counter()
    run = jax.jit(drive).lower(here.positions, here).compile()
    return lambda: run(here.positions, here).block_until_ready(), time.perf_counter() - began


def off_by(tokens: af.Tokens, beta: float) -> Callable[[Any], float]:
    """The largest distance of a result from the exact mean, at a sample of the tokens."""
    rows = np.random.default_rng(1).choice(tokens.n, min(SAMPLE, tokens.n), replace=False)
    mean = exact(np.asarray(tokens.positions), beta, rows)
    return lambda out: float(np.max(np.linalg.norm(numbers(out)[rows] - mean, axis=1)))


def timed(runs: dict[str, Run], rounds: int, seconds: float, look: Callable[[Any], float]) -> dict[str, Row]:
    """Time of the first call of each, the median of later ones in which all take turns, and `look` of the first result.

    Everyone gets one later call. Whoever would exceed `seconds` in its later calls sits out the rounds that are left.
    """
    found = race(runs, 1, math.inf, look)
    later: dict[str, list[float]] = {name: [] for name, one in found.items() if one["kind"] == "measured"}
    for _ in range(max(1, rounds)):
        turn = {name: runs[name] for name, taken in later.items() if not taken or sum(taken) + taken[-1] <= seconds}
        for name, one in race(turn, 1, math.inf, lambda out: 0.0).items():
            if one["kind"] == "failed":
                found[name] = one
                del later[name]
            else:
                later[name].append(one["seconds"])
    for name, taken in later.items():
        found[name] |= {"first": found[name]["seconds"], "seconds": statistics.median(taken), "calls": len(taken)}
    return found


def case(d: int, beta: float, options: argparse.Namespace) -> list[Row]:
    """All sizes for one dimension and one inverse temperature."""
    largest = min(options.max_n, 10**7 if d == 2 else 10**6)
    last: dict[str, tuple[int, float, float]] = {}  # n, seconds and the model's seconds of the largest n measured
    rows: list[Row] = []
    for n in [k for e in range(3, 8) for k in (10**e, 3 * 10**e) if k <= largest]:
        if rows and d > 3 and last["Tiled"][1] * (n / last["Tiled"][0]) ** 2 > options.seconds:
            # only sums over pairs are left, and none is run: no need for tokens
            methods = {name: _grown(name, n, last) for name in last if name in PAIRS and name != "Dense"}
            rows.append({"n": n, "chosen": rows[-1]["chosen"], "methods": methods})
            continue
        tokens = tokens_on(d, n, options.dtype)
        began = time.perf_counter()
        choice = af.Attention(beta).choice(tokens, options.tol)
        row: Row = {"n": n, "choose": time.perf_counter() - began, "methods": {}}
        usable = {option.name: option for option in choice.options if option.sum is not None}
        row["chosen"] = next(name for name, option in usable.items() if option.sum is choice.sum)
        runs: dict[str, Run] = {}
        compiling: dict[str, float] = {}
        for name in [*usable, *(name for name in PEERS if name not in options.missing)]:
            model = usable[name].seconds if name in usable else math.nan
            guess = _grown(name, n, last, model) if name in last else {"kind": "model", "seconds": model}
            if guess["seconds"] > options.seconds:
                row["methods"][name] = guess
            elif name in usable:
                runs[name], compiling[name] = compiled(tokens, beta, usable[name].sum)
            else:
                runs[name] = PEERS[name](np.asarray(tokens.positions), beta)
        for name, found in timed(runs, options.rounds, options.seconds, off_by(tokens, beta)).items():
            row["methods"][name] = found | ({"compile": compiling[name]} if name in compiling else {})
            if found["kind"] == "measured":
                last[name] = (n, found["seconds"], usable[name].seconds if name in usable else math.nan)
        release()
        rows.append(row)
    return rows


def _grown(name: str, n: int, last: dict[str, tuple[int, float, float]], model: float = math.nan) -> Row:
    """The time at n from the largest n that was measured."""
    n0, seconds, model0 = last[name]
    growth = (n / n0) ** 2 if name in PAIRS else model / model0
    return {"kind": "extrapolated", "seconds": seconds * growth, "from": n0}


def table(d: int, beta: float, rows: list[Row], options: argparse.Namespace) -> str:
    """Times of all methods (rows) at the powers of ten (columns), and their ratios to that of the choice."""
    shown = [row for row in rows if math.log10(row["n"]).is_integer() or row is rows[-1]]
    head = f"S^{d - 1} (d = {d}), beta = {beta:g}, {options.dtype}, tolerance {options.tol:.0e}: "
    head += "seconds (over those of the choice); ~ extrapolated"
    lines = [head, f"{'n':>11s}" + "".join(f"{row['n']:>22.0e}" for row in shown) + "    off by  1st call +"]
    lines.append(f"{'choice':>11s}" + "".join(f"{row['chosen']:>22s}" for row in shown))
    for name in dict.fromkeys(name for row in rows for name in row["methods"]):
        found = [row["methods"][name] for row in rows if name in row["methods"]]
        errors = [one["error"] for one in found if "error" in one]
        extra = [one.get("compile", 0.0) + one["first"] - one["seconds"] for one in found if "first" in one]
        line = f"{name:>11s}" + "".join(f"{_cell(row, name):>22s}" for row in shown)
        line += f"{max(errors):10.0e}" if errors else f"{'-':>10s}"
        lines.append(line + (f"{max(0.0, *extra):10.2g} s" if extra else ""))
    failed = [(row["n"], name, one["why"]) for row in rows for name, one in row["methods"].items() if "why" in one]
    return "\n".join(lines + [f"  {name} failed at n = {n}: {why}" for n, name, why in failed]) + "\n"


def _cell(row: Row, name: str) -> str:
    one = row["methods"].get(name)
    if one is None or "seconds" not in one:
        return "-" if one is None else "failed"
    ratio = one["seconds"] / row["methods"].get(row["chosen"], {}).get("seconds", math.nan)
    return f"{'' if one['kind'] == 'measured' else '~'}{one['seconds']:.2e} ({ratio:.3g})"


def targets(cases: list[Row], absent: dict[str, str]) -> list[Row]:
    """What was reached, beside what was aimed at."""
    at = {(one["d"], one["beta"], row["n"]): row for one in cases for row in one["rows"]}
    found: list[Row] = []

    def say(what: str, aim: str, value: float | None, reached: bool, note: str = "") -> None:
        found.append({"what": what, "aim": aim, "value": value, "reached": reached, "note": note})

    def faster(d: int, name: str | None, words: str, aim: float) -> None:
        row = at.get((d, 10.0, 10**5))
        one = row["methods"].get(name or row["chosen"]) if row else None
        what = f"S^{d - 1}, n = 1e5, beta = 10{words}: times faster than the best peer"
        if one is None or one["kind"] != "measured":
            return say(what, f">= {aim:g}", None, False, "not measured")
        peer, theirs = _best_peer(row)
        kind = theirs["kind"] + (f" from n = {theirs['from']}" if "from" in theirs else "")
        value = theirs["seconds"] / one["seconds"]
        say(what, f">= {aim:g}", value, value >= aim, f"{name or row['chosen']} against {peer}, {kind}")

    faster(2, None, "", 500)
    faster(3, "FastSphere", ", with ducc0", 50)
    faster(3, "Harmonics", ", without ducc0", 10)
    for d, beta in ((one["d"], one["beta"]) for one in cases if one["d"] <= 3):
        few, many = (_chosen(at.get((d, beta, n))) for n in (10**5, 10**6))
        if few and many and few["kind"] == many["kind"] == "measured":
            value = many["seconds"] / few["seconds"]
            say(f"S^{d - 1}, beta = {beta:g}: 1e6 tokens over 1e5", "<= 13", value, value <= 13)
    for one in (one for one in cases if one["d"] >= 8 and "torch" not in absent):
        both = [(row["n"], _chosen(row), row["methods"].get("torch")) for row in one["rows"] if row["n"] >= 10**4]
        both = [b for b in both if b[1] and b[2] and b[1]["kind"] == b[2]["kind"] == "measured"]
        if both:
            n, ours, theirs = both[-1]
            value = ours["seconds"] / theirs["seconds"]
            what = f"d = {one['d']}, beta = {one['beta']:g}, n = {n}: time over scaled_dot_product_attention"
            say(what, "<= 1.3", value, value <= 1.3)
    lost = [(_chosen(row), _fastest(row), row["n"], one) for one in cases for row in one["rows"]]
    lost = [x for x in lost if x[0] and x[0]["kind"] == "measured" and x[2] >= 10**4]  # below, compiling decides
    if lost:
        ours, best, n, one = max(lost, key=lambda x: x[0]["seconds"] / x[1]["seconds"])
        value = ours["seconds"] / best["seconds"]
        where = f"of {len(lost)} choices the worst is at d = {one['d']}, beta = {one['beta']:g}, n = {n}"
        say("time of the choice over that of the fastest sum measured, at worst", "", value, True, where)
    return found


def _chosen(row: Row | None) -> Row | None:
    one = row["methods"].get(row["chosen"]) if row else None
    return one if one and "seconds" in one else None


def _best_peer(row: Row) -> tuple[str, Row]:
    peers = {name: one for name, one in row["methods"].items() if name in PEERS and "seconds" in one}
    return min(peers.items(), key=lambda item: item[1]["seconds"])


def _fastest(row: Row) -> Row:
    ours = [one for name, one in row["methods"].items() if name not in PEERS and one["kind"] == "measured"]
    return min(ours, key=lambda one: one["seconds"], default={"seconds": math.nan})


def draw(cases: list[Row], path: str) -> None:
    """Time against n, a panel for each d: the choice for every beta, all else for the beta nearest to 10."""
    from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled

    dims, betas = (sorted({one[key] for one in cases}) for key in ("d", "beta"))
    middle = min(betas, key=lambda beta: abs(math.log(beta / 10)) if beta > 0 else math.inf)
    looks = {"NumPy": (COLOURS[3], "s"), "torch": (COLOURS[4], "^"), "KeOps": (COLOURS[9], "P")}
    looks |= {"Tiled": (GREY, "v"), "Harmonics": (COLOURS[2], "D")}
    words = {"Tiled": "attnflow's Tiled", "Harmonics": "attnflow's Harmonics", "torch": "torch, scaled dot product"}
    with styled() as figure:
        columns = 2 if len(dims) in (1, 3) else 3
        lines = -(-(len(dims) + 1) // columns)
        fig = figure.Figure(figsize=(PAGE * columns / 3, 0.3 + 2.0 * lines))
        axes = fig.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
        handles: dict[str, Any] = {}

        def line(ax: Any, points: list[tuple[int, Row]], label: str, colour: Any, marker: str, **style: Any) -> None:
            points = [(n, one) for n, one in points if one and "seconds" in one]
            known = [(n, one["seconds"]) for n, one in points if one["kind"] == "measured"]
            if not known:
                return
            beyond = [known[-1], *((n, one["seconds"]) for n, one in points if n > known[-1][0])]
            (handles[label],) = ax.plot(*zip(*known, strict=True), color=colour, marker=marker, label=label, **style)
            ax.plot(*zip(*beyond, strict=True), color=colour, **style | {"ls": (0, (3, 2)), "lw": 0.9})

        for ax, d in zip(axes, dims, strict=False):
            for one in (one for one in cases if one["d"] == d and one["beta"] == middle):
                chosen = {row["chosen"] for row in one["rows"]}
                for name in (name for name in looks if chosen != {name}):
                    points = [(row["n"], row["methods"].get(name)) for row in one["rows"]]
                    line(ax, points, words.get(name, name), *looks[name], ms=3, lw=1)
                row = [row for row in one["rows"] if row["n"] <= 10**5][-1]
                if ours := _chosen(row):
                    ratio = float(f"{_best_peer(row)[1]['seconds'] / ours['seconds']:.2g}")
                    ax.set_title(f"best peer/choice {ratio:.9g} at ${_power(row['n'])}$", loc="right", fontsize=6.5)
            for k, beta in enumerate(betas):
                one = next(one for one in cases if (one["d"], one["beta"]) == (d, beta))
                shade = ("#6baed6", COLOURS[0], "#08306b")[min(k, 2)] if len(betas) > 1 else COLOURS[0]
                label = rf"attnflow's choice, $\beta={beta:g}$"
                line(ax, [(row["n"], _chosen(row)) for row in one["rows"]], label, shade, "o", ms=3, lw=1.6)
            ax.set(xscale="log", yscale="log")
            ax.set_title(rf"$S^{{{d - 1}}}$" if d <= 3 else f"$d={d}$", loc="left", color=INK)
            ax.grid(True, which="major", lw=0.3, color="#dddddd")
            ax.set_axisbelow(True)
        for ax in axes[len(dims) :]:
            ax.set_axis_off()
        for k, ax in enumerate(axes[: len(dims)]):
            ax.set(ylabel="seconds for one field" if k % columns == 0 else "")
            if k + columns >= len(dims):
                ax.set(xlabel="tokens $n$")
                ax.xaxis.set_tick_params(labelbottom=True)
        (dashes,) = axes[0].plot([], [], color=INK, ls=(0, (3, 2)), lw=0.9)
        order = sorted(handles, key=lambda label: ("choice" not in label, "attnflow" not in label))
        axes[len(dims)].legend(
            [*(handles[label] for label in order), dashes], [*order, "extrapolated"], loc="center left"
        )
        fig.savefig(path)


def _power(n: int) -> str:
    exponent = math.floor(math.log10(n))
    return f"10^{exponent}" if n == 10**exponent else rf"{n // 10**exponent}\cdot 10^{exponent}"


def usual(run: Run, rounds: int = 5) -> float:
    return timed({"": run}, rounds, math.inf, lambda out: 0.0)[""]["seconds"]


def calibrate(n: int, rounds: int) -> None:
    """Print the constants of sums/costs.py for this machine: tiles at n tokens, series at 16 n."""
    backend = "cpu" if jax.default_backend() == "cpu" else "gpu"
    for dtype, tol in (("float64", 1e-10), ("float32", 1e-3)):
        tiles = {}
        for d, bounded in ((3, False), (3, True), (64, True)):
            tiles[d, bounded] = usual(compiled(tokens_on(d, n, dtype), 10.0, Tiled(bounded=bounded))[0], rounds) / n**2
        dimension = max(0.0, (tiles[64, True] - tiles[3, True]) / 61)
        pair = [max(0.0, tiles[3, bounded] - 3 * dimension) for bounded in (False, True)]
        now, series, chunks = costs(backend, dtype), [], []
        for d in (2, 3):
            tokens, few = tokens_on(d, 16 * n, dtype), tokens_on(d, 64, dtype)
            degree = needed_degree([Exponential(10.0)], d, tokens, tol)[0]
            size = basis_size(degree, d)

            def made(chunk: int, d: int = d, degree: int = degree) -> Any:
                if d == 2:
                    return Circle(tol, degree, chunk=chunk, guarded=False)  # noqa: B023
                wide = int(np.clip(chunk // basis_size(degree, 2), 32, 1 << 17))
                return Harmonics(tol, degree, 3, chunk=wide, guarded=False)  # noqa: B023

            middle = now.circle_chunk if d == 2 else now.entries
            runs = {str(c): compiled(tokens, 10.0, made(c))[0] for c in (middle // 4, middle // 2, middle, 2 * middle)}
            times = {c: found["seconds"] for c, found in timed(runs, rounds, math.inf, lambda out: 0.0).items()}
            chunk = min(times, key=lambda c: times[c])
            call = usual(compiled(few, 10.0, made(int(chunk)))[0], rounds)
            series.append((max(0.0, times[chunk] - call) / (tokens.n * size), call))
            chunks.append(int(chunk))
        (circle, call), (basis, _) = series
        numbers = f"({pair[0]:.1e}, {pair[1]:.1e}), {dimension:.1e}, {circle:.1e}, {basis:.1e}, {call:.0e}"
        print(
            f'    ("{backend}", "{dtype}"): Costs({numbers}, {chunks[0]}, 1 << {chunks[1].bit_length() - 1}),',
            flush=True,
        )


def gpu(betas: list[float], rounds: int, sizes: dict[int, int], many: dict[int, int], fused: Any) -> list[Row]:
    """Pairs/s of the fused kernel in float32, and one field on the circle and the sphere in float64."""
    found: list[Row] = []
    for d, n in sizes.items():
        tokens = tokens_on(d, n, "float32")
        run, compiling = compiled(tokens, 10.0, fused)
        one = timed({"": run}, rounds, math.inf, off_by(tokens, 10.0))[""]
        if one["kind"] == "failed":
            print(f"d = {d}: {one['why']}")
            continue
        rate = n**2 / one["seconds"]
        found.append({"d": d, "n": n, "pairs per second": rate, "share": rate / LIMITS[d], "compile": compiling} | one)
        words = f"{rate:.2e} pairs/s = {rate / LIMITS[d]:.0%} of the limit of one H200 ({LIMITS[d]:.2e})"
        print(
            f"d = {d}, n = {n}, beta = 10, float32: {one['seconds']:.3g} s, {words}, off by {one['error']:.0e}",
            flush=True,
        )
    for d, n in many.items():
        tokens = tokens_on(d, n, "float64")
        for beta in betas:
            choice = af.Attention(beta).choice(tokens, 1e-10)
            run, compiling = compiled(tokens, beta, choice.sum)
            one = timed({"": run}, rounds, math.inf, off_by(tokens, beta))[""]
            name = type(choice.sum).__name__
            found.append({"d": d, "n": n, "beta": beta, "sum": name, "compile": compiling} | one)
            words = (
                one.get("why") or f"{one['seconds']:.3g} s, off by {one['error']:.0e}, compiled in {compiling:.1f} s"
            )
            print(f"S^{d - 1}, n = {n:.0e}, beta = {beta:g}, float64, {name}: {words}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tol", type=float, help="default 1e-10 in float64, 1e-3 in float32")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--beta", type=float, nargs="+", default=[1.0, 10.0, 100.0])
    parser.add_argument("--dims", type=int, nargs="+", default=[2, 3, 8, 64, 512])
    parser.add_argument("--max-n", type=float, default=1e7)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--figure")
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--quick", action="store_true", help="beta = 10, d = 2, 3, 8, n up to 10^4, two rounds")
    options = parser.parse_args()
    if options.quick:
        options.beta, options.dims, options.max_n, options.rounds = [10.0], [2, 3, 8], 1e4, 2
    options.tol = options.tol or {"float64": 1e-10, "float32": 1e-3}[options.dtype]
    options.missing = missing()
    on_gpu = jax.default_backend() == "gpu"
    result: Row = {"device": jax.devices()[0].device_kind, "cores": CORES, "missing": options.missing, "cases": []}
    print(f"{result['device']}, {CORES} cores, jax {jax.__version__}, numpy {np.__version__}")
    with jax.enable_x64(True):
        if options.calibrate:
            return calibrate((1 << 11 if options.quick else 1 << 13) if not on_gpu else 1 << 17, options.rounds)
        if options.gpu:
            if not on_gpu:
                parser.error("--gpu needs a GPU that JAX can use")
            result["gpu"] = gpu(options.beta, options.rounds, {3: 1 << 20, 64: 1 << 19}, {2: 10**7, 3: 10**6}, Fused())
        else:
            for name, package in options.missing.items():
                print(f"{name} is left out: {package} is not installed")
            for d in options.dims:
                for beta in options.beta:
                    rows = case(d, beta, options)
                    result["cases"].append({"d": d, "beta": beta, "rows": rows})
                    print(table(d, beta, rows, options), flush=True)
            result["targets"] = targets(result["cases"], options.missing)
            for one in result["targets"]:
                mark = "-" if one["value"] is None or not one["aim"] else "reached" if one["reached"] else "MISSED"
                value = "" if one["value"] is None else f"{one['value']:.3g}"
                print(f"{mark:8s}{one['what']}: {value} (target {one['aim'] or 'none'}) {one['note']}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    if options.figure and result["cases"]:
        draw(result["cases"], options.figure)


if __name__ == "__main__":
    main()
