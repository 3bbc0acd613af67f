"""Labels of tokens in flows and run folders: kept, cut, resumed; the file they came from is no longer needed."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidSpec
from attnflow.runs import execute, load_spec, open_run

WORDS = [f"word {k}" for k in range(12)]
TOKENS = af.uniform(af.Sphere(3), n=12, seed=0)
LABELLED = af.Tokens(TOKENS.positions, labels=WORDS)
SPEC = """
name = "words"
field = { name = "attention", beta = 4.0 }
tokens = { name = "file", path = "words.csv" }
solve = { until = 1.0, save = { name = "evenly", count = 4 }, method = { name = "fixed", step = 0.25 } }
"""


def test_a_flow_keeps_labels_and_no_number_depends_on_them():
    flow, bare = (af.solve(af.Attention(4.0), x, 1.0, save=4, method=af.Fixed(0.25)) for x in (LABELLED, TOKENS))
    np.testing.assert_array_equal(flow.positions, bare.positions)
    assert bare.labels is None
    assert flow.labels.tolist() == WORDS
    assert flow[-1].labels == tuple(WORDS)
    assert flow[1:3].labels.tolist() == flow.clusters().token_label.values.tolist() == WORDS
    longer = flow.continued(2.0)
    assert longer.labels.tolist() == WORDS


@pytest.mark.slow
def test_members_of_a_batch_have_their_own():
    """Along with a batch of the field, and with systems of unequal size."""
    short = af.Tokens(TOKENS.positions[:7], labels=WORDS[:7][::-1])
    batch = af.stack("text", ["long", "short"], [LABELLED, short])
    field = af.Attention(af.Along("beta", [1.0, 4.0]))
    flow = af.solve(field, batch, 1.0, save=4, method=af.Fixed(0.25))
    assert flow.member(text=1, beta=0).labels.tolist() == WORDS[:7][::-1]
    assert flow.tokens(-1, text=0, beta=1).labels == tuple(WORDS)
    assert flow.tokens(-1, beta=1).labels == batch.labels


def test_a_run_folder_keeps_them_without_the_file(tmp_path):
    file, spec = tmp_path / "words.csv", tmp_path / "words.toml"
    rows = [[word, *map(str, x.tolist())] for word, x in zip(WORDS, TOKENS.positions, strict=True)]
    file.write_text("\n".join(map(",".join, rows)))
    spec.write_text(SPEC)
    _, flow = execute(load_spec(spec), tmp_path / "run")
    file.unlink()
    again = open_run(tmp_path / "run")
    assert again.labels.tolist() == flow.labels.tolist() == WORDS
    assert again[-1].labels == tuple(WORDS)
    np.testing.assert_array_equal(again.positions, flow.positions)
    with pytest.raises(af.errors.InvalidTokens, match="cannot read"):
        load_spec(spec)


def test_a_file_that_is_too_large_for_a_specification_is_refused(tmp_path, faults):
    faults.replace("numbers of a file of tokens", 5)
    (tmp_path / "words.csv").write_text("a,1,0,0\nb,0,1,0\n")
    (tmp_path / "words.toml").write_text(SPEC)
    with pytest.raises(InvalidSpec, match="which holds 6 numbers"):
        load_spec(tmp_path / "words.toml")
