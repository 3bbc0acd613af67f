"""`animate`: a result in motion, as a page with a player, a GIF or a film."""

import contextlib
import html
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.checks import number, whole
from attnflow.errors import InvalidInput, RunError
from attnflow.flows import AbstractTrajectory
from attnflow.folders import Folder
from attnflow.meanfield import CellFlow, DensityFlow
from attnflow.plots.density import look
from attnflow.plots.density_scene import DensityScene
from attnflow.plots.figure_data import FigureData
from attnflow.plots.player import player, player_page
from attnflow.plots.scenes import AbstractScene, Cursor, TokenScene
from attnflow.plots.style import INK, PAGE, styled
from attnflow.wording import fresh_path

FORMATS = ("html", "gif", "mp4")
HEIGHT = 3.7
"""Height of a picture that is seven inches wide."""
OnPicture = Callable[[int, int], None]
"""Called with the number of pictures that are drawn, and of all."""
_RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 7.5,
    "figure.constrained_layout.use": False,
}


class Animation:
    """Pictures of a result through time, drawn as they are needed; `animate` makes it. In a notebook it is a player."""

    def __init__(self, scene: AbstractScene, seconds: float, fps: int, width: int):
        self.scene, self.fps, self.width = scene, fps, width
        self.ticks = scene.ticks(seconds, fps)
        with _styled() as figure:
            self.figure = figure.Figure(figsize=(PAGE, HEIGHT), dpi=width / PAGE)
            scene.areas(self.figure, (0.005, 0.02, 0.475, 0.87))
            self.cursors = []
            for k, panel in enumerate(scene.panels):
                axes = self.figure.add_axes((0.605, 0.545 - 0.425 * k, 0.375, 0.31))
                self.cursors.append(Cursor.at(axes, panel))
                if k + 1 < len(scene.panels):
                    axes.tick_params(labelbottom=False)
                    axes.set_xlabel("")
            self.figure.align_ylabels([cursor.axes for cursor in self.cursors])
            self.label = self.figure.text(0.2425, 0.945, "", ha="center", va="center", size=12, color=INK)
        self.show(0)

    def __len__(self) -> int:
        """The number of pictures."""
        return len(self.ticks)

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return float(self.ticks.seconds.sum())

    def show(self, k: int) -> Any:
        """The Matplotlib figure, moved to picture number `k`."""
        self.scene.show(self.ticks, k)
        log_time, frame = float(self.ticks.log_time[k]), int(self.ticks.frame[k])
        for cursor in self.cursors:
            cursor.move(float(self.scene.axis.at(log_time)), frame)
        self.label.set_text(self.scene.axis.title(log_time))
        return self.figure

    def pictures(self, on_picture: OnPicture | None = None) -> Iterator[np.ndarray]:
        """All pictures in their order, (height, width, 3) bytes; only what moves is drawn anew."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        moving = [*self.scene.moving(), *(part for c in self.cursors for part in (c.line, c.dot)), self.label]
        with _styled(), _animated(moving):
            canvas: Any = FigureCanvasAgg(self.figure)
            canvas.draw()
            still = canvas.copy_from_bbox(self.figure.bbox)
            for k in range(len(self)):
                self.show(k)
                canvas.restore_region(still)
                for part in sorted(moving, key=lambda part: part.get_zorder()):
                    self.figure.draw_artist(part)
                yield np.array(canvas.buffer_rgba())[..., :3]
                if on_picture is not None:
                    on_picture(k + 1, len(self))

    def save(self, path: str | Path, format: str | None = None, on_picture: OnPicture | None = None) -> Path:
        """Write a file; the format is that of its name unless it is given. A file that is cut short is not left."""
        path = fresh_path("path", path)
        kind = _format(path, format)
        from attnflow.plots import films

        folder = Folder(path.parent)
        with _writing(path):
            if kind == "html":
                folder.write(path.name, player_page(self, path.stem).encode())
            elif kind == "gif":
                with folder.writing(path.name) as stream:
                    films.write_gif(stream, self, on_picture)
            else:
                with folder.writing_path(path.name) as partial:
                    films.write_mp4(partial, self, on_picture)
        return path

    def _repr_html_(self) -> str:
        page = html.escape(player_page(self, "animation"), quote=True)
        size = f'width="100%" height="{round(0.7 * self.width)}" frameborder="0"'
        return f'<iframe sandbox="allow-scripts" srcdoc="{page}" {size}></iframe>'


def animate(
    flow: Any,
    path: str | Path | None = None,
    *,
    format: str | None = None,
    member: Mapping[str, int] | None = None,
    seconds: float = 9.0,
    fps: int = 20,
    width: int = 700,
    on_picture: OnPicture | None = None,
) -> Animation:
    """Tokens, or a density, as they move, with a cursor in the curves of energy and number of clusters beside them.

    `flow` is what `solve`, `solve_long`, `evolve` or `evolve_cells` returned, or `open_run` of its folder. With a
    `path` the animation is written: a page with a player (.html, which loads nothing), a picture that moves (.gif) or a
    film (.mp4, extra `video`); `format` is needed where the name does not say it. Of a batch `member` is shown,
    {"seed": 0, "beta": 2}, by default the first.

    Only frames that were saved are shown; nothing is interpolated between them. Pictures are chosen evenly in t, or in
    log t where the axis of the figures is logarithmic. A flow of `solve_long` takes half of its seconds evenly in log t
    and half along the path of its tokens, so that motion is seen; on a plateau the picture stands and the cursor goes
    on. Tokens have the colours of all figures, `plots.draw_snapshots`; tokens that have met are one disc, whose
    area grows with their mass. Lines join the places of a token in successive frames. At most 1500 tokens are drawn.
    """
    seconds = number("seconds", seconds, low=2.0, high=600.0)
    fps, width = whole("fps", fps, 1, 50), whole("width", width, 200, 4000)
    if path is not None:
        _format(fresh_path("path", path), format)
    made = Animation(_scene(flow, member), seconds, fps, width)
    if path is not None:
        made.save(path, format, on_picture)
    return made


def live(data: FigureData) -> str:
    """The player of a flow of tokens, as an element of a page."""
    return player(Animation(TokenScene(data), 12.0, 12, 900))


def _scene(flow: Any, member: Mapping[str, int] | None) -> AbstractScene:
    if isinstance(flow, DensityFlow | CellFlow):
        if member:
            raise InvalidInput("`member` is given, but a density is one system; leave it out.")
        if not flow.dataset.sizes["time"]:
            raise InvalidInput("no frame was saved; there is nothing to animate.")
        return DensityScene(look(flow))
    if not isinstance(flow, AbstractTrajectory):
        raise InvalidInput(
            f"`flow` is {type(flow).__name__}; give what solve, solve_long, evolve or evolve_cells returned."
        )
    if not flow.dataset.sizes["time"]:
        raise InvalidInput("no frame was saved; there is nothing to animate.")
    flow.positions  # noqa: B018 (refuses where none were kept)
    return TokenScene(FigureData.of(flow.member(**_index(flow, member))))


def _index(flow: AbstractTrajectory, member: Mapping[str, int] | None) -> dict[str, int]:
    """The member of a batch by integers, the first where it is left out."""
    index = dict.fromkeys(flow.dims, 0) | dict(member or {})
    if set(index) != set(flow.dims):
        names = ", ".join(flow.dims) or "none, it is one system"
        raise InvalidInput(
            f"`member` names {sorted(set(index) - set(flow.dims))}; the batch has the dimensions {names}."
        )
    return {name: whole(f"member {name}", k, 0, flow.dataset.sizes[name] - 1) for name, k in index.items()}


def _format(path: Path, format: str | None) -> str:
    kind = path.suffix[1:].lower() if format is None else format
    if kind not in FORMATS:
        given = f"`format` is {format!r}" if format is not None else f"{path.name!r} does not say its format"
        raise InvalidInput(f"{given}; give html, gif or mp4.")
    return kind


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn failures of the disk into one sentence."""
    if not path.parent.is_dir():
        raise RunError(f"cannot write {str(path)!r} (there is no such folder); give another file.")
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write {str(path)!r} ({error.strerror or error}); give another file.") from None


@contextlib.contextmanager
def _styled() -> Iterator[Any]:
    import matplotlib

    with styled() as figure, matplotlib.rc_context(_RC):
        yield figure


@contextlib.contextmanager
def _animated(parts: list[Any]) -> Iterator[None]:
    for part in parts:
        part.set_animated(True)
    try:
        yield
    finally:
        for part in parts:
            part.set_animated(False)
