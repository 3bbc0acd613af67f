"""Certificates whose claims were made false by construction; the checker must reject every one of them."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attnflow import certify
from attnflow.tokens import Tokens

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.certify.false import changed
from tests.certify.shapes import CUBE, ring

Change = Callable[[dict[str, Any]], None]


def false_certificates(rng: np.random.Generator) -> Iterator[tuple[str, Change, dict]]:
    """Without end: (name, change, certificate), where the change makes the claim false or the proof incomplete."""
    bases = {
        "cube": certify.equilibrium(CUBE, 9.0),
        "triangle": certify.equilibrium(ring(3, 2), -0.66),
        "square": certify.equilibrium(ring(4, 3), 2.0),
        "branch": certify.branch(ring(3, 2), (1.0, 1.5)),
        "list": certify.circle_equilibria(n=3, beta=(1.0, 1.5)),
        "list at 2": certify.circle_equilibria(n=3, beta=2.0),
        "degree": certify.dominant_degree((5.0, 6.0), 2),
        "unstable": certify.unstable_modes(9.0, 3, 0.01),
        "modes": certify.circle_modes([0.3, 1.0, 4.0], 9.0),
        "apart": certify.stay_apart(Tokens(np.array([[1.0, 0.0], [np.cos(1.5), np.sin(1.5)]])), 8.0, [0, 1]),
        "flow": certify.circle_flow([0.3, 2.0, 4.5], 2.0, 0.5, ball=1e-3),
        "consensus": certify.circle_consensus([0.2, 1.9, 3.3, 5.1], 2.0, ball=1e-4),
    }
    plain = {name: one.to_json() for name, one in bases.items()}
    if not all(certify.check(one).confirmed for one in plain.values()):
        raise SystemExit("a true certificate was rejected")

    def add(*path: Any, by: float) -> Change:
        def change(one: dict[str, Any]) -> None:
            for key in path[:-1]:
                one = one[key]
            one[path[-1]] += by

        return change

    def remove(*path: Any) -> Change:
        def change(one: dict[str, Any]) -> None:
            for key in path:
                one = one[key]
            del one[int(rng.integers(len(one)))]

        return change

    def widen(one: dict[str, Any]) -> None:
        one["claims"]["beta"][int(rng.integers(2))] += float(rng.choice([-1, 1]) * rng.uniform(0.01, 1))

    def hole(one: dict[str, Any]) -> None:
        parts = one["data"]["boxes" if "boxes" in one["data"] else "slices"]
        end = parts[int(rng.integers(len(parts)))]["beta"]
        end[1] = float(np.nextafter(end[1], -np.inf))

    def aside(token: int) -> Change:  # tokens are directions: along themselves is no change
        def change(one: dict[str, Any]) -> None:
            x = np.array(one["data"]["tokens"][token])
            turn = np.cross(x, rng.standard_normal(3))
            one["data"]["tokens"][token] = (x + 10 ** rng.uniform(-7, -1) * turn / np.linalg.norm(turn)).tolist()

        return change

    def faster(one: dict[str, Any]) -> None:  # two points close up sooner at a smaller beta
        one["claims"]["beta"] = [float(one["claims"]["beta"][0] * rng.uniform(0.3, 0.9))] * 2

    def softmax(one: dict[str, Any]) -> None:  # about twice as fast as USA0, for equal masses
        one["claims"]["model"] = "SA"

    def nearer(one: dict[str, Any]) -> None:
        angle = float(rng.uniform(0.8, 1.45))
        one["data"]["tokens"][1] = one["data"]["centres"][1] = [np.cos(angle), np.sin(angle)]

    def early(one: dict[str, Any]) -> None:  # no half circle holds the start
        one["data"]["times"] = one["data"]["times"][: 1 + int(rng.integers(2))]
        one["claims"]["time"] = one["data"]["times"][-1]

    def elsewhere(one: dict[str, Any]) -> None:  # the proof stays where it is; the index changes at -2/3
        one["claims"]["beta"] = one["data"]["boxes"][0]["beta"] = [float(rng.uniform(-3, -0.67))] * 2

    def twice(one: dict[str, Any]) -> None:  # consensus is a class of its own, and no root
        for part in one["data"]["slices"]:
            part["roots"].append([0.0, 0.0])
            part["radii"].append(float(10 ** rng.uniform(-3, -1)))
        one["claims"]["classes"].insert(0, one["claims"]["classes"][0])
        one["claims"]["euler"] += 1

    def off_middle(one: dict[str, Any]) -> None:
        box = one["data"]["boxes"][int(rng.integers(len(one["data"]["boxes"])))]
        box["middle"] = float(np.nextafter(box["beta"][1], np.inf) + rng.choice([0.0, 0.1, 1.0]))

    def once() -> Iterator[tuple[str, Change, dict]]:
        whole = int(rng.choice([-2, -1, 1, 2]))
        for name in ("cube", "triangle", "square", "branch"):
            yield name, add("claims", str(rng.choice(["unstable", "stable", "rotations"])), by=whole), plain[name]
        yield "triangle", elsewhere, plain["triangle"]
        for name in ("triangle", "branch"):
            yield name, off_middle, plain[name]
        for name in ("cube", "square"):
            token = int(rng.integers(4))
            yield name, aside(token), plain[name]
            yield name, add("data", "masses", token, by=float(10 ** rng.uniform(-4, 1))), plain[name]
            yield name, add("claims", "distance", by=float(10 ** rng.uniform(-6, 0))), plain[name]
        for name in ("branch", "list"):
            yield name, widen, plain[name]
            yield name, hole, plain[name]
        for name in ("list", "list at 2"):
            kind = int(rng.integers(3))
            yield name, add("claims", "classes", kind, "unstable", by=whole), plain[name]
            yield name, add("claims", "classes", kind, "labelled", by=whole), plain[name]
            yield name, remove("claims", "classes"), plain[name]
            yield name, remove("data", "slices", 0, "roots"), plain[name]
            root = int(rng.integers(len(plain[name]["data"]["slices"][0]["roots"])))
            yield name, add("data", "slices", 0, "radii", root, by=float(rng.uniform(1, 3))), plain[name]
            yield name, add("data", "slices", 0, "roots", root, 0, by=float(rng.uniform(0.5, 1))), plain[name]
            yield name, add("claims", "n", by=1), plain[name]
            yield name, twice, plain[name]
        yield "degree", add("claims", "degree", by=whole), plain["degree"]
        yield (
            "degree",
            add("claims", "beta", 1, by=float(rng.uniform(0.22, 3))),
            plain["degree"],
        )  # 6.2113 is the threshold
        yield "unstable", add("claims", str(rng.choice(["modes", "degree"])), by=whole), plain["unstable"]
        yield "modes", add("claims", "modes", by=whole), plain["modes"]
        apart, flow = plain["apart"]["claims"], plain["flow"]["claims"]
        for change in (faster, softmax, nearer):
            yield "apart", change, plain["apart"]
        yield "apart", add("claims", "time", by=apart["time"] * float(rng.uniform(0.05, 9))), plain["apart"]
        wide = 1.5 - apart["gap"]  # at the gap + 0.9 of the way two points are before two thirds of the time
        yield "apart", add("claims", "gap", by=float(wide * rng.uniform(0.9, 1.5))), plain["apart"]
        yield "flow", add("claims", "radius", by=1e-3 - flow["radius"] - float(rng.uniform(1e-9, 9e-4))), plain["flow"]
        token = int(rng.integers(3))
        off = float(rng.choice([-1, 1]) * flow["radius"] * rng.uniform(1, 9))
        yield "flow", add("claims", "end", token, by=off), plain["flow"]
        yield "flow", add("claims", "ball", by=flow["radius"] * float(rng.uniform(1, 9))), plain["flow"]
        yield "consensus", early, plain["consensus"]
        yield "consensus", remove("data", "angles"), plain["consensus"]

    while True:
        every = list(once())
        for k in rng.permutation(len(every)):
            yield every[k]


def mutations(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """How many false certificates the checker confirms."""
    accepted, names = [], {}
    for (name, change, one), _ in zip(false_certificates(rng), range(count), strict=False):
        other = changed(one, change)  # with the words of its new claims, so that only a proof can reject it
        names[name] = names.get(name, 0) + 1
        if other != one and certify.check(other).confirmed:
            accepted.append({"name": name, "claims": other["claims"]})
    return {"count": count, "by certificate": names, "accepted": accepted}
