"""Finished runs of the version before open, or are refused in one line."""

import tarfile
from pathlib import Path

import pytest

import fixfirst as ff
from fixfirst.reporter.report import report_document

OTHER_COLUMNS = "has other columns than this version writes; is it a run of another version?"
OTHER_FIELDS = "lacks what this version writes; is it a run of another version?"


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("train", None),
        ("separate", f"trials.csv: {OTHER_COLUMNS}"),
        ("shared", f"answer.json: {OTHER_FIELDS}"),
        ("study", f"b_line-0/answer.json: {OTHER_FIELDS}"),
    ],
)
def test_a_finished_run_of_the_version_before_opens_or_is_refused_in_one_line(tmp_path, kind, refused):
    with tarfile.open(Path(__file__).parent.parent / "support" / "old_runs.tar.gz") as old:
        old.extractall(tmp_path, filter="data")
    if refused is None:
        assert ff.load_run(tmp_path / kind).evaluation.mean == pytest.approx(-5.26, abs=0.01)
    for open_run in (ff.load_run, ff.resume) if refused else ():
        with pytest.raises(ff.RunDirError) as error:
            open_run(tmp_path / kind)
        assert str(error.value).endswith(refused)
    if kind in ("train", "separate"):
        assert report_document([tmp_path / kind]).answer  # from all that can be read
    else:
        with pytest.raises(ff.RunDirError):
            report_document([tmp_path / kind])
