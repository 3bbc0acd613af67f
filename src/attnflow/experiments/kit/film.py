"""A film of a figure that an experiment draws itself."""

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnflow.folders import Folder
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
                picture = io.BytesIO()
                self.figure.savefig(picture, format="png", dpi=self.width / self.figure.get_figwidth())
                frames.append(Image.open(picture).convert("RGB"))
        palette = frames[-1].quantize(127)
        shown = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
        path, duration = Path(path), round(1000 / self.fps)
        with Folder(path.parent).writing(path.name) as file:
            shown[0].save(file, "GIF", save_all=True, append_images=shown[1:], duration=duration, loop=0)
        return path
