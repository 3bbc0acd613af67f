"""The command line."""

from attnflow.cli.main import app, main

__all__ = ["app", "main"]
