"""A film of a figure that an experiment draws itself."""

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnflow.plots.style import styled


@dataclasses.dataclass(frozen=True)
class Film:
    """Pictures of one figure: `show(k)` changes it into the k-th; what `motion` of an experiment may give."""

    figure: Any
    show: Callable[[int], None]
    pictures: int
    fps: int = 16
    width: int = 700

    def save(self, path: str | Path) -> Path:
        """A GIF that goes round and round, with the colours of its last picture."""
        from PIL import Image

        frames = []
        with styled():
            for k in range(self.pictures):
                self.show(k)
                file = io.BytesIO()
                self.figure.savefig(file, format="png", dpi=self.width / self.figure.get_figwidth())
                frames.append(Image.open(file).convert("RGB"))
        palette = frames[-1].quantize(127)
        shown = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
        shown[0].save(path, save_all=True, append_images=shown[1:], duration=round(1000 / self.fps), loop=0)
        return Path(path)
