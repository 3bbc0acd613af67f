"""All words of specifications: part -> name -> what makes it; the package has this table in one place, for itself."""

from attnflow.runs.registry import REGISTRY

__all__ = ["REGISTRY"]
