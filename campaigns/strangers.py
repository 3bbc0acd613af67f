"""What do folders do that died, were damaged, or come from a stranger? An hour on two cores; part of `make long`.

    python campaigns/strangers.py                                 1,000 kills and 10,000 damages, the record of today
    python campaigns/strangers.py --part 1/6 --minutes 20         a share; the same command again goes on
    python campaigns/strangers.py --only "damage 17"              one case again, with everything that it says

Kills: activities (runs, extensions, figures, sweeps, experiments, streams, certificates) are stopped before a random
change of a file, or in the middle of a write, up to four times in a row; some are processes that are really killed.
What is left is read, and then carried on: rows that are there must be those of a whole folder, and so must the result.
Damages: a copy of a folder or a file is damaged in one of the ways of `_damages.py` and entered by some of the doors of
`_doors.py`. A door may give what it gives on the whole folder, or refuse in one sentence. It may not give other
numbers, end in a traceback, take more than a minute or a GiB, touch or read a file outside, or put markup of a stranger
into a page. Exit code 1 if one does. All cases are drawn from the seed; each is known by its number.
"""

import argparse
import collections
import contextlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Any

import _record

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
SEED = 50
SILENCE = 200.0
"""Seconds without a word from the worker after which it is ended, and its case is a hang."""
MOST_FINDINGS = 100
"""Findings of one kind of folder, damage, door and outcome that are kept: one; of all: this many."""
REAL = 0.08
"""The share of deaths that are those of processes, where activities have them."""
KILLED = ("run solve", "run evolve", "run train", "extend solve", "sweep", "experiment")
"""Activities of which processes are killed."""
ACTIVE = {
    "run solve": 12, "run solve_long": 10, "run evolve": 10, "run train": 10, "run probe": 8, "run fit": 4,
    "extend solve": 6, "extend solve_long": 4, "extend evolve": 4, "extend train": 5, "extend probe": 5,
    "extend fit": 2,
    "report solve": 1, "sweep": 8, "sweep wider": 5, "experiment": 6, "stream npz": 2, "stream safetensors": 2,
    "certificate": 1,
}  # fmt: skip
"""Weights of activities among deaths."""
FOLDERS = {
    "run solve": 12, "run solve_long": 6, "run evolve": 6, "run train": 8, "run probe": 8, "run fit": 4,
    "run labelled": 8, "part solve": 6, "part train": 5, "part evolve": 3, "part probe": 5, "sweep": 12,
    "part sweep": 4, "experiment": 8,
    "part experiment": 3, "stream npz": 5, "stream safetensors": 5, "certificate": 3, "certificate flow": 2,
}  # fmt: skip
"""Weights of specimens among damages."""
RIGHT_WITH_LITTER = "right, with litter"
"""Of a sweep or a file: a temporary file or a claim of a process that was killed may stay, since another process may
own it."""
NUMERICS = ("attnflow", "jax", "numpy", "xarray", "zarr", "numcodecs")
COMPLETE = ("resume", "attnflow resume", "extend", "redraw", "report", "sweep")
"""Doors after which a folder must be whole."""
Case = dict[str, Any]


class Place:
    """Where a campaign works: specimens, journals and programs that are compiled once."""

    def __init__(self, path: Path):
        self.path = path
        self.wholes, self.twins, self.journals = path / "whole", path / "twin", path / "journals"
        for folder in (self.wholes, self.twins, self.journals):
            folder.mkdir(parents=True, exist_ok=True)

    def cases(self) -> dict[str, Case]:
        """All cases that were done so far, by their names."""
        cases: dict[str, Case] = {}
        for journal in sorted(self.journals.glob("*.jsonl")):
            for line in journal.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):  # the line that a death cut short
                    case = json.loads(line)
                    cases[case["case"]] = case
        return cases


def furnish(place: Place) -> None:
    """Make all specimens and their twins, once."""
    from tests.sweeps.tasks import unequal

    import _specimens as s
    import attnflow as af
    from _doors import unfinished
    from attnflow import certify, experiments
    from attnflow.runs import execute

    def once(path: Path, make: Any) -> None:
        if not path.exists():
            draft = path.with_name(f"draft-{os.getpid()}{path.suffix}")
            shutil.rmtree(draft, ignore_errors=True)
            make(draft)
            with contextlib.suppress(OSError):  # another part was first
                draft.rename(path)

    def interrupted(path: Path) -> None:
        def stop(progress: Any) -> None:
            if progress.done >= 3:
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            af.sweep(unequal, s.SWEPT, path, workers=2, on_progress=stop)

    for kind in s.texts():
        once(place.wholes / f"run {kind}", s._run(kind, drawn=kind == "labelled"))
        once(place.twins / f"run {kind}", lambda path, kind=kind: execute(s.spec(kind, twin=True), path))
    for kind in ("solve", "train", "evolve", "probe"):
        once(place.wholes / f"part {kind}", lambda path, kind=kind: unfinished(kind, path))
    for name in ("sweep", "experiment"):
        once(place.wholes / name, s.ACTIVITIES[name].carry_on)
    once(place.twins / "sweep", lambda path: af.sweep(unequal, {"a": "range(4,8)", "b": ["x", "y"]}, path, workers=2))
    once(place.wholes / "part sweep", interrupted)
    tiny = experiments.look_up(s.tiny_file())
    chosen = tiny.module().Parameters(size=100, seed=4)
    once(place.twins / "experiment", lambda path: experiments.reproduce(tiny, path, parameters=chosen))

    def half(path: Path) -> None:
        os.environ["TINY"] = "break"
        with contextlib.suppress(ZeroDivisionError):
            experiments.reproduce(s.tiny_file(), path, quick=True)
        os.environ["TINY"] = ""

    once(place.wholes / "part experiment", half)
    for suffix in (".npz", ".safetensors"):
        once(place.wholes / f"stream {suffix[1:]}{suffix}", s.stream(0).save)
        once(place.twins / f"stream {suffix[1:]}{suffix}", s.stream(1).save)
    once(place.wholes / "certificate.json", certify.unstable_modes(9.0, 3, 0.01).save)
    once(place.twins / "certificate.json", certify.unstable_modes(9.0, 4, 0.01).save)
    for where in (place.wholes, place.twins):
        source = ROOT / "docs" / "certificates" / ("flow.json" if where == place.wholes else "consensus.json")
        once(where / "certificate flow.json", lambda path, source=source: s.copy(source, path))
    for name, activity in s.ACTIVITIES.items():
        if activity.before:
            target = place.wholes / f"after {name}{activity.suffix}"
            source = place.wholes / f"{activity.before}{activity.suffix}"
            once(target, lambda path, source=source, activity=activity: activity.carry_on(s.copy(source, path)))


class Worker:
    """Does cases in this process, one after the other.

    Arguments:
        place: of the campaign.
        seed: from which all cases are drawn.
    """

    def __init__(self, place: Place, seed: int):
        from _deaths import Killer
        from _doors import Outside

        self.place, self.seed = place, seed
        self.work = place.path / f"work-{os.getpid()}"
        self.here, self.outside = self.work / "here", Outside(self.work / "outside")
        self.here.mkdir(parents=True, exist_ok=True)
        self.outside.lay()
        os.chdir(self.here)
        os.environ["HOME"] = str(self.outside.path / "home")
        os.environ["XDG_CACHE_HOME"] = str(self.work / "cache")
        self.killer = Killer(place.path / "times.json")
        self.references: dict[str, dict[str, Any]] = {}
        self.prints: dict[tuple[str, str], str | None] = {}

    def chance(self, case: str) -> random.Random:
        """The random numbers of a case."""
        return random.Random(f"{self.seed} {case}")

    def reference(self, name: str, family: str) -> dict[str, Any]:
        """Everything that a whole specimen says."""
        import _specimens as s

        if name not in self.references:
            path = next(path for path in self.place.wholes.glob(f"{name}*") if path.stem == name or path.name == name)
            self.references[name] = s.READERS[family](path)
        return self.references[name]

    # damages

    def damage(self, case: str) -> Case:
        """Damage a copy of a specimen, and enter it by some doors."""
        import _damages as d
        import _doors

        rng = self.chance(case)
        name = rng.choices(list(FOLDERS), list(FOLDERS.values()))[0]
        kind, family = name.rpartition(" ")[2] if name.partition(" ")[0] in ("run", "part") else name, _family(name)
        finished = not name.startswith("part ")
        source = _path_of(self.place.wholes, name)
        whole = name if finished else name.replace("part ", "run " if family == "run" else "")
        victim = self.copied(source)
        twin = _path_of(self.place.twins, whole)
        said, damage = None, ""
        while said is None:
            damage = rng.choice(sorted(d.WAYS))
            said = d.WAYS[damage](rng, d.Victim(victim, family, twin, self.outside.path))
        references = [self.reference(whole, family)]
        if not finished and family == "run":
            references.append(self.reference(name, family))
        if f"after extend {kind}" in {path.name for path in self.place.wholes.iterdir()} and family == "run":
            references.append(self.reference(f"after extend {kind}", family))
        if family == "stream":
            references.append(self.reference(f"after {name}", family))
        choice = _doors.doors(family, kind, finished)
        weights = {door: weight for door, (weight, _) in choice.items()}
        names = set(rng.choices(list(weights), list(weights.values()), k=2 if rng.random() < 0.5 else 1))
        forged = damage in d.FORGED or said == "manifest.json"  # that of another folder is a whole one
        answers = {}
        for door in ["read", *(door for door in choice if door in names)]:
            told = finished and door.startswith(("show", "list"))  # an unfinished folder may have lost its rows
            text = self.printed(name, door, choice[door][1], source) if told else None
            partial = (not finished or family == "sweep") and door not in COMPLETE
            before = self.outside.state()
            outcome, detail = _doors.visit(choice[door][1], victim, references, text, forged, partial)
            after = self.outside.state()
            if after != before:
                changed = sorted(set(before.items()) ^ set(after.items()), key=str)[:3]
                outcome, detail = "outside touched", f"{[entry[0] for entry in changed]} ({outcome}: {detail})"
            elif marked := list(_doors.pages(self.here)):
                outcome, detail = "markup in a page", str(marked)
            answers[door] = [outcome, detail]
        _doors.open_pipes(self.work)
        stray = {path.name for path in self.here.iterdir()} - {victim.name, f"{victim.stem}.html", "runs.html"}
        stray -= {f".{victim.name}.part", f"{victim.name}.tmp", f".{victim.name}.tmp", f".{victim.stem}.partial.html"}
        if stray - {f".{victim.stem}.html.tmp"}:
            answers["stray"] = ["outside touched", f"left beside the folder: {sorted(stray)}"]
        return {"what": "damage", "folder": name, "how": damage, "said": said, "answers": answers}

    def clear(self) -> None:
        """Remove the working folder, and lay the files outside anew."""
        os.chdir(self.work)
        _remove(self.here)
        self.outside.lay()

    def copied(self, source: Path) -> Path:
        """A fresh copy of a specimen, alone in the working folder."""
        import _specimens as s

        self.clear()
        self.here.mkdir()
        os.chdir(self.here)
        return s.copy(source, self.here / f"it{source.suffix}")

    def printed(self, name: str, door: str, act: Any, source: Path) -> str | None:
        """What a command prints on the undamaged folder at the same place."""
        if (name, door) not in self.prints:
            aside = self.work / "aside"
            os.chdir(self.work)
            self.here.rename(aside)
            self.here.mkdir()
            os.chdir(self.here)
            import _specimens as s

            answer = act(s.copy(source, self.here / f"it{source.suffix}"))
            self.prints[name, door] = answer if isinstance(answer, str) else None
            os.chdir(self.work)
            _remove(self.here)
            aside.rename(self.here)
            os.chdir(self.here)
        return self.prints[name, door]

    # deaths

    def deaths(self, cases: list[str], write: Any, late: Any) -> None:
        """Do all cases of deaths, those of one activity together."""
        import _deaths

        drawn: dict[str, dict[str, random.Random]] = collections.defaultdict(dict)
        for case in cases:
            rng = self.chance(case)
            name = rng.choices(list(ACTIVE), list(ACTIVE.values()))[0]
            drawn[name][case] = rng
        counts: dict[str, int] = {}
        for name, chances in drawn.items():
            copied = {}
            for case, rng in chances.items():
                real, fraction = rng.random() < REAL, rng.random()
                if real and name in KILLED:
                    if late():
                        return
                    write(case, lambda case=case, rng=rng, name=name: self.real_death(name, rng))
                else:
                    copied[case] = fraction
            if late():
                return
            import _specimens as s

            numbers = dict(enumerate(copied.values()))
            place = self.work / "dying"
            counts[name], states = _deaths.states(
                s.ACTIVITIES[name], numbers, place, self.place.wholes, counts.get(name)
            )
            for number, case in enumerate(copied):
                if late():
                    break
                state = states.get(number)
                write(case, lambda s=state, n=name, r=chances[case], c=counts[name]: self.death(n, r, c, s))
            shutil.rmtree(place, ignore_errors=True)

    def death(self, name: str, rng: random.Random, count: int, state: tuple[Path, str] | None) -> Case:
        """Read a copied state, let it die again or not, and carry it on."""
        import _deaths
        import _specimens as s

        activity, how = s.ACTIVITIES[name], "between two changes"
        self.clear()
        if state is None or not state[0].exists():
            self.here.mkdir()
        else:
            shutil.copytree(state[0], self.here, symlinks=True)
        os.chdir(self.here)
        if rng.random() < 0.5 and state is not None and state[1]:
            _deaths.tear(self.here, state[1], rng.random())
            how = "in the middle of a write"
        _deaths.forget_owners(self.here)
        answers = self.looked(name)
        for _ in range(rng.choice([0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3])):
            _deaths.died_again(activity, self.here, rng.randrange(max(count, 1)))
            how = "several times"
            os.chdir(self.here)
        return {"what": "kill", "folder": name, "how": how, "said": "", "answers": answers | self.carried_on(name)}

    def real_death(self, name: str, rng: random.Random) -> Case:
        """Kill processes, read what is left, and carry it on."""
        import _deaths
        import _specimens as s

        self.clear()
        seconds = self.killer.seconds(name, self.here, self.place.wholes)
        path = _deaths.begin(s.ACTIVITIES[name], self.here, self.place.wholes)
        os.chdir(self.here)
        deaths = self.killer.kill_in_a_row(name, path, rng, seconds)
        answers = self.looked(name)
        said = f"{deaths} deaths"
        return {
            "what": "kill",
            "folder": name,
            "how": "SIGKILL",
            "said": said,
            "answers": answers | self.carried_on(name),
        }

    def looked(self, name: str) -> dict[str, list[str]]:
        """What a folder says before it is carried on."""
        import _doors
        import _specimens as s

        activity = s.ACTIVITIES[name]
        path = self.here / f"it{activity.suffix}"
        references = [self.reference(f"after {name}" if activity.before else name, activity.family)]
        if activity.before:
            references.append(self.reference(activity.before, activity.family))
        answers = {"read": list(_doors.visit(s.READERS[activity.family], path, references, None, False, True))}
        show = {"run": ("show",), "experiment": ("show",), "sweep": ("sweep", "show")}.get(activity.family)
        if show and path.exists():
            door = lambda path: [_doors.command(*show, path.name)]  # noqa: E731
            answers["show"] = list(_doors.visit(door, path, [], None, False, True))
        return answers

    def carried_on(self, name: str) -> dict[str, list[str]]:
        """Carry an activity to its end, and compare."""
        import _doors
        import _specimens as s

        activity = s.ACTIVITIES[name]
        path = self.here / f"it{activity.suffix}"
        whole = f"after {name}" if activity.before else name

        def door(path: Path) -> Any:
            activity.carry_on(path)
            return s.READERS[activity.family](path)

        before = self.outside.state()
        outcome, detail = _doors.visit(door, path, [self.reference(whole, activity.family)], None, False, False)
        if outcome == "refused":
            outcome = "not carried on"
        if outcome == "right" and (left := _litter(path, _path_of(self.place.wholes, whole))):
            outcome, detail = ("litter" if activity.family in ("run", "experiment") else RIGHT_WITH_LITTER), left
        if self.outside.state() != before:
            outcome, detail = "outside touched", detail
        return {"carry on": [outcome, detail]}


def _litter(path: Path, whole: Path) -> str:
    """Files that a whole folder has not, or that are missing; names of shards and journals differ from run to run."""
    if path.is_file():
        strays = sorted(entry.name for entry in path.parent.iterdir() if entry != path)
        return f"beside it: {strays}" if strays else ""

    def names(folder: Path) -> set[str]:
        entries = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
        return {name for name in entries if not name.startswith("journal/") and name != ".lock"}

    return ", ".join(sorted(names(path) ^ names(whole)))[:300]


def _family(name: str) -> str:
    first = name.partition(" ")[0]
    return "run" if first == "run" else name.split()[1] if name in ("part sweep", "part experiment") else (
        "run" if first == "part" else first
    )  # fmt: skip


def _path_of(folder: Path, name: str) -> Path:
    return next(path for path in folder.iterdir() if path.name == name or path.stem == name)


def _remove(path: Path) -> None:
    if path.exists():
        from _doors import open_pipes

        open_pipes(path)
        shutil.rmtree(path, ignore_errors=True)


def names_of(options: argparse.Namespace) -> list[str]:
    """Names of the cases of this part."""
    share, shares = map(int, options.part.split("/"))
    names = [f"kill {n}" for n in range(options.kills)] + [f"damage {n}" for n in range(options.damages)]
    return names[share - 1 :: shares]


def worker(options: argparse.Namespace, place: Place) -> None:
    """Do the cases of a part that are not done yet."""
    from _doors import limit_memory
    from attnflow.runs import claims
    from attnflow.sweeps import collection

    claims.Watch.__init__.__defaults__ = (1.0,)  # type: ignore[misc]
    collection.PATIENCE = 1.0
    furnish(place)
    crew = Worker(place, options.seed)
    facts = {name: version(name) for name in NUMERICS} | {"python": platform.python_version()}
    (place.path / f"versions-{platform.python_version()}.json").write_text(json.dumps(facts))
    limit_memory()
    done = place.cases()
    wanted = options.only or [name for name in names_of(options) if name not in done]
    until = time.monotonic() + 60 * options.minutes
    journal = place.journals / f"{options.part.replace('/', '-of-')}.jsonl"

    def late() -> bool:
        return time.monotonic() > until

    def write(case: str, act: Any) -> None:
        (place.path / f"now-{options.part.replace('/', '-of-')}").write_text(case)
        began = time.monotonic()
        try:
            done = act()
        except Exception as error:  # of the campaign itself
            os.chdir(place.path)
            told = "".join(traceback.format_exception(error))[-600:]
            done = {"what": case.split()[0], "folder": "?", "how": "?", "said": ""}
            done["answers"] = {"campaign": ["raw exception", told]}
        entry = {"case": case} | done | {"seconds": round(time.monotonic() - began, 2)}
        if options.only:
            print(json.dumps(entry), flush=True)
            return
        with journal.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")

    crew.deaths([case for case in wanted if case.startswith("kill")], write, late)
    for case in wanted:
        if case.startswith("damage") and not late():
            write(case, lambda case=case: crew.damage(case))
    os.chdir(place.path)
    _remove(crew.work)


def watched(options: argparse.Namespace, place: Place) -> None:
    """Run a worker in a process, end it where it stands still, and begin another one after its case."""
    now = place.path / f"now-{options.part.replace('/', '-of-')}"
    journal = place.journals / f"{options.part.replace('/', '-of-')}.jsonl"
    until = time.monotonic() + 60 * options.minutes
    while True:
        left = (until - time.monotonic()) / 60
        done = place.cases()
        missing = [name for name in names_of(options) if name not in done]
        if left <= 0 or not missing:
            return
        now.write_text("")
        line = [sys.executable, __file__, "--worker", "--part", options.part, "--minutes", str(left)]
        line += ["--kills", str(options.kills), "--damages", str(options.damages), "--seed", str(options.seed)]
        child = subprocess.Popen([*line, "--place", str(place.path)], start_new_session=True)
        said = time.monotonic()
        try:
            while child.poll() is None:
                time.sleep(1.0)
                if time.time() - now.stat().st_mtime > SILENCE and now.read_text():
                    break
                if time.monotonic() - said > 60:
                    said = time.monotonic()
                    print(f"part {options.part}: {_progress(options, place)}", flush=True)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if child.returncode == 0:
            continue
        if not (case := now.read_text()):
            raise SystemExit("the worker ended before its first case.")
        hung = child.returncode == -signal.SIGKILL
        answer = ["hang", f"no answer in {SILENCE} s"] if hung else ["raw exception", f"exit code {child.returncode}"]
        entry = {"case": case, "what": case.split()[0], "folder": "?", "how": "?", "said": "", "answers": {"?": answer}}
        with journal.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")


def _progress(options: argparse.Namespace, place: Place) -> str:
    names, cases = names_of(options), place.cases()
    done = [cases[name] for name in names if name in cases]
    bad = sum(worst(case) in _forbidden() for case in done)
    return f"{len(done)} of {len(names)} cases, {bad} with a finding"


def _forbidden() -> tuple[str, ...]:
    from _doors import FORBIDDEN

    return (*FORBIDDEN, "not carried on", "litter")


def worst(case: Case) -> str:
    """The outcome of a case: of the outcomes of its doors the worst."""
    order = ("right", RIGHT_WITH_LITTER, "another valid folder", "refused", *_forbidden())
    return max((outcome for outcome, _ in case["answers"].values()), key=order.index)


def summary(cases: dict[str, Case]) -> dict[str, Any]:
    """Counts by kind of folder, damage and outcome, counts by door, and one finding of each kind."""
    counts: dict[str, Any] = {"kills": {}, "damages": {}}
    doors: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    findings: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, case in sorted(cases.items(), key=lambda item: (item[0].split()[0], int(item[0].split()[1]))):
        table = counts[f"{case['what']}s"].setdefault(case["folder"], {}).setdefault(case["how"], {})
        table[worst(case)] = table.get(worst(case), 0) + 1
        for door, (outcome, detail) in case["answers"].items():
            doors[door][outcome] += 1
            if outcome in _forbidden():
                key = (case["folder"].split()[0], case["how"], door, outcome, detail[:40])
                entry = {"case": name, "folder": case["folder"], "how": case["how"], "said": case["said"]}
                findings.setdefault(key, entry | {"door": door, "outcome": outcome, "detail": detail[:300], "times": 0})
                findings[key]["times"] += 1
    listed = sorted(findings.values(), key=lambda finding: -finding["times"])
    return counts | {"doors": {door: dict(tally) for door, tally in doors.items()}, "findings": listed[:MOST_FINDINGS]}


def table(cases: dict[str, Case]) -> str:
    """Outcomes of all ways to die or to be damaged, as text."""
    rows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for case in cases.values():
        rows[f"{case['what']}: {case['how']}"][worst(case)] += 1
        rows[f"{case['what']}s"][worst(case)] += 1
    outcomes = sorted({outcome for row in rows.values() for outcome in row})
    lines = [" " * 42 + "  ".join(outcomes)]
    for name, row in sorted(rows.items()):
        lines.append(f"{name:42}" + "  ".join(f"{row[outcome]:>{len(outcome)}}" for outcome in outcomes))
    return "\n".join(lines)


def main() -> int:
    """Run the campaign or a part of it; write the record when all cases are done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--damages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--part", default="1/1", help="K/N: every N-th case from the K-th on (1 to N)")
    parser.add_argument("--minutes", type=float, default=600.0, help="end after this time; the same command goes on")
    parser.add_argument("--only", nargs="+", help='cases such as "damage 17", with all their answers')
    parser.add_argument("--place", type=Path, help="where specimens and journals are kept; default /dev/shm or /tmp")
    parser.add_argument("--record", type=Path, help="default: campaigns/records/strangers-DATE.json")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    source = _record.of_folder(ROOT)
    quick = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
    place = Place(options.place or quick / f"attnflow-strangers-{options.seed}-{source}")
    os.environ |= {
        "JAX_COMPILATION_CACHE_DIR": str(quick / "attnflow-strangers-compiled"),
        "TINY_LOG": os.devnull,
        "TINY": "",
    }
    os.environ |= {
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "MPLCONFIGDIR": str(quick / "attnflow-strangers-fonts"),
    }
    os.environ |= {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}:{ROOT / 'campaigns'}", "STRANGERS": str(place.path)}
    os.environ |= {"ATTNFLOW_PROGRESS": "off", "JAX_PLATFORMS": "cpu"}
    sys.path.insert(0, str(ROOT / "campaigns"))
    if options.worker or options.only:
        worker(options, place)
        return 0
    path, record = _record.begin(ROOT, "strangers", options.record, seed=options.seed)
    watched(options, place)
    cases = place.cases()
    wanted = [f"kill {n}" for n in range(options.kills)] + [f"damage {n}" for n in range(options.damages)]
    missing = sum(name not in cases for name in wanted)
    cases = {name: cases[name] for name in wanted if name in cases}
    counts = summary(cases)
    print(table(cases))
    for finding in counts["findings"][:30]:
        print(json.dumps(finding))
    print(f"cases and specimens are in {place.path}; {missing} of {len(wanted)} cases are to be done.")
    if not missing:
        from _damages import WAYS

        versions = [json.loads(file.read_text()) for file in sorted(place.path.glob("versions-*.json"))]
        record |= {"versions": versions} | counts
        record |= {"folders": list(FOLDERS), "ways": sorted(WAYS)}
        record |= {"cases": {"kills": options.kills, "damages": options.damages}}
        _record.save(record, path)
        print(f"wrote {path}")
    return int(bool(counts["findings"]))


if __name__ == "__main__":
    sys.exit(main())
