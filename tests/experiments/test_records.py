"""The newest records of fresh random numbers and of mutated physics cover the gallery and name commits of this history."""

import ast
import json

import pytest

from attnflow.experiments import Salted, find, names
from tests.history import ROOT, in_history

SALTS = 3


def ten():
    """The experiments that campaigns/replicate.py repeats with ten salts."""
    tree = ast.parse((ROOT / "campaigns" / "replicate.py").read_text(encoding="utf-8"))
    (found,) = [one.value for one in tree.body if isinstance(one, ast.Assign) and one.targets[0].id == "TEN"]
    return ast.literal_eval(found)


def newest(campaign):
    found = sorted((ROOT / "campaigns" / "records").glob(f"{campaign}-*.json"))
    assert found, f"there is no record; run campaigns/{campaign}.py at a commit and keep what it writes"
    return json.loads(found[-1].read_text(encoding="utf-8"))


def test_every_experiment_was_repeated_with_three_salts_or_ten_and_every_failure_has_a_reason():
    runs = newest("replicate")["runs"]
    assert set(runs) == {name for name in names() if issubclass(find(name).module().Parameters, Salted)}
    for name, by_salt in runs.items():
        assert len(by_salt) >= (10 if name in ten() else SALTS), name
        assert "0" not in by_salt, f"{name}: salt 0 is not fresh"
        for salt, run in by_salt.items():
            assert "error" not in run, (name, salt)
            assert run["claims"] > 0
            assert all(one.get("why") for one in run["failed"]), f"{name}, salt {salt}: a claim failed; say why"


@pytest.mark.parametrize("campaign", ["replicate", "physics"])
def test_records_name_commits_of_this_history(campaign):
    record = newest(campaign)
    rows = record["experiments"].values() if campaign == "physics" else [
        run for by_salt in record["runs"].values() for run in by_salt.values()
    ]  # fmt: skip
    commits = {row["commit"] for row in rows}
    assert commits
    for commit in commits:
        assert in_history(commit), commit  # "+" after it: the package differed from that commit
