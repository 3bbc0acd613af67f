"""The statement of a certificate in words, made from its claims and data alone. Numbers are written in full.

Whoever finds a certificate takes the statement from here; the checker rejects a file with any other.
"""

from typing import Any

ALIKE = "(SA, USA and USA0)"


def statement(kind: str, claims: dict[str, Any], data: dict[str, Any]) -> str:
    """What a certificate of this kind says."""
    return _WORDS[kind](claims, data)


def _at(beta: list[float]) -> str:
    return f"beta = {beta[0]!r}" if beta[0] == beta[1] else f"every beta in [{beta[0]!r}, {beta[1]!r}]"


def _tokens(masses: list[float]) -> str:
    return f"{len(masses)} tokens " + ("of equal mass" if min(masses) == max(masses) else "with the given masses")


def _counts(claims: dict[str, Any]) -> str:
    return "{unstable} unstable, {stable} stable and {rotations} rotational directions".format(**claims)


def _equilibrium(claims: dict[str, Any], data: dict[str, Any]) -> str:
    d = len(data["tokens"][0])
    return (
        f"At {_at(claims['beta'])} exactly one SO({d})-orbit of equilibria of {_tokens(data['masses'])} on S^{d - 1} "
        f"{ALIKE} has a configuration with every token within {claims['distance']!r} of its given direction; it is "
        f"nondegenerate, with {_counts(claims)}."
    )


def _branch(claims: dict[str, Any], data: dict[str, Any]) -> str:
    d = len(data["tokens"][0])
    return (
        f"Over {_at(claims['beta'])} a smooth branch of nondegenerate equilibria of {_tokens(data['masses'])} on "
        f"S^{d - 1} {ALIKE} runs through the boxes of `data`, with {_counts(claims)}."
    )


def _list(claims: dict[str, Any], _: dict[str, Any]) -> str:
    classes = claims["classes"]
    sizes = "; ".join("+".join(map(str, one["sizes"])) + f" with index {one['unstable']}" for one in classes)
    return (
        f"At {_at(claims['beta'])} the equilibria of {claims['n']} tokens of equal mass on the circle {ALIKE} form "
        f"exactly {len(classes)} classes up to rotation, reflection and permutation, all nondegenerate: {sizes}."
        + (
            " On every sphere equilibria of 3 tokens lie on a great circle, so that the list is complete there too."
            if claims["n"] == 3
            else ""
        )
    )


def _start(claims: dict[str, Any], data: dict[str, Any]) -> str:
    which = "The given start" if claims["ball"] == 0 else f"Every start within {claims['ball']!r} of the given angles"
    return f"{which} of {_tokens(data['masses'])} on the circle, under {claims['model']} at {_at(claims['beta'])},"


def _flow(claims: dict[str, Any], data: dict[str, Any]) -> str:
    return (
        f"{_start(claims, data)} is at t = {claims['until']!r} within {claims['radius']!r} of the angles "
        f"{claims['end']!r}, token by token."
    )


def _consensus(claims: dict[str, Any], data: dict[str, Any]) -> str:
    rest = f"from t = {claims['time']!r} on all tokens are in an open half circle"
    return f"{_start(claims, data)} converges to consensus; {rest}."


def _degree(claims: dict[str, Any], _: dict[str, Any]) -> str:
    where = f"the uniform measure on S^{claims['d'] - 1} {ALIKE}"
    return f"At {_at(claims['beta'])} degree {claims['degree']} grows fastest around {where}."


def _unstable(claims: dict[str, Any], _: dict[str, Any]) -> str:
    where = f"the uniform measure on S^{claims['d'] - 1} (SA), those of degrees 1 to {claims['degree']}"
    many = f"exactly {claims['modes']} harmonics grow around {where}"
    return f"At {_at(claims['beta'])} and noise {claims['noise']!r} {many}."


def _modes(claims: dict[str, Any], data: dict[str, Any]) -> str:
    which = f"these {len(data['angles'])} angles on the circle with {_at(claims['beta'])}"
    return f"The density estimate of {which} has exactly {claims['modes']} modes."


def _apart(claims: dict[str, Any], data: dict[str, Any]) -> str:
    who = f"{len(data['centres'])} groups of {_tokens(data['masses'])} on S^{len(data['tokens'][0]) - 1}"
    return (
        f"Under {claims['model']} at {_at(claims['beta'])} tokens of different groups ({who}) are at least "
        f"{claims['gap']!r} apart, as angles, until t = {claims['time']!r}."
    )


_WORDS = {
    "equilibrium": _equilibrium,
    "branch": _branch,
    "circle list": _list,
    "circle flow": _flow,
    "consensus": _consensus,
    "dominant degree": _degree,
    "unstable modes": _unstable,
    "circle modes": _modes,
    "stay apart": _apart,
}
