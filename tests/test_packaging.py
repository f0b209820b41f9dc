"""What is published: a wheel with all that runs, and metadata that are true."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import fixfirst as ff

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="needs pip install hatchling")
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out], cwd=ROOT, check=True)
    (path,) = out.glob("*.whl")
    return path


def test_the_wheel_holds_every_file_of_the_package(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    ours = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src/fixfirst").rglob("*") if p.is_file()}
    assert {name for name in ours if "__pycache__" not in name} <= inside


def test_the_wheel_runs_without_the_checkout(wheel, tmp_path):
    """From the archive's files alone: the command, its shipped policies and its templates."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = "import fixfirst as ff, fixfirst.cli as cli; print(ff.__file__); ff.load_policy('champion'); cli.main(['--help'])"
    environment = {"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout.startswith(str(tmp_path / "site")), ran.stderr


def test_the_version_stands_in_one_place_and_is_cited_so():
    assert re.search(rf"^version: {re.escape(ff.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.M)


def test_every_extra_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.M)
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    for extra in ("dev", "docs", "onnx", "ray", "sb3", "torch"):
        for requirement in project["optional-dependencies"][extra]:
            name = re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()
            assert name in pinned, f"{extra}: {name}"


def test_locks_that_posix_lacks_are_found_elsewhere():
    """Nothing but `locks.py` imports what only some systems have."""
    for path in (ROOT / "src").rglob("*.py"):
        if path.name != "locks.py":
            assert not re.search(r"^\s*import (fcntl|msvcrt|resource|termios|pty)\b", path.read_text(), re.M), path
