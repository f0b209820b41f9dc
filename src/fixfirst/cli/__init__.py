"""The command line: a file per command, each a thin shell over a function of `api`."""

from fixfirst.cli.entry import main as main
