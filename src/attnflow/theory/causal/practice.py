"""What theory says about a decoder: which part of the context is lost in the middle, when early tokens take over."""

import numpy as np

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.roots import root
from attnflow.theory.causal.continuum import (
    DIMENSION,
    LARGEST_SLOPE,
    LARGEST_TIME,
    MODEL,
    correlation,
    log_softmax_dilution,
    rates,
)
from attnflow.theory.causal.middle import Middle, find_middle, last_middle_time
from attnflow.theory.causal.tokens import last_row_correlations, log_prefix_noise
from attnflow.theory.causal.topics import takeover_time
from attnflow.theory.predictions import LOG10, Prediction
from attnflow.theory.uniform.spectrum import dominant_degree

PAPER = "arXiv:2605.09213"
LONGEST = 1_000_000
"""The longest context for which all tokens are computed; beyond, formulas for many tokens serve."""
MARGIN = 0.1
"""Linear theory is said to hold while the noise e^{2c} I_0(2c)/N, near e^{4c}/N, is below this."""
BETA = Reals(0.0, 1e6, scalar=True)
CONTEXT = Integers(2, 10**15, scalar=True)
POSITIVE = Reals(0.0, 1e300, ends="right", scalar=True)
TOKEN_SLOPE = Reals(0.0, LARGEST_SLOPE / 2, scalar=True)


@formula(
    context=CONTEXT,
    slope=TOKEN_SLOPE,
    beta=BETA,
    time=POSITIVE,
    d=DIMENSION,
    model=MODEL,
    share=Reals(1e-300, 1.0, scalar=True),
    relative="1e-9 + 1e-13 * (beta + d * np.log(d))",
)
def predict_middle(
    *, context: int, slope: float, beta: float, time: float, d: int = 64, model: str = "SA", share: float = 0.1
) -> list[Prediction]:
    """Predictions for the last of `context` tokens under causal attention with the slope `slope` of ALiBi per token.

    Tokens start iid uniform on S^{d-1}. Profiles are those of degree 1, N E<x_N(t), x_j(0)>; softmax (SA) has the
    token's own weight in them (arXiv:2605.09213 for the profile; the other statements are ours).

    Arguments:
        context: number of tokens; times `slope` it may be at most 1e6.
        slope: slope of ALiBi per token.
        beta: inverse temperature; positive for the model "grad".
        time: time t of the flow, the number of layers times their step; times the rate of degree 1 at most 1e8.
        d: dimension of the space around the sphere.
        model: "SA", "USA0", "USA" or "grad", as for `rates`.
        share: part of the context that an early topic fills.
    """
    n, q, c, steep = _numbers(context, slope, beta, time, d, model)
    rate = c / time
    fastest = float(rates(int(dominant_degree(beta, d)), beta, d, model=model))
    valid = _validity(n, fastest)
    minimum = find_middle(c, steep, relative_dilution=q)
    conditions = _conditions(n, slope, time, valid)
    end = float(last_middle_time(steep, relative_dilution=q)) / rate
    try:
        half = float(takeover_time(share, slope=steep, place=1.0, relative_dilution=q)) / rate
    except NotAccurate:  # after a large self weight the share is never heard
        half = np.inf
    return [
        Prediction(
            "scaled time",
            c,
            f"degree 1 is carried at the rate {rate:.6g}, so that t = {time:g} is the scaled time c = {c:.4g}",
            f"model {model}, d = {d}, beta = {beta:g}; correlations of iid uniform tokens to first order in 1/N",
            PAPER,
        ),
        *([_self_weight(n, beta, d)] if model == "SA" else []),
        _where(minimum, n, steep, conditions),
        _contrast(minimum, n, steep, c, q, conditions),
        _until(end, steep, _conditions(n, slope, end, valid)),
        _takeover(half, share, _conditions(n, slope, half, valid)),
        *_noise(fastest * time, time, valid, n),
    ]


@formula(
    context=CONTEXT,
    slope=TOKEN_SLOPE,
    beta=BETA,
    time=POSITIVE,
    d=DIMENSION,
    model=MODEL,
    count=Integers(2, 1_000_000, scalar=True),
    relative="1e-12 * (20 + beta + d * np.log(d))",
    absolute=1e-90,
)
def middle_curve(
    *, context: int, slope: float, beta: float, time: float, d: int = 64, model: str = "SA", count: int = 400
) -> tuple[np.ndarray, np.ndarray]:
    """The retrieval profile for a figure: token numbers j < context, and N E<x_N(t), x_j(0)> to first order in 1/N.

    From the last row of exp(cW) up to a million tokens, with the softmax weight on the token itself (SA), else from the
    formula for many tokens (arXiv:2605.09213). The tokens are close together at both ends.

    Arguments:
        context: number of tokens; times `slope` it may be at most 1e6.
        slope: slope of ALiBi per token.
        beta: inverse temperature; positive for the model "grad".
        time: time t of the flow, the number of layers times their step; times the rate of degree 1 at most 1e8.
        d: dimension of the space around the sphere.
        model: "SA", "USA0", "USA" or "grad", as for `rates`.
        count: number of tokens in the figure, about.
    """
    n, q, c, steep = _numbers(context, slope, beta, time, d, model)
    if n <= count:
        tokens = np.arange(1, n)
    else:
        ends = np.geomspace(1, n - 1, max(count // 3, 2))
        middle = np.linspace(1, n - 1, max(count // 3, 2))
        tokens = np.unique(np.clip(np.round(np.concatenate([ends, n - ends, middle])), 1, n - 1).astype(int))
    return tokens, _profile(c, n, steep, q, tokens)


def _numbers(n: int, slope: float, beta: float, time: float, d: int, model: str) -> tuple[int, float, float, float]:
    """N, the relative dilution, the scaled time c of degree 1 and the slope per context."""
    if slope * n > LARGEST_SLOPE:
        raise InvalidInput(f"`slope` is {slope!r}; times the context it may be at most {LARGEST_SLOPE:g}.")
    c = float(rates(1, beta, d, model=model)) * time
    if not c > 1e-290:
        raise InvalidInput(f"`time` is {time!r}; give a longer time (and `beta` > 0 for the model 'grad').")
    if c > LARGEST_TIME:
        raise InvalidInput(f"`time` is {time!r}; times the growth rate of degree 1 it may be at most {LARGEST_TIME:g}.")
    # a self weight that nears the end of float range stops everything, however large it is
    logs = float(log_softmax_dilution(beta, d)) - np.log(n)
    return n, float(np.exp(min(logs, 650.0))) if model == "SA" else 0.0, c, slope * n


def _profile(c: float, n: int, steep: float, q: float, tokens: np.ndarray) -> np.ndarray:
    """N times the correlation of the last token with the tokens of these numbers."""
    if n <= LONGEST and c <= 700:
        return np.asarray(n * last_row_correlations(c, n, steep, dilution=q * n if q else None)[tokens - 1])
    return correlation(c, 1.0, tokens / n, slope=steep, relative_dilution=q)


def _validity(n: int, rate: float) -> float:
    """The time t up to which the noise e^{2c} I_0(2c)/N of the degree with this rate is small."""
    log_limit = np.log(MARGIN * n)
    if log_limit <= 0:
        return 0.0
    return float(root(lambda c: float(log_prefix_noise(c)) - log_limit, 0.0, log_limit, smallest=0.0)) / rate


def _conditions(n: int, slope: float, t: float, valid: float) -> str:
    text = f"{n} iid uniform tokens, every head with this slope, identity values, no perceptron, no other positions"
    if slope > 0.1:
        text += "; a slope above 0.1 per token is coarse for a formula of many tokens"
    return text if t <= valid else text + "; OUTSIDE the limit of validity, so a tendency at best"


def _self_weight(n: int, beta: float, d: int) -> Prediction:
    logs = float(log_softmax_dilution(beta, d))
    return Prediction(
        "self weight",
        float(logs / LOG10),
        f"softmax weighs a token itself like 10^{logs / LOG10:.2f} others, of the {n} in the context; "
        "where fewer are heard it moves less and hears early tokens less",
        "uniform tokens; a value of log10",
        "ours",
    )


def _where(minimum: Middle, n: int, steep: float, conditions: str) -> Prediction:
    if minimum.exists:
        token = min(max(minimum.place * n, 1.0), n)
        text = f"least is heard of token {token:.0f} of {n}, at {100 * minimum.place:.3g} % of the context"
    elif minimum.shape == "rising":
        token, text = None, "no middle: least is heard of the first token, for the token's own weight hides early ones"
    elif steep == 0:
        token, text = None, "no middle: without a slope every token is heard less than the one before it"
    else:
        token, text = None, "no middle: at this time every token is heard less than the one before it"
    return Prediction("middle", token, text, conditions, PAPER)


def _contrast(minimum: Middle, n: int, steep: float, c: float, q: float, conditions: str) -> Prediction:
    if not minimum.exists:
        return Prediction("contrast", None, "there is no middle to compare with the ends", conditions, PAPER)
    first = float(_profile(c, n, steep, q, np.array([1]))[0])
    late, early = np.exp(minimum.log_value - minimum.log_last), minimum.value / first if first > 0 else np.nan
    value = [float(late), float(early)] if first > 0 else [float(late)]
    text = f"the middle is heard {_times(late)} as well as the token before the last"
    if first > 0:
        text += f", and {_times(early)} as well as the first token"
    return Prediction("contrast", value, text, conditions, PAPER)


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times" if ratio > 1e-6 else f"less than {1e-6:g} times"


def _until(end: float, steep: float, conditions: str) -> Prediction:
    if end == 0:
        return Prediction("end of the middle", None, "no time has a middle", conditions, f"{PAPER}, ours")
    if steep > np.log(4):
        conditions += "; before it goes, the last tokens may be heard less than the middle"
    return Prediction(
        "end of the middle",
        end,
        f"the middle disappears at t = {end:.4g}; later, every token is heard less than the one before it",
        conditions,
        f"{PAPER}, ours",
    )


def _takeover(half: float, share: float, conditions: str) -> Prediction:
    if half == np.inf:
        text = f"an early topic that fills the first {100 * share:.3g} % is hidden by the token's own weight"
        return Prediction("takeover", None, text, conditions, "ours")
    return Prediction(
        "takeover",
        half,
        f"an early topic that fills the first {100 * share:.3g} % has half of the last token's signal at "
        f"t = {half:.4g}",
        conditions + "; two topics that lean equally and weakly",
        "ours",
    )


def _noise(c: float, t: float, valid: float, n: int) -> list[Prediction]:
    logs = float(log_prefix_noise(c)) / LOG10
    verdict = "holds" if t <= valid else "does NOT hold"
    return [
        Prediction(
            "sampling noise",
            logs,
            f"the variance of the mean of iid tokens grows by e^(2c) I_0(2c) = 10^{logs:.2f}; without a mask it would "
            f"be 10^{2 * c / LOG10:.2f}",
            "slope 0 and no weight of a token on itself, which both lower it; the fastest degree; a value of log10",
            "ours",
        ),
        Prediction(
            "limit of validity",
            valid,
            f"linear theory needs e^(4c) much smaller than N = {n}: that {verdict} at t = {t:g}, and holds up to "
            f"t = {valid:.4g}",
            f"taken as e^(2c) I_0(2c) <= {MARGIN:g} N for the fastest degree",
            "ours",
        ),
    ]
