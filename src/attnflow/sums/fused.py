"""All pairs on a GPU in float32 by one fused kernel: logits, exponentials and sums never leave the registers.

Written in Pallas, because the compiler's own tiles go through memory (a tenth of the speed, measured on one H200). For
d <= 4 each thread holds 16 queries and walks over the keys: d multiply-adds, one exponential in base 2 and d + 1
multiply-adds per pair, issued as single instructions since the compiler would not fuse products with sums; the next
keys are loaded while these are worked on.
For larger d both are matrix products on the tensor cores, each of three products of halves (BF16x3).
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import flag
from attnflow.kernels import AbstractKernel, Exponential
from attnflow.sums.base import EXPONENTIAL, AbstractSum, Case, Offer, Use, least_mass
from attnflow.sums.blocks import derived_from
from attnflow.sums.costs import SETUP
from attnflow.sums.tiled import Tiled
from attnflow.sums.weights import Arguments, Charges, Columns, KeySide, QuerySide, Sums, Weights
from attnflow.tokens import Measure, Tokens

LOG2E = math.log2(math.e)
SMALL = 4
"""Dimensions up to which products are formed by single multiply-adds."""
ROWS, COLUMNS, WARPS = 64, 32, 2
"""Queries and keys of one tile, and the warps that share it: the fastest of ten shapes on one H200."""
RUN = 512
"""Tiles that are added up in registers before they join the total: bounds the growth of rounding errors."""
PRECISION = jax.lax.DotAlgorithmPreset.BF16_BF16_F32_X3
"""Three products of halves: as accurate as float32 to 2^-16 of a logit, and three times as fast as TF32x3."""


class Fused(AbstractSum):
    """Exact sums in float32 on a GPU, for unit vectors, beta >= 0 and queries that see a mass of their own.

    Weights are relative to the largest possible one, without a maximum per query. Derivatives are those of `Tiled`.
    """

    interpret: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        flag("interpret", self.interpret)

    def __call__(
        self,
        weights: Weights,
        query: QuerySide,
        key: KeySide,
        log_mass: Float[Array, " key"],
        charges: Charges,
    ) -> Sums:
        if not weights.at_tokens:
            return Tiled()(weights, query, key, log_mass, charges)
        top, beta = jnp.max(log_mass), jnp.asarray(weights.kernel.beta, query[0].dtype)  # type: ignore[attr-defined]

        def fast(beta: Any, x: Any, y: Any, log_mass: Any, charges: Any) -> Any:
            return _sums(beta, x, y, log_mass, charges, self.interpret)

        def exact(beta: Any, x: Any, y: Any, log_mass: Any, charges: Any) -> Any:
            same = Weights(Exponential(beta), weights.mask, at_tokens=True)
            return Tiled(bounded=True)(same, (x, query[1]), (y, key[1]), log_mass, charges)[1]

        sums = derived_from(exact, fast)(beta, query[0], key[0], log_mass - top, charges)
        return jnp.full(sums.shape[:1], top), sums

    def shared(self, copies: int) -> "Fused":
        return self

    def trusted(self, arguments: Arguments, scale: Any, total: Any) -> Any:
        return None

    def error(self, kernel: AbstractKernel, masses: Float[Array, " key"]) -> Any:
        rest, slope = Fused.accuracy(masses.shape[0], 0.0), 2 * float(np.finfo(np.float32).eps)
        return jnp.asarray(rest, masses.dtype) + slope * jnp.asarray(kernel.beta, masses.dtype)  # type: ignore[attr-defined]

    def refusal(self, use: Use, tokens: Tokens | Measure | None) -> str:
        if why := use.outside_exponential("Fused"):
            return why
        if tokens is None:
            return ""
        if tokens.positions.dtype != np.float32:
            return "the sum Fused works in float32; give tokens in float32, or use sum=Tiled()."
        if least_mass(tokens) <= 0:
            return "`masses` holds 0; the sum Fused needs tokens of positive mass, use sum=Tiled()."
        return ""

    @classmethod
    def offers(cls, case: Case) -> tuple[Offer, ...]:
        def out(why: str) -> tuple[Offer, ...]:
            return (Offer("Fused", None, why_not=why),)

        if case.backend != "gpu":
            return out("is for GPUs")
        if case.dtype != np.float32:
            return out("works in float32")
        if case.use.outside_exponential(""):
            return out(EXPONENTIAL)
        if case.lightest <= 0:
            return out("tokens of mass zero may see nothing in float32")
        betas = case.use.betas
        assert betas is not None
        accuracy = cls.accuracy(case.n, float(np.max(betas)))
        if accuracy > case.tol:
            return out(f"is accurate to {accuracy:.0e} only")
        return (Offer("Fused", cls(), cls.seconds(case.n, case.d), accuracy, setup=SETUP["Fused"]),)

    @staticmethod
    def accuracy(n: int, beta: float) -> float:
        """Error of the softmax mean: rounded logits (2 beta units in the last place), 2^-22 of ex2, and the sums."""
        return float(np.finfo(np.float32).eps) * (2 * beta + 4 + math.sqrt(RUN) + math.sqrt(n / (RUN * COLUMNS)))

    @staticmethod
    def seconds(n: int, d: int) -> float:
        """Predicted time of one field, by what was measured on one H200; below 1e-4 s tiles do as well."""
        return 1e-4 + (n**2 * (d + 1) / 7e12 if d <= SMALL else n**2 * max(d, 16) / 1.9e13)


def _sums(beta: Any, x: Any, y: Any, log_mass: Any, charges: Charges, interpret: bool) -> Any:
    """sum_j e^(log_mass_j + beta (<x_i, y_j> - 1)) charge_j; the charges 1 and y_j are in the keys already."""
    n, d = x.shape
    if d > SMALL:
        return _by_products(beta, x, y, jnp.exp(log_mass)[:, None] * charges.array(y), interpret)
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    width = COLUMNS * min(RUN, -(-y.shape[0] // COLUMNS))
    rows = -(-n // ROWS) * ROWS
    keys = -(-y.shape[0] // width) * width
    more = (0, keys + COLUMNS - y.shape[0])  # one block more, which is loaded ahead and never used
    logs = jnp.pad(LOG2E * (log_mass - beta)[None, :], ((0, 0), more), constant_values=-jnp.inf)
    load = jnp.concatenate([jnp.pad(y.T, ((0, 0), more)), logs])
    given = charges.values if isinstance(charges, Columns) else None
    if given is not None:
        load = jnp.concatenate([load, jnp.pad(given.T, ((0, 0), more))])
    c = d + 1 if given is None else given.shape[1]
    listen = jnp.pad((LOG2E * beta * x).T, ((0, 0), (0, rows - n)))
    multiply_add, power = _plain if interpret else _assembled

    def kernel(query_ref: Any, key_ref: Any, out_ref: Any) -> None:
        query = [query_ref[i, :][:, None] for i in range(d)]

        def block(j: Any) -> Any:
            return tuple(key_ref[i, pl.ds(j * COLUMNS, COLUMNS)][None, :] for i in range(load.shape[0]))

        def step(j: Any, state: Any) -> Any:
            now, totals = state
            ahead = block(j + 1)
            logit = now[d]
            for q, k in zip(query, now[:d], strict=True):
                logit = multiply_add(q, k, logit)
            weight = power(logit)
            if given is None:
                found = (
                    totals[0] + weight,
                    *(multiply_add(weight, k, t) for k, t in zip(now[:d], totals[1:], strict=True)),
                )
            else:
                found = tuple(multiply_add(weight, k, t) for k, t in zip(now[d + 1 :], totals, strict=True))
            return ahead, found

        def run(r: Any, state: Any) -> Any:
            ahead, totals = state
            zero = jnp.zeros((ROWS, COLUMNS), jnp.float32)
            count = width // COLUMNS
            ahead, found = jax.lax.fori_loop(r * count, (r + 1) * count, step, (ahead, (zero,) * c))
            return ahead, tuple(total + jnp.sum(part, axis=1) for total, part in zip(totals, found, strict=True))

        zeros = (jnp.zeros((ROWS,), jnp.float32),) * c
        _, totals = jax.lax.fori_loop(0, keys // width, run, (block(0), zeros))
        for i, total in enumerate(totals):
            out_ref[i, :] = total

    call = pl.pallas_call(
        kernel,
        grid=(rows // ROWS,),
        in_specs=[pl.BlockSpec((d, ROWS), lambda i: (0, i)), pl.BlockSpec(load.shape, lambda i: (0, 0))],
        out_specs=pl.BlockSpec((c, ROWS), lambda i: (0, i)),
        out_shape=jax.ShapeDtypeStruct((c, rows), jnp.float32),
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=2),
        interpret=interpret,
    )
    return call(listen, load)[:, :n].T


def _emit(instruction: str) -> Callable[..., Any]:
    """One PTX instruction on whole blocks: left to itself the compiler does not fuse products with sums."""

    def function(*args: Any) -> Any:
        from jax.experimental.pallas import triton

        shape = jnp.broadcast_shapes(*(a.shape for a in args))
        operands = ", ".join(f"${k}" for k in range(len(args) + 1))
        return triton.elementwise_inline_asm(
            f"{instruction} {operands};",
            args=[jnp.broadcast_to(a, shape) for a in args],
            constraints=",".join(["=f"] + ["f"] * len(args)),
            pack=1,
            result_shape_dtypes=[jax.ShapeDtypeStruct(shape, jnp.float32)],
        )[0]

    return function


_assembled = (_emit("fma.rn.f32"), _emit("ex2.approx.ftz.f32"))
_plain = (lambda a, b, c: a * b + c, jnp.exp2)


def _by_products(beta: Any, x: Any, y: Any, charges: Any, interpret: bool) -> Any:
    """The same for larger d, as two matrix products per tile."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    (n, d), c = x.shape, charges.shape[1]
    size, width = (1 << max(4, (k - 1).bit_length()) for k in (d, c))
    rows, wide = (64, 64) if size <= 128 else (32, 32)
    top, keys = -(-n // rows) * rows, -(-y.shape[0] // wide) * wide
    listen = jnp.pad(LOG2E * beta * x, ((0, top - n), (0, size - d)))
    key = jnp.pad(y, ((0, keys - y.shape[0]), (0, size - d)))
    charge = jnp.pad(charges, ((0, keys - y.shape[0]), (0, width - c)))
    shift = jnp.broadcast_to(LOG2E * beta, (1,)).astype(jnp.float32)

    def product(a: Any, b: Any, axis: int) -> Any:
        dims = (((1,), (axis,)), ((), ()))
        exact = jax.lax.Precision.HIGHEST if interpret else PRECISION  # a GPU would interpret in TF32 by default
        return jax.lax.dot_general(a, b, dims, precision=exact, preferred_element_type=jnp.float32)

    def kernel(query_ref: Any, key_ref: Any, charge_ref: Any, shift_ref: Any, out_ref: Any) -> None:
        query, shift = query_ref[...], shift_ref[0]

        def tile(j: Any, total: Any) -> Any:
            at = pl.ds(j * wide, wide)
            weight = jnp.exp2(product(query, key_ref[at, :], 1) - shift)
            return total + product(weight, charge_ref[at, :], 0)

        out_ref[...] = jax.lax.fori_loop(0, keys // wide, tile, jnp.zeros((rows, width), jnp.float32))

    call = pl.pallas_call(
        kernel,
        grid=(top // rows,),
        in_specs=[
            pl.BlockSpec((rows, size), lambda i: (i, 0)),
            pl.BlockSpec((keys, size), lambda i: (0, 0)),
            pl.BlockSpec((keys, width), lambda i: (0, 0)),
            pl.BlockSpec((1,), lambda i: (0,)),
        ],
        out_specs=pl.BlockSpec((rows, width), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((top, width), jnp.float32),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=2),
        interpret=interpret,
    )
    return call(listen, key, charge, shift)[:n, :c]
