"""Merge times and meeting points against integrals, and four clusters against SciPy."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.merge_times.simulate import (
    SYMMETRIC,
    SYMMETRIC_MASSES,
    TRIPLE,
    TRIPLE_MASSES,
    Parameters,
    distance_of_third,
)

FOUR_TIMES = {"USA0": (78.8524416, 29523.7389, 1.099843087e9), "SA": (14.4023075, 10959.3014, 3.87390461e8)}
"""By SciPy alone: `python -m tests.reference.four_clusters`; relative error at most 1e-8."""
STEPS = "estimated errors of the steps, and tol"


def rows_of(table: xr.Dataset) -> list[dict[str, Any]]:
    """One dictionary per row."""
    (kind,) = table.sizes
    return [{str(name): table[name].values[k].item() for name in table} for k in range(table.sizes[kind])]


def _until(row: dict[str, Any]) -> float:
    return 2 * math.asin(row["chord"] / 2)


def compare(parameters: Parameters, data: dict[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Predictions beside the measurements."""
    tables = {
        "pair": [_pair(row, 2 * math.asin(parameters.chord / 2)) for row in rows_of(data["pair"])],
        "triple": [_triple(row) | {"predicted_second": _second(row)} for row in rows_of(data["triple"])],
        "symmetric": [_collapse(row) for row in rows_of(data["symmetric"])],
        "offset": [_growth(parameters, row) for row in rows_of(data["offset"])],
        "four": [{"predicted_time": FOUR_TIMES[row["model"]][row["merge"] - 1]} for row in rows_of(data["four"])],
    }
    return {
        kind: data[kind].assign({name: (kind, np.array([row[name] for row in rows])) for name in rows[0]})
        for kind, rows in tables.items()
    }


def _pair(row: dict[str, Any], until: float) -> dict[str, float]:
    masses, model = (row["mass"], 1 - row["mass"]), row["model"]
    return {
        "predicted_log_time": float(
            theory.merging.log_merge_time(row["angle"], row["beta"], masses=masses, until=until, model=model)
        ),
        "predicted_way": float(theory.merging.meeting_point(row["angle"], row["beta"], masses=masses, model=model)),
    }


def _triple(row: dict[str, Any]) -> dict[str, float]:
    """The delay of the first merge by the third cluster."""
    beta, model, until = row["beta"], row["model"], _until(row)
    far = distance_of_third(beta, row["gap"])
    alone = float(theory.merging.log_merge_time(TRIPLE, beta, masses=TRIPLE_MASSES[:2], until=until, model=model))
    delay = theory.merging.third_cluster_delay(TRIPLE, far, TRIPLE_MASSES, beta=beta, until=until, model=model)
    tolerance = row["first_tolerance"] + delay.error
    return {"delay": row["first"] - alone, "predicted_delay": delay.value, "delay_tolerance": tolerance}


def _second(row: dict[str, Any]) -> float:
    """The merged cluster meets the third: a pair, from the first merge on."""
    masses, until = (1 - row["left_mass"], row["left_mass"]), _until(row)
    if row["left"] <= until:
        return float(row["first"])
    life = theory.merging.log_merge_time(row["left"], row["beta"], masses=masses, until=until, model=row["model"])
    return float(np.logaddexp(row["first"], life))


def _collapse(row: dict[str, Any]) -> dict[str, float]:
    """All three meet at once."""
    found = theory.merging.log_closing_time(
        lambda t: (-t, 0 * t, t),
        SYMMETRIC_MASSES,
        start=SYMMETRIC,
        end=_until(row),
        beta=row["beta"],
        model=row["model"],
    )
    return {"predicted_first": found}


def _growth(parameters: Parameters, row: dict[str, Any]) -> dict[str, float]:
    """The offset at the first merge: the near distance is `until`, the far one is read off."""
    outer, middle, _ = SYMMETRIC_MASSES
    near, beta, size = _until(row), row["beta"], abs(row["size"])
    # the merged cluster is at the normalised mean of the two points
    far = row["left"] - math.atan2(outer * math.sin(near), middle + outer * math.cos(near))
    offset, distance = (far - near) / 2, (far + near) / 2
    grown = math.log(offset / size) if offset > 0 else math.nan
    # a step moves a coordinate by tol/(1 + beta), and that grows like the offset does
    steps = 2 * row["steps"] * (parameters.offset_tol / (1 + beta) + 4 * EPS) / size
    return {
        "growth": grown,
        "predicted_growth": theory.merging.log_asymmetry_growth(
            SYMMETRIC, distance, beta, outer=outer, middle=middle, model=row["model"]
        ),
        "growth_tolerance": steps + (1 + beta) * (offset / distance) ** 2,
    }


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Pairs, triples, offsets, four clusters."""
    found = compare(parameters, data)
    pair, triple, four = found["pair"], found["triple"], Rows()
    way = "errors of positions of all steps; the mass mean instead of SA from the chord on"
    delay = f"{STEPS}; delay × expm1((β + 1/sin) shift) for what the third moves meanwhile"
    third = "three clusters: what the third adds to log T of the first merge"
    growth = "symmetric triple, middle cluster off by a little: log growth of the offset"
    offsets = "errors of positions of all steps over the offset; second order"
    for row in rows_of(found["four"]):
        words = f"{row['model']}, merge {row['merge']}"
        four.add(1.0, row["time"] / row["predicted_time"], row["tolerance"] + 1e-8, words)
    scipy, digits = "four clusters, β = 12: merge times over those of SciPy", "1e-8 for the digits of the reference"
    return [
        _claim(pair, "log_time", "two clusters: log T", STEPS, "Two clusters"),
        _claim(pair, "way", "two clusters: angle that cluster 1 travels to the meeting point", way, "Two clusters"),
        _claim(triple, "delay", third, delay, "A third cluster"),
        _claim(triple, "second", "three clusters: log T of the second merge", STEPS, "A third cluster"),
        _claim(found["symmetric"], "first", "symmetric triple: log T", STEPS, "A symmetric triple"),
        _claim(found["offset"], "growth", growth, offsets, "A symmetric triple"),
        four.equal(scipy, f"{STEPS}; {digits}", origin=NUMERICS),
    ]


def _claim(table: xr.Dataset, name: str, words: str, source: str, heading: str) -> Claim:
    rows = Rows()
    for row in rows_of(table):
        parts = [f"{key} {row[key]:g}" for key in ("dim", "beta", "angle", "mass", "gap", "size") if key in row]
        rows.add(row[f"predicted_{name}"], row[name], row[f"{name}_tolerance"], ", ".join([row["model"], *parts]))
    return rows.equal(words, source, origin=consequence(heading))
