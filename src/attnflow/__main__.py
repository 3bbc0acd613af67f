"""`python -m attnflow` is the command `attnflow`."""

from attnflow.cli import main

if __name__ == "__main__":
    main()
