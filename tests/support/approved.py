"""Texts that somebody read and approved, compared whole: files in tests/approved.

FIXFIRST_APPROVE=1 pytest ... writes them anew; read the diff before it is committed.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "approved"


def approve(name, text):
    """Is a text the approved one?"""
    path = FOLDER / name
    if os.environ.get("FIXFIRST_APPROVE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
