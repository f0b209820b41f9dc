"""What a command writes where the user says never replaces what it reads, nor a file of a run."""

import shlex
import shutil
from hashlib import sha256

import pytest
from searches import one_line

from fixfirst.cli import main
from fixfirst.game.attacker_files import SHIPPED
from fixfirst.game.scenario import CAGE2

AGENT = "def play(observations):\n    return [0] * len(observations)\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "run").mkdir()
    for name in ("manifest.json", "training_log.csv", "trials.csv"):
        (folder / "run" / name).write_text("{}")
    shutil.copytree(SHIPPED / "champion", folder / "policy")
    (folder / "net.yaml").write_text(CAGE2.to_yaml())
    (folder / "net.csv").write_text("host,subnet\na,b\n")
    (folder / "my.py").write_text(AGENT)
    return folder


READ, RECORD = "which is read here and would be lost; name another file", "a file of a run, which would be lost"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("scenario net.csv --out net.csv", READ),
        ("scenario net.yaml --out ./run/../net.yaml", READ),
        ("scenario cage2 --out run/manifest.json", RECORD),
        ("report run --out run/manifest.json", RECORD),
        ("evaluate run --csv run/training_log.csv", RECORD),
        ("evaluate run --latex run/trials.csv", RECORD),
        ("evaluate my.py:play --csv my.py", READ),
        ("compare sleep my.py:play --csv my.py", READ),
        ("export policy --out policy/policy.json", RECORD),
        ("export policy --out policy", "out must be a file, got the folder 'policy'"),
        ("watch policy --out policy/policy.json", RECORD),
        ("watch my.py:play --out my.py", READ),
        ("search --config net.yaml --csv net.yaml", READ),
    ],
)
def test_an_output_over_an_input_or_a_file_of_a_run_is_refused_before_anything_is_written(
    command, says, folder, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    before = {path: sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()}
    assert main(shlex.split(command)) == 2
    one_line(capsys, says)
    assert {path: sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()} == before


def test_a_table_may_be_written_into_a_run_again_and_again(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for _ in range(2):
        assert main(shlex.split("evaluate sleep --episodes 2 --steps 3 --red-agent sleep -q --csv run/mine.csv")) == 0
