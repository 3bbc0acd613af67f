"""What an oracle is, and how a formula is compared with it."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

from attnflow.errors import InvalidInput, NotAccurate
from tests.formulas.points import points

DIGITS = 50
COUNT, QUICK = 24, 14
"""Drawn points of a formula, and rows of its table that `make test` looks at."""
TABLES = Path(__file__).with_name("tables")
LARGEST, SMALLEST = 1.7e308, 1e-300
ORACLES = {}
"""name -> Oracle, filled by importing the modules of this package."""


@dataclasses.dataclass(frozen=True)
class Oracle:
    """The value of a formula by a route that shares no step with it.

    Arguments:
        name: room and name, as "merging.merge_time".
        value: a function of the arguments of the formula, by name; numbers of mpmath (at 50 digits), nested lists of
            them, or None where the formula has to refuse.
        relation: true of arguments that are meant together, as until < angle.
        draws: for parameters that are no numbers or words, a function of a random generator; JSON has to keep its
            result.
        arguments: makes the arguments of the formula from what was drawn, where JSON cannot keep them (tokens,
            functions).
        result: makes the numbers to be compared from the result of the formula.
        may_refuse: true of arguments at which the formula may refuse with `NotAccurate`, each with a reason in a
            comment.
        cases: further arguments, on and near degenerate families.
        count: drawn points of the table.
        quick: rows of the table that `make test` looks at; a study looks at all.
        fresh: further points at which the study evaluates the oracle itself; 0 where that takes minutes.
    """

    name: str
    value: Callable[..., Any]
    relation: Callable[[dict], bool] = lambda arguments: True
    draws: dict = dataclasses.field(default_factory=dict)
    arguments: Callable[[dict], dict] = lambda arguments: arguments
    result: Callable[[Any], Any] = lambda result: result
    may_refuse: Callable[[dict], bool] = lambda arguments: False
    cases: tuple = ()
    count: int = COUNT
    quick: int = QUICK
    fresh: int = 4

    def points(self, function, seed=0, count=None):
        """Drawn arguments, after the special cases for seed 0."""
        count = self.count if count is None else count
        drawn = points(self.name, function.domain, self.draws, self.relation, count, seed)
        return [*(self.cases if seed == 0 else ()), *drawn]

    def exact(self, arguments):
        """The value as nested lists of texts with 25 digits; None where it has to be refused."""
        with mp.workdps(DIGITS):
            return _texts(self.value(**arguments))


def oracle(name, **options):
    """Register a function as the oracle of the formula `name`; the options are fields of `Oracle`."""

    def registered(value):
        assert name not in ORACLES, name
        ORACLES[name] = Oracle(name, value, **options)
        return value

    return registered


def _texts(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        return [_texts(part) for part in value]
    return mp.nstr(mp.mpf(value), 25, min_fixed=0, max_fixed=0)


def table(room):
    """What the oracles of a room gave: name -> [[arguments, exact value], ...]."""
    file = TABLES / f"{room}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def bound(stated, arguments):
    """A stated accuracy, a number or an expression in the arguments, as a number."""
    if not isinstance(stated, str):
        return stated
    numbers = {
        key: np.asarray(part, dtype=float) if isinstance(part, list) else part for key, part in arguments.items()
    }
    return eval(stated, {"np": np}, numbers)


def error(oracle, function, arguments, exact):
    """The largest error of a formula as a share of what it states, and its largest relative error; 0 where it refuses.

    Fails with the arguments if the formula refuses, or gives a number, where it should not.
    """
    where = f"{oracle.name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    flat = np.array(_flat(exact), dtype=object)
    beyond = any(abs(mp.mpf(text)) > LARGEST for text in flat if text not in ("nan", None))
    try:
        with np.errstate(all="ignore"):
            result = oracle.result(function(**oracle.arguments(arguments)))
    except InvalidInput as refusal:
        excused = isinstance(refusal, NotAccurate) and oracle.may_refuse(arguments)
        if not (exact is None or beyond or excused):
            raise AssertionError(f"{where} refuses, it is {exact}") from refusal
        return 0.0, 0.0
    assert exact is not None, f"{where} = {result}; it has to refuse"
    found = np.array(_flat(result), dtype=float)
    assert found.shape == flat.shape, f"{where} has {found.size} numbers, the oracle {flat.size}"
    share = relative_error = 0.0
    passed = oracle.arguments(arguments)
    relative, absolute = (bound(getattr(function.accuracy, kind), passed) for kind in ("relative", "absolute"))
    for value, text in zip(found, flat, strict=True):
        expected = mp.mpf(text)
        if mp.isnan(expected):
            assert np.isnan(value), f"{where} = {value}; it is not defined"
            continue
        size = abs(expected)
        if size > LARGEST:
            assert value == np.sign(float(expected)) * np.inf, f"{where} = {value}; it is {text}"
            continue
        assert np.isfinite(value), f"{where} = {value}; it is {text}"
        difference = abs(mp.mpf(float(value)) - expected)
        if size < SMALLEST and abs(value) <= 10 * SMALLEST:
            continue
        allowed = float(np.max(relative)) * size + float(np.max(absolute))
        assert difference <= allowed or difference == 0, (
            f"{where} = {value!r}; it is {text}, {mp.nstr(allowed, 3)} is stated"
        )
        share = max(share, float(difference / allowed) if difference else 0.0)
        relative_error = max(relative_error, float(difference / size) if size else 0.0)
    return share, relative_error


def _flat(value):
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [entry for part in value for entry in _flat(part)]
    if isinstance(value, np.ndarray):
        return list(value.ravel())
    return [value]
