"""The newest record of the campaign of deaths: complete, bit for bit, and no more work than deaths explain."""

import json

from tests.history import ROOT, in_history


def test_a_sweep_survives_workers_schedulers_and_full_disks():
    record = json.loads(max((ROOT / "campaigns" / "records").glob("sweeps-*.json")).read_text(encoding="utf-8"))
    assert record["findings"] == []
    assert record["tasks"] >= 2000
    assert record["workers killed"] >= 10
    assert record["schedulers killed"] == 2
    assert record["full disks met"] > 0
    assert record["tasks"] <= record["completions"] <= record["bound"]
    assert record["bound"] == record["tasks"] + len(record["kills"]) * record["largest unit"]
    assert in_history(record["commit"])
