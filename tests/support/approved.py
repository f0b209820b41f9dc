"""Texts that somebody read and approved, compared whole: files in tests/approved.

FIXFIRST_APPROVE=1 pytest ... writes them anew; read the diff before it is committed.
"""

import os
from pathlib import Path

import pytest

import fixfirst as ff

FOLDER = Path(__file__).parent.parent / "approved"


def approve(name, text):
    """Is a text the approved one?"""
    path = FOLDER / name
    if os.environ.get("FIXFIRST_APPROVE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def approve_refusals(name, refuse):
    """Each line of an approved text is a mistake; below it, indented, stands what is said of it. refuse: makes a mistake."""
    text = ""
    for mistake in (line for line in (FOLDER / name).read_text(encoding="utf-8").splitlines() if line[:1] != " "):
        with pytest.raises(ff.FixfirstError) as refused:
            refuse(mistake)
        assert "\n" not in str(refused.value)
        text += f"{mistake}\n    {refused.value}\n"
    approve(name, text)
