"""`attnflow text`: tables, JSON, a figure, refusals."""

import json

import pytest

from tests.cli.commands import attnflow

PROMPT = "Need a new paper on AI"
SMALL = ("--vocabulary", "50", "--until", "4", "--frames", "2")


@pytest.mark.slow
def test_a_sentence_is_read_and_its_next_word_is_drawn(tmp_path):
    found = json.loads(attnflow("text", PROMPT, *SMALL, "--json", cwd=tmp_path, check=0).stdout)
    assert found["time"][-1] == 4.0
    assert found["alternatives"][0] == pytest.approx(6, abs=0.3)  # six words that are nearly orthogonal
    assert found["alternatives"][-1] < found["alternatives"][0]
    assert {row["word"] for row in found["words"]} >= set(PROMPT.split())
    shown = attnflow("text", PROMPT, *SMALL, "--figure", "a.png", cwd=tmp_path, check=0).stdout
    assert "exp(I)" in shown
    assert f"{found['alternatives'][0]:.4f}" in shown
    assert "38 other words" in shown
    assert "words that end together" in shown
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    assert "Example: attnflow text" in attnflow("text", "--help", cwd=tmp_path, check=0).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["text", ""], "`TEXT` is ''"),
        (["text", "a b", "--beta-out", "nan"], "`--beta-out` is nan; give a finite number"),
        (["text", "a b", "--corpus", "x.txt", "--network", "rxnmapper"], "are both given"),
        (["text", "a b", "--corpus", "x.txt"], "which cannot be read as text"),
        (["text", "a b", "--corpus", "small.txt", "--dim", "9"], "has the rank 2; give a smaller `--dim`"),
        (["text", "a zebra", "--corpus", "small.txt", "--dim", "2"], "words 'zebra', which are not among the 2"),
    ],
)
def test_refusals(arguments, words, tmp_path):
    (tmp_path / "small.txt").write_text("a b")
    done = attnflow(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
