"""The command line: a file per command, each a thin shell over a function of `api`."""

# ruff: noqa: E402  Ctrl-C is answered before anything else is imported
from fixfirst.cli.starting import answer_interrupts

answer_interrupts()

from fixfirst.cli.entry import main as main
