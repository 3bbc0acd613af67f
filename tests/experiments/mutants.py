"""The mutations of an experiment, by name, and what they make fail."""

import tempfile
from pathlib import Path

from attnflow.experiments import Study


def mutation(module, name):
    """The mutation `name` of an experiment."""
    (found,) = [one for one in module.MUTATIONS if one.name == name]
    return found


def noticed(module, parameters, name, *parts):
    """Keys of the claims that the mutation `name` makes fail; all of them hold without it.

    Under the mutation only the parts are made anew whose names match one of `parts`, by default all; the others stay as
    they are, so leave out parts that the mutation does not reach, or that are not needed to notice it.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parts"
        right = list(module.claims(parameters, module.run(parameters, Study(path))))
        failed = [(claim.statement, claim.found) for claim in right if not claim.holds]
        assert not failed, failed
        for part in {file for pattern in parts or ("*",) for file in path.glob(f"{pattern}.npz")}:
            part.unlink()
        with mutation(module, name).applied():
            wrong = list(module.claims(parameters, module.run(parameters, Study(path))))
    assert [claim.statement for claim in wrong] == [claim.statement for claim in right]
    return {claim.key for claim in wrong if not claim.holds}
