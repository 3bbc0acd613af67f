"""Labels of tokens: they go where the tokens go, and no number depends on them."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, InvalidTokens
from attnflow.tokens import padded

WORDS = ["king", "queen", "the", "the"]
ROWS = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.6, 0.8]])
TOKENS = af.from_array(ROWS, labels=WORDS)


def test_labels_go_with_the_tokens():
    """Into batches, with fewer tokens too, into padded ones, other precisions and moved ones, and out again."""
    assert TOKENS.labels == tuple(WORDS)
    assert "king" in repr(TOKENS)
    assert "king" in TOKENS._repr_html_()
    short = af.from_array(ROWS[:2], labels=["a", "b"])
    batch = af.stack("text", [0, 1], [TOKENS, short])
    assert batch.labels == (tuple(WORDS), ("a", "b", "", ""))
    assert [batch[k].labels for k in (0, 1)] == [tuple(WORDS), ("a", "b")]
    assert af.stack("text", [0, 1], [TOKENS, TOKENS]).labels == tuple(WORDS)  # shared
    bare = af.stack("text", [0, 1], [TOKENS, af.from_array(ROWS)])
    assert bare[1].labels == ("",) * 4
    assert af.stack("text", [0], [af.from_array(ROWS)]).labels is None
    assert padded(TOKENS).labels == (*WORDS, *[""] * 4)
    for same in (TOKENS.astype(np.float32), TOKENS.moved(ROWS[::-1]), TOKENS.member()):
        assert same.labels == tuple(WORDS)
    assert af.from_array(np.ma.masked_array(ROWS, [[False] * 3] * 3 + [[True] * 3]), labels=WORDS).labels[-1] == ""
    assert af.from_array(ROWS, labels=np.arange(4)).labels == ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("king", "give one text for each of the 4 tokens"),
        (WORDS[:3], r"shape \(3,\)"),
        ([WORDS, WORDS], r"shape \(2, 4\)"),
        ([*WORDS[:3], 1.5], r"labels\[3\] is 1.5"),
        (7, "`labels` is 7"),
    ],
)
def test_other_labels_are_refused(labels, words):
    with pytest.raises(InvalidTokens, match=words):
        af.from_array(ROWS, labels=labels)


def test_the_coordinate_of_labels_is_no_batch_dimension():
    with pytest.raises(InvalidInput, match="token_label"):
        af.stack("token_label", [0], [TOKENS])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("header.csv", "word,x,y,z\nking,1,0,0\nqueen,0,1,0\nthe,0,0,1\nthe,0,0.6,0.8\n"),
        ("vectors.txt", "4 3\nking 1 0 0\nqueen 0 1 0\nthe 0 0 1\nthe 0 .6 .8\n"),
        ("last.tsv", "1\t0\t0\tking\n0\t1\t0\tqueen\n0\t0\t1\tthe\n0\t0.6\t0.8\tthe\n"),
        ("semicolons.csv", '1;0;0;"king"\n0;1;0;queen\n\n0;0;1;the\n0;0.6;0.8;the'),
    ],
)
def test_a_file_of_words_and_vectors(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    found = af.from_file(tmp_path / name)
    np.testing.assert_array_equal(found.positions, ROWS)
    assert found.labels == tuple(WORDS)


def test_a_file_of_arrays(tmp_path):
    np.savez(tmp_path / "all.npz", positions=2 * ROWS, labels=WORDS, masses=[1, 1, 1, 3])
    found = af.from_file(tmp_path / "all.npz", normalise=True)
    np.testing.assert_allclose(found.positions, ROWS, atol=1e-16)
    assert found.labels == tuple(WORDS)
    assert found.masses[-1] == 0.5
    np.save(tmp_path / "plain.npy", ROWS)
    assert af.from_file(tmp_path / "plain.npy").labels is None
    (tmp_path / "plain.txt").write_text("1 0 0\n0 1 0\n")
    assert af.from_file(tmp_path / "plain.txt").labels is None
    np.save(tmp_path / "bytes.npy", np.eye(3, dtype=np.int8))
    np.testing.assert_array_equal(af.from_file(tmp_path / "bytes.npy").positions, np.eye(3))
    np.save(tmp_path / "hollow.npy", np.zeros((3, 3), "V0"))
    with pytest.raises(InvalidTokens, match="holds objects of Python"):
        af.from_file(tmp_path / "hollow.npy")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.csv", None, "cannot read"),
        ("empty.csv", b"\n\n", "is empty"),
        ("uneven.csv", b"a,1,0\nb,1,0,0\n", "token 1 has 4 columns"),
        ("two.csv", b"a,b,1,0\nc,d,0,1\n", r"the columns \[0, 1\] are no numbers"),
        ("latin.csv", "é,1,0\n".encode("latin-1"), "not text in UTF-8"),
        ("broken.npz", b"PK\x03\x04", "holds no plain arrays"),
        ("far.csv", b"a,1,1\n", "its norm is"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidTokens, match=words) as refusal:
        af.from_file(tmp_path / name)
    assert str(refusal.value).count(";") <= 1


def test_an_archive_without_positions_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", vectors=ROWS)
    with pytest.raises(InvalidTokens, match="holds vectors"):
        af.from_file(tmp_path / "x.npz")
