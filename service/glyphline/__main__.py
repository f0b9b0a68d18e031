"""Runs the command line: `python -m glyphline`."""

from glyphline.cli import main

if __name__ == "__main__":  # worker processes import this module and must not start the command again
    main()
