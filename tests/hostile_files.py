"""Files that are absurd or hostile, and the doors at which people give them: what is said, in a process with little memory.

`python -m tests.hostile_files FOLDER` makes the files, tries every door and prints a line of JSON for each.
"""

import faulthandler
import hashlib
import io
import json
import os
import resource
import signal
import socket
import sys
import tarfile
import traceback
import zipfile
from pathlib import Path

import numpy as np

import attnflow as af
from attnflow.errors import AttnflowError
from tests.cli.commands import attnflow
from tests.cli.test_bad_input import SPEC

KEPT = Path(__file__).parent / "kept" / "4bf48d24.tar.xz"
LONGEST = 60
"""Seconds until a case is taken for one that never ends."""
SPARE, MEMORY = 384 << 20, Path("/proc/self/statm")
"""Bytes of address space beyond those that the process has when a case begins."""
BOMB, SPARSE = 640 << 20, 1 << 36
"""Bytes of zeros that an archive unpacks to, and of a file that has holes only."""
DEEP = 10**6


class Endless(BaseException):
    """A case that does not end."""


def header(shape, version=1, dtype="<f8"):
    """The start of a file .npy."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text


def archive(path, members, compressed=zipfile.ZIP_DEFLATED):
    """A zip file of members that are bytes, or (start, number of zeros that follow)."""
    with zipfile.ZipFile(path, "w", compressed, compresslevel=1) as file:
        for name, content in members.items():
            start, zeros = content if isinstance(content, tuple) else (content, 0)
            with file.open(name, "w", force_zip64=True) as member:
                member.write(start)
                for _ in range(zeros >> 20):
                    member.write(bytes(1 << 20))
    return path


def sparse(path, start=b""):
    """A file that begins so and goes on with a hole."""
    path.write_bytes(start)
    os.truncate(path, SPARSE)


def strange(folder, name):
    """A pipe, a device, a socket and an endless file of one ending; the words with which each is refused."""
    endings = {}
    for kind in ("pipe", "device", "socket", "holes"):
        path = folder / f"{kind}{name}"
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "socket":
            here = os.getcwd()
            os.chdir(folder)  # an address has 108 characters at most
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path.name)
            os.chdir(here)
        else:
            sparse(path)
        endings[path] = "GB|GiB" if kind == "holes" else "a pipe, a socket or a device"
    return endings


def spec_texts():
    """Texts in TOML, and the words with which each is refused."""
    dotted = ".".join("a" * 20_000)
    return {
        "dotted": (f"{dotted} = 1\n{SPEC}", "a key has more than 16 parts"),
        "quoted": (dotted.replace("a", "'a b'") + f" = 1\n{SPEC}", "a key has more than 16 parts"),
        "header": (f"{SPEC}[{dotted}]\n", "a key has more than 16 parts"),
        "inside": (f"x = {'{a.b.c.d.e = ' * 30}1{'}' * 30}\n{SPEC}", "nested too deeply"),
        "brackets": (f"x = {'[' * DEEP}\n{SPEC}", "nested too deeply"),
        "tables": (SPEC + "".join(f"[t{k}]\n" for k in range(50_000)), "more than 20000 keys"),
        "digits": (f"x = 1{'0' * DEEP}\n{SPEC}", "thousands of digits"),
    }


def arrays(folder):
    """Files of arrays by what they hold, and the words with which they are refused."""
    huge = header((3, 10**12))
    (folder / "huge.npy").write_bytes(huge + bytes(64))
    sparse(folder / "long.npy", b"\x93NUMPY\x03\x00" + (10**9).to_bytes(4, "little"))
    sparse(folder / "wide.npy", b"\x93NUMPY\x02\x00" + (10**9).to_bytes(4, "little"))
    archive(folder / "zipped.npy", {"positions.npy": header((2, 2)) + bytes(32)})
    archive(folder / "huge.npz", {"positions.npy": huge + bytes(64)})
    archive(folder / "empty.npz", {"positions.npy": header((0, 10**17))})
    archive(folder / "bomb.npz", {"positions.npy": (header((BOMB // 16, 2)), BOMB)})
    (folder / "both.npz").write_bytes(huge + archive(folder / "inner", {"positions.npy": huge}).read_bytes())
    np.savez(folder / "objects.npz", positions=np.array([{}], object))
    return {
        "huge.npy": "promises 24 TB and has 64 bytes",
        "long.npy": "is no array of NumPy",
        "wide.npy": "has a header of 1 GB",
        "zipped.npy": "is no array of NumPy",
        "huge.npz": "promises 24 TB",
        "empty.npz": "has the shape",
        "bomb.npz": "unpack to 671 MB",
        "both.npz": "no archive of NumPy",
        "objects.npz": "objects of Python",
    }


def folders(root):
    """Folders of a run, a sweep and a run that was killed, each with one hostile file."""
    with tarfile.open(KEPT) as tar:
        tar.extractall(root, [one for one in tar if "runs/solve/" in one.name], filter="data")
    (root / "sweep").mkdir()
    (root / "sweep" / "sweep.json").write_text("[" * DEEP)
    finished, killed = root / "runs" / "solve" / "finished", root / "runs" / "solve" / "killed"
    (finished / "manifest.json").write_text('{"a":' * DEEP)
    content = io.BytesIO()
    archive(content, {"facts.npy": header((BOMB // 4,), dtype="<u4"), "leaf0.npy": (header((BOMB // 8,)), BOMB)})
    magic = (killed / "checkpoint").read_bytes().partition(b"\n")[0][:-64]
    digest = hashlib.sha256(content.getvalue()).hexdigest().encode()
    (killed / "checkpoint").write_bytes(magic + digest + b"\n" + content.getvalue())
    return root / "sweep", finished, killed


def cases(root):
    """(name, what is done, words of the sentence) of every case; a list is a command line."""
    made = {ending: root / ending for ending in ("toml", "tokens", "json", "py", "npz", "weights", "txt")}
    for folder in made.values():
        folder.mkdir()
    for path, words in strange(made["toml"], ".toml").items():
        yield f"load_spec {path.name}", lambda path=path: af.runs.load_spec(path), words
        yield f"run {path.name}", ["run", path], words
    yield "sweep", ["sweep", made["toml"] / "pipe.toml", "--over", "field.beta=1,2"], "a pipe"
    slurm = ["--over", "field.beta=1,2", "--on", "slurm", "--configuration", made["toml"] / "pipe.toml"]
    yield "sweep --configuration", ["sweep", root / "s.toml", *slurm], "a pipe"
    for name, (text, words) in spec_texts().items():
        path = root / f"{name}.toml"
        path.write_text(text)
        yield f"run {name}", ["run", path], words
    yield "--set", ["run", root / "s.toml", "--set", f"field.beta={'[' * 100_000}"], "beta"
    yield "sweep dotted", ["sweep", root / "dotted.toml", "--over", "field.beta=1,2"], "16 parts"
    files = strange(made["tokens"], ".csv") | strange(made["tokens"], ".npy") | strange(made["tokens"], ".npz")
    files |= {made["tokens"] / name: words for name, words in arrays(made["tokens"]).items()}
    for path, words in files.items():
        text = SPEC.replace('name = "uniform"', f'name = "file"\npath = "{path}"').replace("n = 4\nseed = 0\n", "")
        (root / f"{path.name}.toml").write_text(text)
        yield f"from_file {path.name}", lambda path=path: af.from_file(path), words + "|no archive|no array"
        yield f"tokens {path.name}", ["run", root / f"{path.name}.toml"], words + "|has 68.7 GB"
    for name in ("huge.npz", "bomb.npz", "pipe.npz"):
        path = made["tokens"] / name
        yield f"schedule {name}", lambda path=path: af.control.load(path), "is no file of a schedule"
    yield "stream", lambda: af.probe.open_stream(made["tokens"] / "bomb.npz"), "unpack to 671 MB"
    for path, words in strange(made["json"], ".json").items():
        yield f"check {path.name}", ["check", path], words
        yield f"load {path.name}", lambda path=path: af.certify.Certificate.load(path), words
    (root / "deep.json").write_text("[" * DEEP)
    (root / "digits.json").write_text('{"format": 1' + "0" * DEEP + "}")
    yield "check deep", ["check", root / "deep.json"], "nested too deeply"
    yield "check digits", ["check", root / "digits.json"], "thousands of digits"
    for path, words in strange(made["py"], ".py").items():
        yield f"--plugin {path.name}", ["run", root / "s.toml", "--plugin", path], words
        yield f"reproduce {path.name}", ["reproduce", path], words
    for path, words in strange(made["weights"], ".gguf").items():
        yield f"network {path.name}", lambda path=path: af.probe.network(path), words + "|neither GGUF|is no file"
    for path, words in strange(made["txt"], ".txt").items():
        yield f"--text {path.name}", ["probe", "run", "random-llama", "--text", path], words
        yield f"--corpus {path.name}", ["text", "a b", "--corpus", path], words
    sweep, finished, killed = folders(root)
    yield "sweep show", ["sweep", "show", sweep], "nested too deeply"
    yield "show", ["show", finished], "nested too deeply"
    yield "resume", ["resume", killed], "packed in another way"


def answer(door):
    """The sentence that a door says, or a traceback."""
    try:
        if callable(door):
            door()
            return "nothing was refused"
        done = attnflow(*map(str, door), cwd=Path.cwd())
        is_sentence = done.returncode and done.stderr.count("error: ") == 1
        return " ".join(done.stderr.split()) if is_sentence else f"Traceback? {done}"
    except AttnflowError as error:
        return str(error)
    except BaseException:
        return traceback.format_exc()[-1500:]


def stop(*_):
    raise Endless


def main():
    root = Path(sys.argv[1])
    (root / "s.toml").write_text(SPEC)
    for door in (["run", root / "s.toml", "--out", root / "o", "--no-figures"], ["show", root / "o"], ["text", "a b"]):
        attnflow(*map(str, door), cwd=root)  # what is imported later counts as memory of a case
    os.chdir(root)
    signal.signal(signal.SIGALRM, stop)
    for name, door, words in cases(root):
        used = int(MEMORY.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, resource.RLIM_INFINITY))
        faulthandler.dump_traceback_later(2 * LONGEST, exit=True)
        signal.alarm(LONGEST)
        said = answer(door)
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(json.dumps({"case": name, "said": said, "words": words}), flush=True)


if __name__ == "__main__":
    main()
