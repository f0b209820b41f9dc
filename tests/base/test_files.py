"""Files from elsewhere: whatever lies there, reading it ends soon, in bounded memory, and says what is wrong in a line."""

import os
import stat
import tracemalloc
from pathlib import Path

import pytest

from fixfirst.base import files
from fixfirst.base.errors import LONGEST_MESSAGE, RunDirError
from fixfirst.base.files import MB, read_document, read_file, read_json, read_toml, write_atomically, write_document


@pytest.mark.parametrize(
    ("read", "content", "says"),
    [
        (read_json, b"[" * 200_000, "nested too deeply"),
        (read_json, b"{\xff}", "can't decode"),
        (read_json, b"1" * 5_000, "4300"),
        (read_toml, b"a = " + b"[" * 20_000, "nested too deeply"),
        (read_toml, b"\xff", "can't decode"),
    ],
)
def test_documents_that_make_no_sense(tmp_path, read, content, says):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=says):
        read(tmp_path / "file")


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody will ever write into it
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(OSError, match=r"Not a regular file|Is a directory"):
            read_file(path)


def test_what_is_too_large_is_not_read_and_what_is_small_takes_its_own_size_of_memory(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b" " * 1_000)
    with pytest.raises(ValueError, match="more than"):
        read_file(tmp_path / "file", limit=999)
    tracemalloc.start()
    assert len(read_file(tmp_path / "file")) == 1_000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < MB
    monkeypatch.setattr(files, "LARGEST_DOCUMENT", 999)
    with pytest.raises(ValueError, match="more than"):
        read_json(tmp_path / "file")


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end_or_to_the_limit(tmp_path, monkeypatch):
    """It was empty when its size was asked for."""
    (tmp_path / "log").write_bytes(bytes(3 * MB))
    before = os.stat(os.devnull)
    as_asked = os.stat_result((stat.S_IFREG, *before[1:6], 0, *before[7:]))
    monkeypatch.setattr(files.os, "fstat", lambda _: as_asked)
    assert len(read_file(tmp_path / "log")) == 3 * MB
    with pytest.raises(ValueError, match="more than 2 MB"):
        read_file(tmp_path / "log", 2 * MB)


def test_a_message_is_one_printable_line_of_bounded_length_that_keeps_its_end():
    error = RunDirError(f"\x1b[2J\x07{'x' * 100_000}\n\n what to do")
    assert str(error).isprintable() and len(str(error)) < LONGEST_MESSAGE + 10 and str(error).endswith("x what to do")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text.replace("-14.5", "-14.6"), "its document_sha256 is not that of its contents"),
        (lambda text: text.replace("document_sha256", "document_sha257"), "its document_sha256 is not"),
        (lambda text: text.replace("result", "answer"), "its document_sha256 is not"),
        (lambda text: "[1]", "it is not a table"),
    ],
)
def test_a_changed_document_is_noticed_and_its_layout_does_not_matter(tmp_path, damage, says):
    write_document(tmp_path / "file", "result", {"mean": -14.5})
    text = (tmp_path / "file").read_text()
    (tmp_path / "file").write_text(" ".join(text.split()))
    assert read_document(tmp_path / "file", "result")["mean"] == -14.5
    with pytest.raises(ValueError, match="it is not a answer"):
        read_document(tmp_path / "file", "answer")
    (tmp_path / "file").write_text(damage(text))
    with pytest.raises(ValueError, match=says):
        read_document(tmp_path / "file", "result")


@pytest.mark.parametrize("path", ["", ".", "./", "folder", "folder/.."])
def test_a_folder_is_not_written_over(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(Path(path), b"")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
