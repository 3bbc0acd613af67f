"""The mutations of an experiment, by name, and what they make fail."""

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

from attnflow.experiments import Mutation, Study, kill_matrix


def mutation(module, name):
    """The mutation `name` of an experiment."""
    (found,) = [one for one in module.MUTATIONS if one.name == name]
    return found


def changed(module, name, value):
    """A context in which `name` of a module is `value`."""
    return Mutation(f"another {name}", module, name, lambda original: value).applied()


def claims_of(module, parameters):
    """The claims of an experiment after a run in a temporary folder; data with a NaN are refused."""
    claims = []

    def keep(parameters, data):
        claims.extend(module.claims(parameters, data))
        return []

    kill_matrix(SimpleNamespace(run=module.run, claims=keep, MUTATIONS=[]), parameters)
    return claims


def only(module, claims):
    """The experiment with these claims alone, for parameters that leave out what the others need."""
    return SimpleNamespace(run=module.run, MUTATIONS=module.MUTATIONS, claims=claims)


def noticed(module, parameters, names, *parts):
    """Keys of the claims that a mutation makes fail, a set for each if `names` is a tuple; all hold without it.

    Under the mutation only the parts are made anew whose names match one of `parts`, by default all; the others stay as
    they are, so leave out parts that the mutation does not reach, or that are not needed to notice it.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "right"
        right = list(module.claims(parameters, module.run(parameters, Study(kept))))
        failed = [(claim.statement, claim.found) for claim in right if not claim.holds]
        assert not failed, failed
        for k, name in enumerate((names,) if isinstance(names, str) else names):
            anew = {path for pattern in parts or ("*",) for path in kept.glob(f"{pattern}.npz")}
            assert anew, f"no part matches {parts}"
            other = Path(folder) / str(k)
            other.mkdir()
            for path in {*kept.iterdir()} - anew:
                shutil.copy(path, other)
            with mutation(module, name).applied():
                wrong = list(module.claims(parameters, module.run(parameters, Study(other))))
            assert [claim.statement for claim in wrong] == [claim.statement for claim in right]
            found.append({claim.key for claim in wrong if not claim.holds})
    return found[0] if isinstance(names, str) else found
