"""`fixfirst record`: CybORG written down."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fixfirst.cli.app import CyborgFlag, Json, print_json, say
from fixfirst.cyborg import checkout, recorder


def record_command(
    *,
    out: Path,
    cyborg: CyborgFlag = None,
    settings: Annotated[recorder.Recording, Parameter(name="*")] = recorder.Recording(),
    as_json: Json = False,
) -> None:
    """Play CybORG, write down every step and every chance decision; then `fixfirst conform FILE` replays it.

    Parameters
    ----------
    out
        The recording to write, .jsonl.gz or .jsonl.
    """
    summary = recorder.record(checkout.find_cyborg(cyborg), out, settings, say=say)
    if as_json:
        print_json(asdict(summary))
        return
    who = f"{summary.cyborg.variant} ({summary.cyborg.commit or summary.cyborg.version})"
    stopped = f"; it stopped in {summary.stops} of them" if summary.stops else ""
    print(f"{summary.file}: {summary.episodes:,} episodes, {summary.steps:,} steps of CybORG, variant {who}{stopped}")
