"""What is published: a wheel with all that runs, and metadata that are true."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from small import ONE_CORE

import fixfirst as ff

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel, and the sdist it was not made of."""
    pytest.importorskip("hatchling", reason="needs pip install hatchling")
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", out], cwd=ROOT, check=True)
    return out


@pytest.fixture
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


def test_the_wheel_runs_the_main_job_without_the_checkout(wheel, tmp_path):
    """From the archive's files alone: a small search with its page, and a policy that is shipped."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = "import sys, fixfirst as ff, fixfirst.cli as cli; print(ff.__file__); ff.load_policy('champion')\n"
    code += "sys.exit(cli.main(['search', '--out', 'found', '--quiet']))"
    kept = {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR") if name in os.environ}
    environment = {"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin", **kept, **ONE_CORE}
    ran = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0 and ran.stdout.startswith(str(tmp_path / "site")), ran.stderr
    assert "follows any order" in ran.stdout and (tmp_path / "found/report.html").exists()


def test_the_wheel_holds_every_file_of_the_package_and_the_sdist_makes_the_same(built, wheel, tmp_path):
    inside = set(zipfile.ZipFile(wheel).namelist())
    ours = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src/fixfirst").rglob("*") if p.is_file()}
    assert {name for name in ours if "__pycache__" not in name} <= inside
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again"], cwd=folder, check=True
    )
    (again,) = (tmp_path / "again").glob("*.whl")
    assert set(zipfile.ZipFile(again).namelist()) == inside


def test_the_version_stands_in_one_place_and_every_extra_is_pinned():
    assert re.search(rf"^version: {re.escape(ff.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.M)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.M)
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    for extra in ("dev", "docs", "onnx", "ray", "sb3", "torch"):
        for requirement in project["optional-dependencies"][extra]:
            name = re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()
            assert name in pinned, f"{extra}: {name}"
