"""`attnflow predict`, with its commands particles, middle and layers: what closed-form theory says, with conditions."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnflow.cli import console
from attnflow.cli.console import Json

if TYPE_CHECKING:
    from attnflow.theory import Prediction

predict = console.Commands(
    no_args_is_help=True,
    help="Say what closed-form theory predicts, with its conditions: for tokens on the sphere, for the middle of a "
    "long prompt, for the layers of a network at initialisation.\n\n"
    "Example: [bold]attnflow predict particles --beta 9 --d 3 --n 64[/bold]",
)
Figure = Annotated[Path | None, typer.Option(help="Draw a figure into this file.", metavar="FILE")]


@predict.command(epilog="Example: attnflow predict particles --beta 9 --d 3 --n 64 --figure spectrum.pdf")
def particles(
    beta: Annotated[float, typer.Option(help="Inverse temperature, at least 0.")],
    d: Annotated[int, typer.Option(help="Dimension of the tokens, at least 2.")],
    n: Annotated[int | None, typer.Option(help="Number of tokens.")] = None,
    figure: Figure = None,
    json_: Json = False,
) -> None:
    """Softmax attention on the sphere: growth rates, clusters, lifetimes, collapse. The figure is the spectrum."""
    from attnflow import theory

    def draw() -> Any:
        from attnflow.plots import draw_growth_rates

        return draw_growth_rates(beta, d)

    _answer(lambda: theory.predict_particles(beta, d=d, n=n), draw, figure, json_)


@predict.command(
    epilog="Example: attnflow predict middle --context 4096 --alibi 0.0005 --beta 1 --time 2 --figure middle.pdf",
    words={"slope": "--alibi"},
)
def middle(
    context: Annotated[int, typer.Option(help="Number of tokens of the prompt.")],
    beta: Annotated[float, typer.Option(help="Inverse temperature, at least 0.")],
    time: Annotated[float, typer.Option(help="The time of the flow: the number of layers times their step.")],
    alibi: Annotated[
        float, typer.Option(help="ALiBi slope per token, at least 0; 0 is a plain causal mask.", metavar="SLOPE")
    ] = 0.0,
    d: Annotated[int, typer.Option(help="Dimension of the tokens, at least 2.")] = 64,
    share: Annotated[float, typer.Option(help="Share of the prompt that an early topic fills.")] = 0.1,
    figure: Figure = None,
    json_: Json = False,
) -> None:
    """Lost in the middle: which token of a prompt the last one knows least, and when an early topic takes over.

    For causal softmax attention with Q = K = V = I. The figure is the profile over the prompt.
    """
    from attnflow import theory

    def draw() -> Any:
        from attnflow.plots import draw_middle

        return draw_middle(context, alibi, beta, time, d)

    _answer(
        lambda: theory.causal.predict_middle(context=context, slope=alibi, beta=beta, time=time, d=d, share=share),
        draw,
        figure,
        json_,
    )


@predict.command(
    "layers",
    epilog="Example: attnflow predict layers --layers 96 --heads 64 --d 4096 --d-k 128 --context 8192 --step 1",
)
def of_layers(
    layers: Annotated[int, typer.Option(help="Number of layers.")],
    heads: Annotated[int, typer.Option(help="Number of heads.")],
    d: Annotated[int, typer.Option(help="Dimension of the tokens.")],
    d_k: Annotated[int, typer.Option("--d-k", help="Dimension of queries and keys of a head.")],
    context: Annotated[int, typer.Option(help="Number of tokens.")],
    step: Annotated[
        float, typer.Option(help="Size of a residual branch: x <- N(x + (step/heads) sum of heads).")
    ] = 1.0,
    logit_scale: Annotated[
        float, typer.Option(help="Standard deviation of a logit; 1 for the usual initialisation.", metavar="B")
    ] = 1.0,
    figure: Figure = None,
    json_: Json = False,
) -> None:
    """A network at initialisation: overlap of tokens through the layers, where they collapse, and what moves that.

    For attention with random weights and layer norm. The figure is the mean overlap over the layers.
    """
    from attnflow import theory

    def draw() -> Any:
        from attnflow.plots import draw_layers

        return draw_layers(layers, heads, d, d_k, context, step, logit_scale)

    def say() -> list["Prediction"]:
        return theory.random_layers.predict_layers(
            layers=layers, heads=heads, d=d, d_k=d_k, context=context, step=step, logit_scale=logit_scale
        )

    _answer(say, draw, figure, json_)


def _answer(say: Callable[[], list["Prediction"]], draw: Callable[[], Any], figure: Path | None, json_: bool) -> None:
    """Print predictions, as a table or as JSON, and draw the figure if one is asked for."""
    from attnflow.cli.tables import print_predictions

    console.figure_file(figure)
    found = say()
    if json_:
        print(json.dumps([dataclasses.asdict(prediction) for prediction in found], indent=2))
    else:
        print_predictions(found)
    if figure is not None:
        console.save_figure(draw(), figure)
