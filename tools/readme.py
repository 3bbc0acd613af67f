"""The README as a package index shows it: its links lead to the repository, at the tag of the version."""

import re

LINK = re.compile(r"(!?\[[^\]]*\]\()(?![a-z]+:|#)([^)\s]+\))")
HOME = "github.com/attnflow/attnflow"


def absolute(text: str, version: str) -> str:
    """The text with addresses that hold everywhere; pictures come as files, pages as a code host shows them."""

    def one(found: re.Match[str]) -> str:
        picture = found[1].startswith("!")
        start = (
            f"https://raw.{HOME.replace('github.com', 'githubusercontent.com')}" if picture else f"https://{HOME}/blob"
        )
        return f"{found[1]}{start}/v{version}/{found[2]}"

    return LINK.sub(one, text)


def relative(text: str) -> list[str]:
    """Addresses that hold in the repository alone."""
    return [found[2].rstrip(")") for found in LINK.finditer(text)]
