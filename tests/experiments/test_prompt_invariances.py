"""Prompt invariances: a prompt without places is a measure, and a mask makes it another one."""

import pytest

from attnflow_gallery import prompt_invariances
from attnflow_gallery.prompt_invariances import compare, simulate
from tests.experiments.mutants import mutation

CORE = prompt_invariances.QUICK


@pytest.mark.long
def test_order_and_repetition_change_nothing_without_places_and_a_mask_is_found_out():
    allowed = compare.amplified(CORE)
    part = simulate._variants(CORE, "plain")
    assert all(float(part[name].max()) <= allowed for name in ("order", "repeated", "rotated", "shifted"))
    assert float(part["prefix"].min()) >= compare.SEEN
    with mutation(prompt_invariances, "a causal mask everywhere").applied():
        masked = simulate._variants(CORE, "plain")
    assert float(masked["order"].min()) >= compare.SEEN
    assert float(masked["prefix"].max()) <= allowed


def test_every_invariance_is_kept_somewhere_and_lost_somewhere():
    for name in compare.WORDS:
        assert compare.KEPT[name]
        assert compare.LOST[name]
        assert not set(compare.KEPT[name]) & set(compare.LOST[name])
