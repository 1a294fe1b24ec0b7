"""`python -m hopbound`."""

from hopbound.cli.main import run

run()
