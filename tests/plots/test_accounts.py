"""What a report shows of kinds of work whose rows are no frames of tokens."""

import pytest

from attnflow import plots
from attnflow.flows import Driven
from tests.marks import graded
from tests.runs.kinds import in_memory

FIGURES = {
    "evolve_placed": {"summary", "places", "placed", "rows"},
    "gram_layers": {"summary", "overlap"},
    "conditional_density": {"summary", "labels"},
    "retrieval_profile": {"summary", "retrieval"},
}


@graded("kind", FIGURES)
def test_an_account_has_its_figures_and_numbers(kind):
    result = in_memory(kind)
    account = plots.account(result)
    assert set(account.figures) == FIGURES[kind]
    assert all(name in plots.report.CAPTIONS for name in account.figures if name != "summary")
    assert account.facts["outcome"] == result.outcome.message
    assert all(value is not None for value in account.summary.values())


@pytest.mark.parametrize("kind", FIGURES)
def test_a_result_without_rows_has_an_account_too(kind):
    whole = in_memory(kind)
    dataset = whole.dataset.isel({whole.work.rows: slice(0, 0)})
    none = whole.work.result(Driven(dataset, whole.outcome, whole.steps))
    account = plots.account(none)
    assert set(account.figures) == FIGURES[kind]
