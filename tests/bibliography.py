"""The page of references, made from the bibliography: `python -m tests.bibliography` writes it."""

from pathlib import Path

from attnflow import references

PATH = Path(__file__).parent.parent / "docs" / "references.md"

if __name__ == "__main__":
    PATH.write_text(references.page(), encoding="utf-8")
