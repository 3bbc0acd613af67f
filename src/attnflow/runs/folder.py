"""The folder of a run: its specification, manifest, lock, arrays and figures."""

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from attnflow.errors import InvalidInput, RunCorrupted, RunError, RunExists, RunLocked
from attnflow.folders import Folder, is_temporary
from attnflow.parsing import parse_json, parse_toml
from attnflow.reading import LARGEST_TEXT
from attnflow.runs import locks
from attnflow.runs.claims import is_claim
from attnflow.runs.environment import environment
from attnflow.runs.files import CHECKPOINT, content_hash, writing
from attnflow.runs.manifests import FORMAT, damage
from attnflow.wording import fresh_path, reason, shown

CREATING = {"spec.toml", ".lock"}
"""What a folder may hold before it is a run, beside temporary files: its manifest comes last."""
STALE = 3600.0
"""Seconds after which a temporary file among the parts of an experiment is taken for one of a process that is gone."""
UNDER_WAY = ("created", "running", "drawing", "extending")
"""What the manifest of a run says while a process works on it."""


@runtime_checkable
class AbstractSettings(Protocol):
    """What a folder is made for: a specification, or the settings of an experiment."""

    @property
    def name(self) -> str:
        """What the run is called."""

    @property
    def table(self) -> dict[str, Any]:
        """The resolved content."""

    @property
    def hash(self) -> str:
        """SHA-256 of the resolved content."""

    def to_toml(self) -> str:
        """The resolved content as TOML."""


S = TypeVar("S", bound=AbstractSettings)


@dataclasses.dataclass(frozen=True)
class Run:
    """One execution on disk."""

    path: Path

    def _repr_html_(self) -> str:
        from attnflow import sketches  # lists of runs load no JAX
        from attnflow.describe import html_table

        try:
            known = self.manifest()
        except (RunError, InvalidInput) as error:
            return html_table(f"Run {self.path}", {"status": str(error)})
        told = ("name", "status", "created", "wall_time", "outcome")
        facts: dict[str, Any] = {key: known[key] for key in told if key in known}
        drawn = [name for name in self.folder.entries("figures") if name.endswith(".png")][:1]
        pictures = []
        for name in drawn:
            if self.folder.is_file(f"figures/{name}"):
                with self.folder.open(f"figures/{name}") as stream:
                    pictures.append(sketches.file(stream))
        return html_table(f"Run {self.path}", facts, *pictures)

    @property
    def folder(self) -> Folder:
        """The folder, in which files are read and written without following links."""
        return Folder(self.path)

    @property
    def arrays(self) -> Path:
        """The Zarr store, readable with `xarray.open_zarr`."""
        return self.path / "arrays.zarr"

    @property
    def figures(self) -> Path:
        """The folder of figures."""
        return self.path / "figures"

    @property
    def report(self) -> Path:
        """The self-contained page."""
        return self.path / "report.html"

    @property
    def checkpoint(self) -> Path:
        """The state after the last rows; a finished run keeps it, to be extended."""
        return self.path / CHECKPOINT

    @classmethod
    @contextlib.contextmanager
    def creating(cls, path: str | Path, spec: AbstractSettings, **facts: Any) -> "Iterator[Run]":
        """Make a folder for `spec` and hold it alone until the block ends; an existing one is refused.

        The lock is taken before the first file is written, so that of several processes one makes the run.

        Arguments:
            path: where the folder is made.
            spec: what the run is made for.
            facts: further entries of the manifest.
        """
        run = cls(Path(path))
        fresh_path("path", path)
        run._require_bare(spec)
        machine = environment()  # asks JAX for its device, which may not be there
        with writing(run.path):
            is_new = not run.path.exists()
            run.path.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(run.lock())
            except RunLocked:
                raise
            except RunError:  # a file system without locks
                if is_new:
                    with contextlib.suppress(OSError):
                        run.folder.remove(".lock")
                        run.path.rmdir()
                raise
            run._require_bare(spec)
            with writing(run.path):
                run.folder.write("spec.toml", spec.to_toml().encode())
                run.update(
                    format=FORMAT,
                    name=spec.name,
                    status="created",
                    spec_hash=spec.hash,
                    seed=spec.table.get("tokens", spec.table.get("parameters", spec.table.get("fit", {}))).get("seed"),
                    dtype=spec.table.get("precision", "float64"),
                    created=now(),
                    wall_time=0.0,
                    peak_memory=0,
                    **machine,
                    **facts,
                )
            yield run

    def _require_bare(self, spec: AbstractSettings) -> None:
        """Refuse a path where something is, unless it is an empty folder or one that `creating` could not complete."""
        if self.path.exists() and not self._is_bare(spec):
            raise RunExists(
                f"{str(self.path)!r} exists already; choose another --out, continue it with "
                f"`attnflow resume {self.path}`, or remove it."
            )

    def _is_bare(self, spec: AbstractSettings) -> bool:
        names = self.folder.entries() if self.path.is_dir() else ["no folder"]
        if any(name not in CREATING and not is_temporary(name) for name in names):
            return False
        return "spec.toml" not in names or self.folder.read("spec.toml") == spec.to_toml().encode()

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """An existing run folder."""
        if not isinstance(path, str | Path):
            raise InvalidInput(f"`path` is {shown(path)}; give the path of a run folder.")
        run = cls(Path(path))
        run.folder.require_plain("manifest.json")
        if not run.folder.is_file("manifest.json"):
            if (run.path / "sweep.json").is_file():
                raise RunError(f"{str(path)!r} is a sweep, not a run; use `attnflow sweep show {path}`, or open_sweep.")
            raise RunError(f"{str(path)!r} is not a run folder (no manifest.json); `attnflow list` shows the runs.")
        run.manifest()
        return run

    def manifest(self) -> dict[str, Any]:
        """What is known about the run; one that is damaged is refused."""
        try:
            found = parse_json(self.folder.read("manifest.json", LARGEST_TEXT))
        except (OSError, ValueError, RecursionError) as error:
            raise RunCorrupted(
                f"the manifest of {str(self.path)!r} cannot be read ({reason(error)}); run the spec again."
            ) from None
        if isinstance(found, dict) and isinstance(other := found.get("format"), int) and not 1 <= other <= FORMAT:
            raise RunError(f"{str(self.path)!r} was written in format {other}, this version reads {FORMAT}.")
        if fault := damage(found):
            raise RunCorrupted(f"the manifest of {str(self.path)!r} is damaged ({fault}); run the spec again.")
        return {key: value for key, value in found.items() if key != "digest"}

    def facts(self) -> dict[str, Any]:
        """The manifest as things stand now.

        A run whose process is gone, so that its lock is free, is interrupted; it has taken the time up to its last
        checkpoint or part. One that is under way has taken the time up to now.
        """
        manifest = self.manifest()
        if manifest["status"] not in UNDER_WAY:
            return manifest
        if self.is_held() is False:
            return manifest | {"status": "interrupted", "wall_time": self.wall_time(manifest)}
        since = time.time() - manifest["began"] if manifest.get("began") is not None else 0.0
        return manifest | {"wall_time": manifest["wall_time"] + max(0.0, since)}

    def is_held(self) -> bool | None:
        """Whether a process is writing the run at this moment; None where the file system does not tell."""
        return locks.is_held(self.path / ".lock")

    def wall_time(self, manifest: dict[str, Any]) -> float:
        """Seconds that the run has taken; of one that was killed, up to its last checkpoint or part."""
        total, began = float(manifest.get("wall_time", 0.0)), manifest.get("began")
        if manifest.get("status") not in UNDER_WAY or not isinstance(began, int | float):
            return total
        saved = [file for file in (self.checkpoint, *self.path.glob("parts/**/*")) if file.is_file()]
        return total + max(0.0, max((file.stat().st_mtime for file in saved), default=began) - began)

    def update(self, **changes: Any) -> None:
        """Change entries of the manifest, in one atomic step."""
        content = (self.manifest() if self.folder.is_file("manifest.json") else {}) | changes
        content |= {"digest": content_hash(content, ())}
        with writing(self.path):
            self.folder.write("manifest.json", (json.dumps(content, indent=2) + "\n").encode())

    def read_spec(self, parse: Callable[[str], S]) -> S:
        """What `parse` makes of spec.toml; refused if it is not what the run was made with."""
        try:
            spec = parse(self.folder.read("spec.toml", LARGEST_TEXT).decode())
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise RunCorrupted(
                f"spec.toml of {str(self.path)!r} cannot be read ({reason(error)}); run the spec again."
            ) from None
        manifest = self.manifest()
        known = (manifest["spec_hash"], (manifest.get("becoming") or {}).get("spec_hash"))
        if spec.hash not in known and self._hash(manifest) not in known:  # an older version wrote fewer defaults
            raise RunCorrupted(
                f"spec.toml of {str(self.path)!r} was changed after the run began; put it back, or run it elsewhere."
            )
        return spec

    def table(self) -> dict[str, Any]:
        """What spec.toml holds: to be read, not to be run."""
        try:
            return parse_toml(self.folder.read("spec.toml", LARGEST_TEXT))
        except (OSError, ValueError, RecursionError) as error:
            raise RunCorrupted(
                f"spec.toml of {str(self.path)!r} cannot be read ({reason(error)}); run the spec again."
            ) from None

    def _hash(self, manifest: dict[str, Any]) -> str:
        """The hash of spec.toml as it is, with the plugins that the manifest lists."""
        return self._hash_of(self.table(), manifest)

    def _hash_of(self, table: dict[str, Any], manifest: dict[str, Any]) -> str:
        return content_hash(table, sorted(entry["sha256"] for entry in manifest.get("plugins") or []))

    def require_same_spec(self, manifest: dict[str, Any]) -> None:
        """Compare spec.toml, and the plugins that the manifest lists, with the hash that the run was made with."""
        if "experiment" in manifest or manifest.get("becoming"):  # settings have a hash of their own
            return
        if self._hash(manifest) != manifest["spec_hash"]:
            raise RunCorrupted(
                f"spec.toml of {str(self.path)!r} is not the one that the run was made with (its hash differs); put it "
                "back, or run it elsewhere."
            )

    def become(self, spec: AbstractSettings) -> None:
        """Turn a finished run into an interrupted one of a longer `spec`, whatever happens in between."""
        self.update(status="extending", becoming={"spec_hash": spec.hash, "spec": spec.to_toml()})
        self.settle()

    def settle(self) -> None:
        """Complete a `become` that was cut short; refused if the manifest holds another specification than it says."""
        manifest = self.manifest()
        becoming = manifest.get("becoming")
        if not becoming:
            return
        try:
            text, expected = becoming["spec"], becoming["spec_hash"]
            is_same = self._hash_of(parse_toml(text), manifest) == expected
        except (KeyError, TypeError, ValueError, RecursionError):
            is_same = False
        if not is_same:
            raise RunCorrupted(
                f"the manifest of {str(self.path)!r} is damaged (the specification of its extension does not have the "
                "hash that stands beside it); run the spec again."
            )
        with writing(self.path):
            self.folder.write("spec.toml", text.encode())
            none = dict.fromkeys(("becoming", "outcome", "summary", "finished"))
            self.update(status="interrupted", spec_hash=expected, checksums={}, **none)

    @contextlib.contextmanager
    def lock(self) -> "Iterator[Run]":
        """Hold the run, which is yielded, alone; the lock ends with the process, however the process ends."""
        self.folder.require_plain(".lock")
        try:
            lock = locks.take(self.path / ".lock")
        except TimeoutError:
            raise RunLocked(
                f"another process is writing {str(self.path)!r}; wait for it, or choose another --out."
            ) from None
        except (OSError, NotImplementedError) as error:
            raise RunError(
                f"cannot write to {str(self.path)!r} ({getattr(error, 'strerror', None) or error}); copy the run to a "
                "folder that can be written to."
            ) from None
        try:
            yield self
        finally:
            lock.release()

    def seal(self) -> None:
        """Record checksums of everything and mark the run as finished: the last write to the folder."""
        self.remove_temporaries()
        sums = {name: self.folder.checksum(name) for name in self._names()}
        self.update(status="finished", finished=now(), checksums=sums)

    def verify(self) -> None:
        """Compare every file of a finished run with its checksum, and the specification with its hash."""
        manifest = self.manifest()
        sums = manifest.get("checksums") or {}
        if manifest["status"] == "finished" and not sums:
            raise RunCorrupted(
                f"the manifest of {str(self.path)!r} has no checksums although it is finished; run its spec.toml again."
            )
        self.require_same_spec(manifest)
        for name, expected in sums.items():
            self.folder.require_plain(name)
            if not self.folder.is_file(name):
                if name == CHECKPOINT:  # it may be removed to save space; what needs it says so
                    continue
                raise RunCorrupted(f"{name!r} is missing from {str(self.path)!r}; run its spec.toml again.")
            if self.folder.checksum(name) != expected:
                raise RunCorrupted(f"{name!r} of {str(self.path)!r} was altered or truncated; run its spec.toml again.")

    def remove_temporaries(self) -> None:
        """Remove what processes that were killed have left; in parts/ other processes may be at work, so old ones."""
        self.folder.remove_temporaries(except_in="parts")
        self.folder.remove_temporaries("parts", older=STALE)

    def _names(self) -> list[str]:
        """Names of the files that are sealed: a claim may be there while a process looks at a finished part."""
        beside = {"manifest.json", ".lock"}
        return [name for name in self.folder.names() if not (name in beside or is_claim(Path(name)))]


def now() -> str:
    """The present moment, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
