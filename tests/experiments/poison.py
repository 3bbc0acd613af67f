"""Claims and numbers that are not numbers: where a NaN in the data of an experiment makes no claim fail.

Of every array the first entry, the last one and one at random are made NaN, one at a time.
"""

import numpy as np


def holes(module, parameters, data, seed=0):
    """Sentences about arrays of which a claim reads an entry and still holds where that entry is NaN, or raises.

    A claim reads an entry if its numbers change when the entry does: to NaN, or to a number far above or below.
    """
    before, found, rng = _verdicts(module, parameters, data), [], np.random.default_rng(seed)
    for path, name, at in _entries(data, rng):
        where = f"{'/'.join((*map(str, path), name))}{[int(k) for k in at]}"
        poisoned = _changed(data, path, name, at, lambda _: np.nan)
        try:
            after = _verdicts(module, parameters, poisoned)
        except Exception as error:
            found.append(f"{where}: {type(error).__name__}: {error}")
            continue
        held = [key for key in before if key not in after or after[key][0]]
        found += [f"{where}: {key!r} changes and holds" for key in held if after.get(key) != before[key]]
        quiet = [key for key in held if after.get(key) == before[key]]
        for change in (lambda x: 1e3 * (1 + abs(x)), lambda x: -1e3 * (1 + abs(x))) if quiet else ():
            try:
                other = _verdicts(module, parameters, _changed(data, path, name, at, change))
            except Exception:
                continue
            found += [f"{where}: {key!r} does not see NaN" for key in quiet if other.get(key) != before[key]]
    return sorted(set(found))


def _verdicts(module, parameters, data):
    with np.errstate(all="ignore"):
        claims = module.claims(parameters, data)
    return {one.statement: (one.holds, one.predicted, one.measured, one.tolerance) for one in claims}


def _entries(data, rng):
    """Path, array and index of the entries that are changed: finite ones of floating arrays, coordinates excepted."""
    for path, dataset in _datasets(data, ()):
        for name, array in dataset.data_vars.items():
            finite = np.flatnonzero(np.isfinite(array.values)) if array.dtype.kind == "f" else ()
            if len(finite):
                chosen = {int(finite[0]), int(finite[-1]), int(rng.choice(finite))}
                yield from ((path, name, np.unravel_index(k, array.shape)) for k in sorted(chosen))


def _datasets(data, path):
    """The datasets of an experiment, which may stand in dictionaries inside dictionaries, with the keys to them."""
    if not isinstance(data, dict):
        yield path, data
        return
    for key, inner in data.items():
        yield from _datasets(inner, (*path, key))


def _changed(data, path, name, at, change):
    """A copy of the data in which one entry is changed."""
    if path:
        return data | {path[0]: _changed(data[path[0]], path[1:], name, at, change)}
    values = np.array(data[name].values)
    values[at] = change(values[at])
    return data.assign({name: (data[name].dims, values, data[name].attrs)})
