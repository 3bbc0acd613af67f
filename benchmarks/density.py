"""What densities cost: CPU seconds of `evolve` and `evolve_cells` against resolution, softmax attention.

    python benchmarks/density.py [--quick]

From 1 + 0.01 times the third harmonic (the second on S^2, the first for d = 64), beta = 9, rtol 1e-10. Every case runs
twice and the second is reported, so that compilation is apart; CPU time of all threads.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import attnflow as af
from attnflow import meanfield as mf


def evolved(basis: Any, until: float, degree: int) -> Callable[[], Any]:
    start = mf.perturbed(basis, degree, 0.01)
    return lambda: mf.evolve(af.Attention(9.0), start, until, save=10)


def celled(cells: mf.Cells, until: float, kappa: float = 0.0, normaliser: Any = None) -> Callable[[], Any]:
    basis = mf.ZonalBasis(cells.dim, 16) if cells.zonal else mf.CircleBasis(16)
    masses = mf.cells_from_density(cells, mf.perturbed(basis, 2 if cells.zonal else 3, 0.01))
    field = af.Attention(9.0, normaliser=af.Softmax() if normaliser is None else normaliser)
    return lambda: mf.evolve_cells(field, cells, masses, until, kappa=kappa, save=10)


def cases(quick: bool) -> dict[str, Callable[[], Any]]:
    circle, sphere = ((256, 512), (32, 64)) if quick else ((256, 512, 1024, 2048), (32, 64, 128))
    count = 256 if quick else 1024
    found = {f"circle to t = 10, degree {k}": evolved(mf.CircleBasis(k), 10.0, 3) for k in circle}
    found |= {f"S^2 to t = 5, degree {k}": evolved(mf.SphereBasis(k), 5.0, 2) for k in sphere}
    found |= {"zonal, d = 64, to t = 3, degree 64": evolved(mf.ZonalBasis(64, 64), 3.0, 1)}
    ring = mf.circle_cells(count)
    found |= {
        f"{count} cells of the circle to t = 10": celled(ring, 10.0),
        f"{count} cells of the circle to t = 10, unnormalised": celled(ring, 10.0, normaliser=af.Unnormalised()),
        f"{count} cells of the circle to t = 10, kappa = 0.01": celled(ring, 10.0, kappa=0.01),
        f"{count} zonal cells of S^2 to t = 10": celled(mf.zonal_cells(3, count), 10.0),
    }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smaller resolutions")
    for name, run in cases(parser.parse_args().quick).items():
        seconds, walls = [], []
        for _ in range(2):
            began, clock = time.process_time(), time.perf_counter()
            flow = run()
            seconds.append(time.process_time() - began)
            walls.append(time.perf_counter() - clock)
        ending = f"to t = {float(flow.time[-1]):g}, {flow.steps['accepted']} steps"
        print(f"{name}: {seconds[1]:.2f} CPU s, {walls[1]:.2f} s ({ending}; first call {walls[0]:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
