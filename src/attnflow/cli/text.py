"""`attnflow text`: from a sentence to the distribution of the next token."""

import enum
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from attnflow import errors
from attnflow.cli import complete, console
from attnflow.cli.console import Json

if TYPE_CHECKING:
    from attnflow.text import Embedding, NextTokenDistribution

DIM, VOCABULARY, CORPUS_DIM = 64, 2000, 3
"""Of a random embedding; dimension of one that is made from texts."""
BETWEEN = 8
"""Frames of the figure for one row of the table."""
WORDS = 12
"""Rows of the table of words."""


class ReadOut(enum.StrEnum):
    """Names of read-outs."""

    MIXTURE = "mixture"
    KERNEL = "kernel"
    LAST = "last"


def text(
    text: Annotated[str, typer.Argument(help="The prompt.", metavar="TEXT")],
    beta: Annotated[float, typer.Option(help="Inverse temperature of attention.")] = 4.0,
    until: Annotated[float, typer.Option(help="The depth, as time of the flow.")] = 8.0,
    beta_out: Annotated[float, typer.Option(help="Inverse temperature of the read-out.")] = 12.0,
    readout: Annotated[
        ReadOut, typer.Option(help="mixture: a token, then a word; kernel: sums of exponentials; last: the last token.")
    ] = ReadOut.MIXTURE,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Make the embedding of this text file (PPMI and SVD); may be given again.", metavar="FILE"),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="Take the embedding of a trained network, by name or path.", autocompletion=complete.networks
        ),
    ] = None,
    dim: Annotated[
        int | None, typer.Option(help=f"Dimension; {DIM} for random words, {CORPUS_DIM} for a corpus.")
    ] = None,
    vocabulary: Annotated[
        int, typer.Option(help="Number of words of a random embedding; those beyond the prompt are called <k>.")
    ] = VOCABULARY,
    seed: Annotated[int, typer.Option(help="Of the random embedding.")] = 0,
    sinusoids: Annotated[float, typer.Option(help="Size of the sinusoids that are added to the words.")] = 0.0,
    rotary: Annotated[bool, typer.Option("--rotary", help="Turn queries and keys by their places.")] = False,
    causal: Annotated[bool, typer.Option("--causal", help="Every token sees itself and earlier ones alone.")] = False,
    frames: Annotated[int, typer.Option(help="Rows of the table.", min=1, max=10_000)] = 8,
    figure: Annotated[Path | None, typer.Option(help="Draw a figure into this file.", metavar="FILE")] = None,
    json_: Json = False,
) -> None:
    """Read a text as tokens, let attention act, and say what the next word is: H, I and exp(I) along depth.

    Words are random directions unless there is a corpus or a network.

    H is the entropy of the next word; I is what the tokens know about it; exp(I) is the number of alternatives.
    """
    console.figure_file(figure)
    console.use_compilation_cache()
    import attnflow as af

    if corpus and network:
        raise errors.InvalidInput("`--corpus` and `--network` are both given; give one of them.")
    if beta_out != beta_out:
        raise errors.InvalidInput("`--beta-out` is nan; give a finite number.")
    if network and dim is not None:
        raise errors.InvalidInput(f"`--dim` is {dim}, but the network has its own dimension; leave it out.")
    words = _embedding(text, corpus, network, dim, vocabulary, seed)
    added = af.encodings.Sinusoidal(sinusoids) if sinusoids else None
    turned = af.encodings.Rotary() if rotary else af.encodings.NoEncoding()
    mask = af.Causal() if causal else af.masks.Everyone()
    tokens = af.from_text(text, embedding=words, encoding=added)
    flow = af.solve(af.Attention(beta, mask=mask, encoding=turned), tokens, until, save=BETWEEN * frames)
    reads: dict[str, Any] = {"mixture": af.text.Mixture, "kernel": af.text.KernelSum, "last": af.text.LastToken}
    along = af.text.distribution_along(flow, words.vectors, beta=beta_out, readout=reads[readout.value]())
    scale = af.observe.cluster_scale(max(beta, 0.0))
    together = af.observe.clusters(flow.tokens(-1), scale=scale).members
    names = words.words
    if json_:
        print(json.dumps(_facts(flow.time.values.tolist(), along, names, together), indent=2))
    else:
        _print(flow.time.values, along, names, together, scale)
    if figure is not None:
        console.save_figure(af.plots.draw_next_token(flow.time.values, along, names), figure)


def _embedding(
    text: str, corpus: list[Path] | None, network: str | None, dim: int | None, vocabulary: int, seed: int
) -> "Embedding":
    """Of a network, of texts, or random."""
    import attnflow as af

    if network:
        return af.text.embedding_of(af.probe.network(network))
    if corpus:
        return af.text.ppmi_embedding(corpus, dim=CORPUS_DIM if dim is None else dim)
    own = list(dict.fromkeys(af.text.split_words(text)))
    return af.text.random_embedding(
        own, dim=DIM if dim is None else dim, seed=seed, vocabulary=max(vocabulary, len(own))
    )


def _facts(
    time: list[float], along: "NextTokenDistribution", names: tuple[str, ...], together: list[list[Any]]
) -> dict[str, Any]:
    from attnflow.plots.next_token import likeliest

    first, last = along.probabilities[0], along.probabilities[-1]
    rows = likeliest(first, last, 20)
    return {
        "time": time,
        "entropy": along.entropy.tolist(),
        "information": along.information.tolist(),
        "alternatives": along.alternatives.tolist(),
        "words": [{"word": names[k], "start": float(first[k]), "end": float(last[k])} for k in rows],
        "clusters": together,
    }


def _print(
    time: Any, along: "NextTokenDistribution", names: tuple[str, ...], together: list[list[Any]], scale: float
) -> None:
    from attnflow.cli.tables import out
    from attnflow.plots.next_token import likeliest

    table = Table(title="along depth", title_justify="left", title_style="bold")
    for column in ("t", "H", "I", "exp(I)"):
        table.add_column(column, justify="right")
    rows = list(zip(time, along.entropy, along.information, along.alternatives, strict=True))
    for t, *row in rows[::BETWEEN]:
        table.add_row(f"{t:g}", *(f"{value:.4f}" for value in row))
    out.print(table)
    first, last = along.probabilities[0], along.probabilities[-1]
    table = Table(title="the next word", title_justify="left", title_style="bold")
    for column in ("word", "p at t = 0", f"p at t = {time[-1]:g}"):
        table.add_column(column, justify="left" if column == "word" else "right")
    shown = likeliest(first, last, WORDS)
    for k in shown:
        table.add_row(escape(names[k]), f"{first[k]:.4f}", f"{last[k]:.4f}")
    if len(shown) < len(names):
        rest = len(names) - len(shown)
        table.add_row(f"{rest} other words", f"{1 - first[shown].sum():.4f}", f"{1 - last[shown].sum():.4f}")
    out.print(table)
    groups = " | ".join(" ".join(map(str, one)) for one in together)
    out.print(f"[bold]words that end together[/bold] (within {scale:.2g} rad): {escape(groups)}", soft_wrap=True)
