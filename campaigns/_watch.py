"""A pytest plugin for the campaign of mutants.

Cheap tests come first, a test that does not end is ended, and a file says which tests began and which failed.
"""

import faulthandler
import json
from pathlib import Path

import pytest

CHEAP = 2.0
"""Seconds of a test that need not wait for the cheap tests of the other files."""


def pytest_addoption(parser):
    group = parser.getgroup("mutants")
    group.addoption("--watched", type=Path, help="the file of what happens")
    group.addoption("--longest", type=float, default=300.0, help="seconds of a test (300)")
    group.addoption("--costs", type=Path, help='lines of JSON with "id" and "wall", the seconds of a test')


def pytest_configure(config):
    path = config.getoption("costs")
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path else ()
    config.stash[COSTS] = {row["id"]: row["wall"] for row in rows}


COSTS = pytest.StashKey[dict]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Cheap tests, file by file in the order that was given, and then the others."""
    costs = config.stash[COSTS]
    if costs:
        files = {name: k for k, name in enumerate(dict.fromkeys(item.nodeid.split("::")[0] for item in items))}

        def rank(item):
            cost = costs.get(item.nodeid, CHEAP)
            return cost > CHEAP, files[item.nodeid.split("::")[0]], cost

        items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    usual = item.config.stash[COSTS].get(item.nodeid)
    longest = item.config.getoption("longest")
    _say(item.config, "began", item)
    faulthandler.dump_traceback_later(longest if usual is None else min(longest, 60 + 5 * usual), exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


class _Failures:
    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        if report.failed:
            _say(self.config, "failed", report)

    pytest_collectreport = pytest_runtest_logreport


def pytest_sessionstart(session):
    session.config.pluginmanager.register(_Failures(session.config))


def _say(config, event, subject):
    """Add a line for a case, or for a report: the event, the mark that it runs with, and its id."""
    path, mark = config.getoption("watched"), "slow" if "slow" in getattr(subject, "keywords", ()) else "test"
    if path:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{event} {mark} {subject.nodeid}\n")
