"""Nodes within the cells of a polar angle, for integrals against the uniform measure of S^{d-1}."""

import numpy as np

GAUSS = np.polynomial.legendre.leggauss(16)
PANELS = 2.0 ** np.arange(7)
"""Ends of the panels of `nodes_in`, in units of the angle at which the uniform measure falls by 1/e."""
PHASE = 8.0
"""How far the phase of a density turns over a panel of `nodes_in` at most; 16 nodes integrate that to rounding."""
MOST_NODES = 2**20


def parts(count: int, pieces: int = 1) -> list[slice]:
    """Slices of the cells for which a table of `nodes_in` stays small."""
    size = max(1, MOST_NODES // (2 * pieces * len(PANELS) * len(GAUSS[0])))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def log_sine(theta: np.ndarray) -> np.ndarray:
    """log sin of angles from 0 to pi/2, with all digits near pi/2 as well."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(theta < 0.8, np.log(np.sin(theta)), 0.5 * np.log1p(-(np.cos(theta) ** 2))))


def nodes_in(dim: int, count: int, part: slice, pieces: int = 1) -> tuple[np.ndarray, ...]:
    """Nodes in the cells `part` of `count` equal ones, and their weights against sin^{dim-2}.

    Every half of a cell is divided from its end b at the greater sine into panels that grow by factors of 2, the first
    one the angle at which sin^{dim-2} falls by 1/e: tan(b)/(dim - 2), or (dim - 2)^{-1/2} at the equator. As log sin is
    concave the weight falls at least by e^{-64} over all panels, and by at most e^{-32} over one, which 16 Gauss nodes
    integrate to rounding.

    Arguments:
        dim: dimension d of the space around the sphere.
        count: number of cells from pole to pole.
        part: the cells for which nodes are made.
        pieces: number of parts of every panel, more than 1 for densities that oscillate.

    Returns:
        The angles of all nodes to the nearest pole, whether that is the last one, and their shares of the cell, (cell,
        node); the logarithm of the integral of sin^{dim-2} over each cell.
    """
    power, width, cell = dim - 2, np.pi / count, np.arange(part.start, part.stop)
    nearest = np.minimum(cell, count - 1 - cell)  # number of the cell from its pole
    middle = (2 * nearest + 1) * (width / 2)
    # the second half of the middle one of an odd number of cells is the mirror image of the first
    is_middle = 2 * nearest + 1 == count
    ends = np.stack([middle, np.where(is_middle, middle, (nearest + 1) * width)], axis=1)  # (cell, half)
    ends = np.minimum(ends, np.pi / 2)
    is_beyond = np.stack([2 * cell >= count, (2 * cell >= count) | is_middle], axis=1)
    with np.errstate(divide="ignore"):
        scale = np.minimum(np.tan(ends) / power, power**-0.5) if power else np.full(ends.shape, np.inf)
    cuts = np.minimum(scale[..., None] * PANELS, width / 2)
    cuts = np.concatenate([np.zeros((*ends.shape, 1)), cuts], axis=2)
    low, lengths = cuts[..., :-1], np.diff(cuts)
    used = (lengths > 0).any(axis=(0, 1))
    low, lengths = low[..., used, None, None], lengths[..., used, None, None] / pieces
    depths = low + lengths * (np.arange(pieces)[:, None] + (1 + GAUSS[0]) / 2)  # (cell, half, panel, piece, node)
    polar = (ends[..., None, None, None] - depths).reshape(len(cell), -1)
    is_beyond = np.repeat(is_beyond, polar.shape[1] // 2, axis=1)
    # sin(b - u)/sin b = 1 - (2 sin^2(u/2) + sin u/tan b) keeps the digits of its power; b is the inner end of the cell
    inner, away = ends[:, 1:], ((ends[:, 1:] - ends)[..., None, None, None] + depths).reshape(len(cell), -1)
    log_weights = np.log1p(-(2 * np.sin(away / 2) ** 2 + np.sin(away) / np.tan(inner)))
    weights = np.broadcast_to(lengths / 2 * GAUSS[1], depths.shape).reshape(len(cell), -1) * np.exp(power * log_weights)
    sums = np.sum(weights, axis=1)
    return polar, is_beyond, weights / sums[:, None], np.log(sums) + power * log_sine(inner[:, 0])
