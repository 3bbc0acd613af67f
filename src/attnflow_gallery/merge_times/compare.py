"""Merge times and meeting points against integrals, and four clusters against SciPy."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence
from attnflow_gallery.merge_times.simulate import (
    EPS,
    SYMMETRIC,
    SYMMETRIC_MASSES,
    TRIPLE,
    TRIPLE_MASSES,
    Parameters,
    distance_of_third,
)

FOUR_TIMES = {
    ("USA0", 1): 78.8524416, ("USA0", 2): 29523.7389, ("USA0", 3): 1.099843087e9,
    ("SA", 1): 14.4023075, ("SA", 2): 10959.3014, ("SA", 3): 3.87390461e8,
}  # fmt: skip
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
        "four": [{"predicted_time": FOUR_TIMES[row["model"], row["merge"]]} for row in rows_of(data["four"])],
    }
    return {
        kind: data[kind].assign({name: (kind, np.array([row[name] for row in rows])) for name in rows[0]})
        for kind, rows in tables.items()
    }


def _pair(row: dict[str, Any], until: float) -> dict[str, float]:
    masses, model = (row["mass"], 1 - row["mass"]), row["model"]
    return {
        "predicted_log_time": float(theory.merging.log_merge_time(row["angle"], row["beta"], masses, until, model)),
        "predicted_way": float(theory.merging.meeting_point(row["angle"], row["beta"], masses, model)),
    }


def _triple(row: dict[str, Any]) -> dict[str, float]:
    """The delay of the first merge by the third cluster."""
    beta, model, until = row["beta"], row["model"], _until(row)
    far = distance_of_third(beta, row["gap"])
    alone = float(theory.merging.log_merge_time(TRIPLE, beta, TRIPLE_MASSES[:2], until, model))
    delay = theory.merging.third_cluster_delay(TRIPLE, far, TRIPLE_MASSES, beta, until, model)
    tolerance = row["first_tolerance"] + delay.error
    return {"delay": row["first"] - alone, "predicted_delay": delay.value, "delay_tolerance": tolerance}


def _second(row: dict[str, Any]) -> float:
    """The merged cluster meets the third: a pair, from the first merge on."""
    masses, until = (1 - row["left_mass"], row["left_mass"]), _until(row)
    if row["left"] <= until:
        return float(row["first"])
    life = theory.merging.log_merge_time(row["left"], row["beta"], masses, until, row["model"])
    return float(np.logaddexp(row["first"], life))


def _collapse(row: dict[str, Any]) -> dict[str, float]:
    """All three meet at once."""
    closing = theory.merging.log_closing_time(
        lambda t: (-t, 0 * t, t), SYMMETRIC_MASSES, SYMMETRIC, _until(row), row["beta"], row["model"]
    )
    return {"predicted_first": closing}


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
        "predicted_growth": theory.merging.log_asymmetry_growth(SYMMETRIC, distance, beta, outer, middle, row["model"]),
        "growth_tolerance": steps + (1 + beta) * (offset / distance) ** 2,
    }


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Pairs, triples, offsets, four clusters."""
    found = compare(parameters, data)
    four = found["four"]
    want = four["predicted_time"].values
    return [
        _claim(found["pair"], "log_time", "two clusters: log T", STEPS, "Two clusters"),
        _claim(found["pair"], "way", "two clusters: angle that cluster 1 travels to the meeting point",
               "errors of positions of all steps; the mass mean instead of SA from the chord on", "Two clusters"),
        _claim(found["triple"], "delay", "three clusters: what the third adds to log T of the first merge",
               f"{STEPS}; delay × expm1((β + 1/sin) shift) for what the third moves meanwhile", "A third cluster"),
        _claim(found["triple"], "second", "three clusters: log T of the second merge", STEPS, "A third cluster"),
        _claim(found["symmetric"], "first", "symmetric triple: log T", STEPS, "A symmetric triple"),
        _claim(found["offset"], "growth", "symmetric triple, middle cluster off by a little: log growth of the offset",
               "errors of positions of all steps over the offset; second order", "A symmetric triple"),
        Claim.equal(
            "four clusters, β = 12: merge times over those of SciPy", 1.0, four["time"].values / want,
            four["tolerance"].values + 1e-8, f"{STEPS}; 1e-8 for the digits of the reference", origin=NUMERICS,
            labels=[f"{row['model']}, merge {row['merge']}" for row in rows_of(four)],
        ),
    ]  # fmt: skip


def _claim(table: xr.Dataset, name: str, words: str, source: str, heading: str) -> Claim:
    def label(at: tuple[int, ...]) -> str:
        (kind,) = table.sizes
        row = table.isel({kind: at[0]})
        parts = [f"{key} {row[key].item():g}" for key in ("dim", "beta", "angle", "mass", "gap", "size") if key in row]
        return ", ".join([str(row["model"].item()), *parts])

    return Claim.equal(
        words, table[f"predicted_{name}"].values, table[name].values, table[f"{name}_tolerance"].values, source,
        origin=consequence(heading), labels=label,
    )  # fmt: skip
