"""From a sentence to tokens: embeddings, tokenizers, encodings, refusals."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput

PROMPT = "Need a new paper on AI"
CORPUS = (
    "The bank lends money. Money earns interest. The bank pays interest! A loan costs money; interest on a loan. "
    "The river has water. Water flows in the river. Fish swim in water. The river bank is wet."
)
ROUNDING = 1e-14
"""Of unit vectors in 64 dimensions, a few operations each."""


def test_words_become_labelled_unit_vectors():
    words = af.text.random_embedding(PROMPT.split(), vocabulary=2000, seed=3)
    tokens = af.from_text(PROMPT, embedding=words)
    assert tokens.labels == tuple(PROMPT.split())
    assert words.words[6:8] == ("<6>", "<7>")
    np.testing.assert_allclose(tokens.positions, words.vectors[:6], atol=ROUNDING)
    few = af.text.random_embedding(PROMPT.split(), seed=3)
    np.testing.assert_array_equal(few.vectors, words.vectors[:6])  # more words change no row
    # overlaps of 2000 iid rows: mean of squares 1/64; its relative error is (2/number of pairs)^(1/2) = 1e-3, 5 of them
    gram = words.vectors @ words.vectors.T
    assert np.mean(gram[np.triu_indices(2000, 1)] ** 2) == pytest.approx(1 / 64, rel=5e-3)


@pytest.mark.slow
def test_which_words_end_together_is_said_by_labels():
    given = af.text.Embedding(["cat", "dog", "car", "bus"], [[1, 0.1, 0], [1, -0.1, 0], [0, 0.1, 2], [0, -0.1, 2]])
    flow = af.solve(af.Attention(9.0), af.from_text("Cat bus dog, car!", embedding=given), 3.0, save=1)
    groups = af.observe.clusters(flow.tokens(-1), scale=0.3).members
    assert sorted(map(sorted, groups)) == [["bus", "car"], ["cat", "dog"]]  # 'Cat' is found in small letters


def test_sinusoids_are_added_once_before_the_projection():
    words = af.text.random_embedding(["a", "b"], dim=6)
    size = 0.7
    tokens = af.from_text("a b a", embedding=words, encoding=af.encodings.Sinusoidal(size))
    raw = words.vectors[[0, 1, 0]] + size * np.asarray(af.encodings.sinusoids(np.arange(3), 6))
    np.testing.assert_allclose(tokens.positions, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=ROUNDING)
    assert not np.allclose(tokens.positions[0], tokens.positions[2])


def test_bytes_tokenizers_and_networks():
    from tokenizers import Tokenizer, models, pre_tokenizers

    text = af.text.random_embedding(af.text.Bytes(), dim=8)
    assert len(text) == 256
    assert af.from_text("hé", embedding=text).labels == ("h", "<195>", "<169>")
    made = Tokenizer(models.WordLevel({"x": 0, "y": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    own = af.text.random_embedding(made, dim=4)
    assert own.words == ("x", "y", "?")
    assert af.from_text("y x zebra", embedding=own).labels == ("y", "x", "?")
    network = af.probe.networks.random_network("llama")
    table = af.text.embedding_of(network)
    rows = network.outside("words")[network.encode("hey")].astype(float)
    expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    # the table is float32
    np.testing.assert_allclose(af.from_text("hey", embedding=table).positions, expected, atol=1e-6)


def ppmi_by_hand(corpus, window):
    """Counted pair by pair."""
    import re

    sentences = [re.findall(r"\w+", part.lower()) for part in re.split(r"[.!?;:]", corpus)]
    names = sorted({word for one in sentences for word in one})
    count = np.zeros((len(names), len(names)))
    for one in sentences:
        for i, word in enumerate(one):
            for j, other in enumerate(one):
                if i != j and abs(i - j) <= window:
                    count[names.index(word), names.index(other)] += 1
    each = count.sum(axis=1)
    with np.errstate(divide="ignore"):
        return names, np.maximum(np.log(count * count.sum() / np.outer(each, each)), 0)


def test_ppmi_is_counted_and_factored():
    """At full rank the rows are those of the matrix (P P^T)^(1/2) up to a rotation: their overlaps are known."""
    names, matrix = ppmi_by_hand(CORPUS, 3)
    rank = int(np.linalg.matrix_rank(matrix))
    u, s, _ = np.linalg.svd(matrix)
    gram = (u[:, :rank] * s[:rank]) @ u[:, :rank].T
    found = af.text.ppmi_embedding(CORPUS, dim=rank, window=3)
    order = [names.index(word) for word in found.words]
    size = np.sqrt(np.diag(gram))
    expected = (gram / np.outer(size, size))[np.ix_(order, order)]
    np.testing.assert_allclose(found.vectors @ found.vectors.T, expected, atol=1e-9)  # condition of the SVD: 1e3
    with pytest.raises(InvalidInput, match=rf"`dim` is {rank + 1}, but the PPMI matrix .* has the rank {rank}; give a"):
        af.text.ppmi_embedding(CORPUS, dim=rank + 1, window=3)


def test_ppmi_reads_files_and_finds_topics(tmp_path):
    (tmp_path / "one.txt").write_text(CORPUS)
    from_file = af.text.ppmi_embedding([tmp_path / "one.txt"], dim=3)
    np.testing.assert_array_equal(from_file.vectors, af.text.ppmi_embedding(CORPUS, dim=3).vectors)
    near = dict(
        zip(from_file.words, from_file.vectors @ from_file.vectors[from_file.words.index("money")], strict=True)
    )
    assert near["loan"] > 0.5 > near["fish"]


def test_many_words_are_factored_by_the_sparse_route(faults):
    exact = af.text.ppmi_embedding(CORPUS, dim=2)
    faults.replace("words of a dense factorisation", 4)
    sparse = af.text.ppmi_embedding(CORPUS, dim=2)
    assert sparse.words == exact.words
    np.testing.assert_allclose(sparse.vectors, exact.vectors, atol=1e-9)  # ARPACK stops at rounding


@pytest.mark.slow
def test_distributions_along_a_flow_are_those_of_its_frames():
    words = af.text.random_embedding(PROMPT.split(), dim=8)
    flow = af.solve(af.Attention(1.0), af.from_text(PROMPT, embedding=words), 2.0, save=2)
    along = af.text.distribution_along(flow, words.vectors, beta=5.0)
    assert along.probabilities.shape == (3, 6)
    for k in (0, 2):
        one = af.text.next_token_distribution(flow.tokens(k), words.vectors, beta=5.0)
        np.testing.assert_allclose(along.probabilities[k], one.probabilities, atol=1e-14)
    assert along.alternatives[2] < along.alternatives[0]


def test_random_rows_of_a_sentence_that_repeats_a_word():
    """One row a word, in the order in which the words first occur."""
    sentence = "the cat sees the dog"
    embedding = af.text.random_embedding(sentence.split(), dim=8, seed=3)
    assert embedding.words == ("the", "cat", "sees", "dog")
    same = af.text.random_embedding(["the", "cat", "sees", "dog"], dim=8, seed=3)
    np.testing.assert_array_equal(embedding.vectors, same.vectors)
    tokens = af.from_text(sentence, embedding=embedding)
    np.testing.assert_array_equal(np.asarray(tokens.positions)[0], np.asarray(tokens.positions)[3])


@pytest.mark.parametrize(
    ("dtype", "scales"), [(np.float32, (1e30, 1e-30, 1e-44)), (np.float64, (1e308, 1e200, 1e-200, 5e-324))]
)
def test_rows_whose_squares_leave_float_range_keep_their_direction(dtype, scales):
    """(s, s) has the direction (1, 1)/√2 for every s; its norm overflows, or is 0, in this precision."""
    rows = np.array([[scale, scale] for scale in scales], dtype)
    vectors = af.text.Embedding([str(k) for k in range(len(scales))], rows).vectors
    assert vectors.dtype == dtype
    np.testing.assert_allclose(vectors, np.full(rows.shape, 0.5**0.5), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: af.text.random_embedding([["a"], ["b"]]), r"`words` has the entry \['a'\]"),
        (lambda: af.from_text(""), "`text` is ''; give a text with at least one word"),
        (lambda: af.from_text(" ... "), "has no word; give a text with at least one word"),
        (lambda: af.from_text(7), "`text` is 7; give a text"),
        (
            lambda: af.from_text("a zebra", embedding=af.text.random_embedding(["a"])),
            "`text` has the words 'zebra', which are not among the 1 words of the embedding",
        ),
        (lambda: af.from_text("a", embedding=np.eye(3)), "`embedding` is .*; give one such as"),
        (lambda: af.from_text("a", encoding=af.encodings.Rotary()), "`encoding` is Rotary, which acts in the field"),
        (lambda: af.text.Embedding(["a", "b"], [[1, 0], [0, 0]]), r"vectors\[1\] is 0 and has no direction"),
        (lambda: af.text.Embedding(["a"], [[1, 0], [0, 1]]), "`words` has 1 entries and `vectors` 2 rows"),
        (lambda: af.text.Embedding(["a", "a"], [[1, 0], [0, 1]]), "`words` has 'a' more than once"),
        (lambda: af.text.Embedding(["a", "b"], [[1, 0], [0, np.nan]]), "not finite"),
        (lambda: af.text.Embedding(af.text.Bytes(), np.eye(3)).encode("a"), r"`text` has the ids \[97\]"),
        (lambda: af.text.random_embedding("abc"), "`words` is 'abc'; give a list of words, or a tokenizer"),
        (lambda: af.text.random_embedding(["a"], dim=1), "`dim` is 1; give an integer of at least 2"),
        (lambda: af.text.embedding_of(3), "`network` is 3"),
        (lambda: af.text.ppmi_embedding("word", dim=2), "`corpus` has 1 different words; give a longer text"),
        (lambda: af.text.ppmi_embedding("a. b.", dim=2), "has the rank 0; give a longer corpus"),
        (lambda: af.text.ppmi_embedding([], dim=2), r"`corpus` is \[\]; give a text"),
        (lambda: af.text.distribution_along(3, np.eye(2)), "`flow` is a int; give what `solve`"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_the_inverse_temperature_of_the_read_out_is_a_number():
    with pytest.raises(InvalidInput, match="`beta` is nan; give a finite number"):
        af.text.next_token_distribution(af.Tokens(np.eye(2)), np.eye(2), beta=float("nan"))


@pytest.mark.parametrize("beta", [1e3, 1e20, 1e300, -1e20])
def test_the_read_out_of_any_inverse_temperature_is_a_distribution(beta):
    """beta x (overlap) is wrong by beta x 1e-16: subtracted afterwards, that is an overflow of exp from 1e19 on."""
    words = af.text.Embedding(["a", "b", "c"], [[1.0, 0.0], [-0.6, 0.8], [-0.6, -0.8]])
    found = af.text.next_token_distribution(af.from_text("a b c a a", embedding=words), words.vectors, beta=beta)
    first = words.vectors @ words.vectors.T
    rows = np.where(np.sign(beta) * first >= (np.sign(beta) * first).max(axis=1, keepdims=True) - 1e-12, 1.0, 0.0)
    rows /= rows.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.probabilities, rows[[0, 1, 2, 0, 0]].mean(axis=0), atol=1e-12)
