"""`fixfirst record`: CybORG written down; `fixfirst conform`: is our simulator the game that was recorded?"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fixfirst.base import compile as machine_code
from fixfirst.cli.app import CyborgFlag, Json, print_json, say
from fixfirst.cyborg import checkout, recorder, recordings


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


def conform_command(files: Annotated[list[Path], Parameter(negative="")], /, *, as_json: Json = False) -> int:
    """Replay recorded CybORG episodes through the simulator and compare every step.

    Exit code 0: all equal; 1: something differs; 2: a file cannot be read.

    Parameters
    ----------
    files
        Recordings (.jsonl or .jsonl.gz, see tests/conformance/README.md), e.g. tests/conformance/*.jsonl.gz
    """
    machine_code.announce_compilation()
    width = min(36, max(len(path.name) for path in files))
    reports = []
    for path in files:
        reports.append(recordings.check_file(path))
        if not as_json:
            _print_counts(path.name, width, reports[-1].counts)
    total = sum(reports[1:], start=reports[0])
    first = total.mismatches[0] if total.mismatches else None
    if as_json:
        rows = [{"file": path.name, **report.counts} for path, report in zip(files, reports, strict=True)]
        print_json({**total.counts, "first_mismatch": vars(first) if first else None, "files": rows})
    else:
        _print_counts("total", width, total.counts)
        for coincidence in total.coincidences:
            print(f"coincidence of process ids, which the model leaves out: {coincidence}")
        if first:
            print(f"first mismatch: {first}")
    return 1 if first else 0


def _print_counts(name: str, width: int, counts: dict[str, int]) -> None:
    counts = {what: count for what, count in counts.items() if count or what != "coincidences"}
    columns = (f"{count:{6 if what == 'episodes' else 5},} {what}" for what, count in counts.items())
    print(f"{name:{width}}", *columns, flush=True)
