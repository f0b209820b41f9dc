"""What a report says is what the run directory holds, whatever state that is in."""

from pathlib import Path

import numpy as np
import pytest
from answers import a_swap, an_answer
from approved import approve
from cage2 import HOST_NAMES
from run_folder import (
    ALIKE,
    BEST,
    LOST,
    TRIALS,
    write_config,
    write_log,
    write_manifest,
    write_search,
    write_session,
    write_training,
)

from fixfirst.game.scenario import Scenario
from fixfirst.reporter import comparison_report, curves
from fixfirst.reporter.report import expand_run_folders, read_run, report, report_document
from fixfirst.runs.rows import MatrixRow, ValueRow
from fixfirst.runs.sessions import locked
from fixfirst.stats.intervals import MeanInterval


@pytest.fixture
def search(tmp_path):
    return write_search(tmp_path / "run")


SHARED = {"seed": 0, "red_agent": "b_line", "variant": "current", "separate": False, "replicates": 3}


def value_rows(rounds, replicates=2):
    """What each training earned under two orders after each round; the second one learns faster."""
    for r in range(1, rounds + 1):
        for n in range(1, replicates + 1):
            for order, mean in ((BEST, -20 + r), (ALIKE, -20 - r / n)):
                last = int((n, order) == (replicates, ALIKE))
                yield ValueRow(round=r, replicate=n, workflow=order, mean=mean, standard_error=0.1, last=last)


def write_shared(folder, answer=None, seed=0, **settings):
    folder.mkdir(parents=True)
    write_config(folder, SHARED | {"seed": seed} | settings)
    write_manifest(folder, "search", seed)
    write_log(folder / "rounds.csv", ValueRow, value_rows(2))
    write_session(folder, 10.0, workers=2, outcome="finished" if answer else "interrupted")
    if answer is not None:
        answer.write(folder)
    return folder


def settled(**changes):
    parts = {"enterprise": MeanInterval(4.0, 3.8, 4.2), "Restore": MeanInterval(0.3, 0.1, 0.5)}
    swaps = (a_swap("enterprise", "user", 4.3, 4.1, 4.5, parts=parts), a_swap("enterprise", "op_server", 0.02, -0.1, 0.14))
    return an_answer(**{"swaps": swaps} | changes)


def write_league(folder):
    folder.mkdir(parents=True)
    write_config(folder, {"seed": 0, "red_agent": "b_line", "variant": "current"})
    write_manifest(folder, "league", 0, "fixfirst train --preset guardian")
    met = [("b_line", "script", 0, None, -14.0), ("live-1-0", "live", 1, "scratch", -30.0)]
    met.append(("response-1", "response", 1, "past", -90.5))
    later = [*met, ("response-2", "response", 2, "scratch", -60.0)]
    facts = {"updates": 4, "standard_error": 0.1}
    rows = [
        MatrixRow(round=r, attacker=name, kind=kind, born=born, start=start, mean=mean + r, **facts)
        for r, here in ((1, met), (2, later))
        for name, kind, born, start, mean in here
    ]
    write_log(folder / "league.csv", MatrixRow, rows)
    write_session(folder, 8.0)
    return folder


def write_mixed(folder):
    for seed in range(2):
        write_search(folder / f"s{seed}", [(*TRIALS[0][:3], -14.0 - seed, *TRIALS[0][4:]), *TRIALS[1:]], seed=seed)
    write_training(folder / "t", -15.0)
    write_training(folder / "u", -16.0, seed=1)
    return folder


def write_beside(folder):
    write_shared(folder / "s", settled())
    write_training(folder / "t", -15.0)
    return folder


def write_study(folder):
    folder.mkdir(parents=True)
    write_shared(folder / "s0", settled())
    write_shared(folder / "s1", settled(dropped=(2.5,), spread=0.2), seed=1)
    write_shared(folder / "s2", seed=2)
    return folder


def write_networks(folder):
    """Enterprise before user is worth something in one network, costs something in the second, and is open in the third."""
    wrong, open_ = a_swap("user", "enterprise", 3.0, 2.0, 4.0), a_swap("enterprise", "user", 1.0, -2.0, 4.0)
    for network, answer in (("cage2", settled()), ("cage1", settled(swaps=(wrong,))), ("flat", settled(swaps=(open_,)))):
        write_shared(folder / network, answer, scenario=Scenario.load(network).as_dict())
    return folder


def write_groups(folder):
    """Two strategies under two seeds, a copy of one run, a training, and a run of which too little is left."""
    for seed in (0, 1):
        write_search(folder / f"gp-{seed}", seed=seed)
        write_search(folder / f"random-{seed}", seed=seed, strategy="random")
    write_search(folder / "later-copy")
    write_training(folder / "plain")
    damaged = write_search(folder / "too-little")
    for name in ("trials.csv", "training_log.csv"):
        (damaged / name).write_text("")
    return folder


def write_damaged(folder):
    write_search(folder)
    for name in ("config.toml", "training_log.csv"):
        (folder / name).unlink()
    return folder


CLEAR = (TRIALS[0], TRIALS[1], (2, ALIKE, "accepted", -16.0, 0.1, 0.97, 0.95, 200, 1))
NONE_PASSED = (  # in the second one a worker died
    (0, LOST, "non_compliant", -22.0, 0.4, 0.6, 0.3, 300, None),
    (1, LOST, "failed", None, None, None, None, 0, None),
)
# Thirteen unit types in five orders.
PER_HOST = [" > ".join(np.roll(HOST_NAMES, shift)) for shift in range(5)]
OF_HOSTS = [(i, order, "accepted", -14.0 - i, 0.1, 0.99, 0.98, 200, None) for i, order in enumerate(PER_HOST)]
PAGES = {
    "separate": write_search,
    "separate-hosts": lambda folder: write_search(folder, OF_HOSTS, units={name: [name] for name in HOST_NAMES}),
    "separate-clear": lambda folder: write_search(folder, CLEAR),
    "separate-one": lambda folder: write_search(folder, TRIALS[:1]),
    "separate-none": lambda folder: write_search(folder, NONE_PASSED),
    "separate-damaged": write_damaged,
    "training": write_training,
    "answer": lambda folder: write_shared(folder, settled()),
    "running": write_shared,
    "answer-and-training": write_beside,
    "league": write_league,
    "mixed": write_mixed,
    "groups": write_groups,
    "study": write_study,
    "networks": write_networks,
}


@pytest.mark.parametrize("kind", PAGES)
def test_the_report_of_each_kind_of_run_says_what_was_approved(kind, tmp_path, monkeypatch):
    """Numbers by hand: three orders at once need 2.388 standard errors (Sidak; 1.003 times as many for t with 999 degrees),
    0.24 of 0.1, so that -14.0 and -14.2 are not told apart; -14 and -15 over seeds, spread^2 = 0.5 / 3.

    A winner is called one only if it is told from all others. Runs that differ only in their seed are a group, named by what
    tells it from others; a seed counts once.
    """
    monkeypatch.chdir(tmp_path)
    written = report(PAGES[kind](Path("run")), "report.md", form="md")
    approve(f"report-{kind}.md", written.path.read_text())


def test_a_run_whose_settings_stand_in_tables_as_earlier_versions_wrote_them_is_in_the_same_group(search, tmp_path):
    game, gate = {"red_agent": "b_line", "variant": "current"}, {"compliance_threshold": 0.95}
    training = {"seed": 0, "total_episodes": 20_000, "game": game, "gate": gate, "ppo": {"num_envs": 100}}
    settings = {"strategy": "gp_ucb", "seed": 1, "test_episodes": 1000, "total_episodes": 3000, "training": training}
    write_config(old := write_search(tmp_path / "old", seed=1), settings)
    groups, _ = comparison_report.group_runs([read_run(search), read_run(old)])
    assert [len(group) for group in groups.values()] == [2] and report_document([search]).answer == report_document(
        [old]
    ).answer


def test_thinned_curves_keep_lowest_and_highest_and_never_mix_trials():
    values = np.array([-5.0, -3.0, -1.0, -9.0, np.nan, -7.0])
    curve = curves.thinned(np.arange(1.0, 7.0), values, np.array([0, 0, 0, 1, 1, 1]), most=3)
    trials, _, means, lowest, highest = curve.tolist()
    assert means == [-4.0, -1.0, -8.0] and trials == [0, 0, 1]
    assert (lowest, highest) == ([-5.0, -1.0, -9.0], [-3.0, -1.0, -7.0])


def test_each_training_of_a_search_has_its_learning_curves(tmp_path):
    """Its best return and its price of a swap after each round: -20 + r, and that less -20 - r / n. One was dropped."""
    rows = [row for row in value_rows(2, replicates=3) if (row.round, row.replicate) != (2, 2)]
    (write_shared(tmp_path / "run") / "rounds.csv").unlink()
    write_log(tmp_path / "run/rounds.csv", ValueRow, rows)
    drawn = curves.trainings_table(read_run(tmp_path / "run"), (10, 20), ("enterprise", "op_server"))
    first, third = [(1, False, 10, -19, 2), (1, False, 20, -18, 4)], [(3, False, 10, -19, 4 / 3), (3, False, 20, -18, 8 / 3)]
    assert np.array(drawn.rows) == pytest.approx(np.array([*first, (2, True, 10, -19, 1.5), *third]))


def test_runs_of_a_folder_are_shown_as_people_count(tmp_path):
    names = ["flat", "lab2-b_line-0", "lab2-b_line-10", "lab10-b_line-0"]
    for name in [*names, "notes"]:
        (tmp_path / name).mkdir()
        (tmp_path / name / ("readme" if name == "notes" else "manifest.json")).touch()
    assert [folder.name for folder in expand_run_folders([tmp_path])] == names


def test_a_run_that_is_worked_on_has_a_page_that_looks_for_news_and_an_interrupted_one_says_how_to_go_on(search):
    (search / "runtime.csv").unlink()
    write_session(search, 1.0, outcome="interrupted")
    with locked(search):
        text = report([search]).path.read_text()
    assert '<meta http-equiv="refresh" content="10">' in text and "still running" in text and "The run goes on" in text
    text = report([search]).path.read_text().split("<style>")
    assert "refresh" not in text[0] and f"fixfirst resume {search}" in text[1]
