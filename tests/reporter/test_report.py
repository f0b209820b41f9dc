"""What a report says is what the run directory holds, whatever state that is in."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from answers import a_swap, an_answer
from approved import approve
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

from fixfirst.reporter import comparison_report, curves
from fixfirst.reporter.report import expand_run_folders, read_run, report, report_document
from fixfirst.runs.rows import MatrixRow, ValueRow
from fixfirst.runs.sessions import locked
from fixfirst.stats.intervals import MeanInterval


def words_of(*folders):
    return report_document(expand_run_folders(folders))


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


def write_shared(folder, answer=None, seed=0):
    folder.mkdir(parents=True)
    write_config(folder, SHARED | {"seed": seed})
    write_manifest(folder, "search", seed)
    write_log(folder / "rounds.csv", ValueRow, value_rows(2))
    write_session(folder, 10.0, workers=2, outcome="finished" if answer else "interrupted")
    if answer is not None:
        answer.write(folder)
    return folder


def settled(**changes):
    parts = {"enterprise": MeanInterval(4.0, 3.8, 4.2), "Restore": MeanInterval(0.3, 0.1, 0.5)}
    swaps = (a_swap("enterprise", "user", 4.3, 4.1, 4.5, parts=parts), a_swap("enterprise", "op_server", 0.02, -0.1, 0.14))
    return an_answer(swaps=swaps, **changes)


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


def write_study(folder):
    folder.mkdir(parents=True)
    write_shared(folder / "s0", settled())
    write_shared(folder / "s1", settled(dropped=(2.5,), spread=0.2), seed=1)
    write_shared(folder / "s2", seed=2)
    return folder


PAGES = {
    "separate": write_search,
    "training": write_training,
    "answer": lambda folder: write_shared(folder, settled()),
    "running": write_shared,
    "league": write_league,
    "mixed": write_mixed,
    "study": write_study,
}


@pytest.mark.parametrize("kind", PAGES)
def test_the_report_of_each_kind_of_run_says_what_was_approved(kind, tmp_path, monkeypatch):
    """Numbers by hand: three orders at once need 2.388 standard errors (Sidak; 1.003 times as many for t with 999 degrees),
    0.24 of 0.1, so that -14.0 and -14.2 are not told apart; -14 and -15 over seeds, spread^2 = 0.5 / 3.
    """
    monkeypatch.chdir(tmp_path)
    written = report(PAGES[kind](Path("run")), "report.md", form="md")
    approve(f"report-{kind}.md", written.path.read_text())


CLEAR = (TRIALS[0], TRIALS[1], (2, ALIKE, "accepted", -16.0, 0.1, 0.97, 0.95, 200, 1))
NONE_PASSED = (
    (0, LOST, "non_compliant", -22.0, 0.4, 0.6, 0.3, 300, None),
    (1, LOST, "failed", None, None, None, None, 0, None),
)
WINNER = tuple(BEST.split(" > "))


@pytest.mark.parametrize(
    ("trials", "lead", "headline", "answer"),
    [
        (CLEAR, "The best of 3 accepted orders:", WINNER, f"Best order (95 % confidence): {BEST}, return -14.00 ["),
        (TRIALS[:1], "The only order that passed the gate:", WINNER, f"Only one order passed the gate: {BEST}, return"),
        (NONE_PASSED, "", ("No order passed the gate.",), "No order passed the gate: raise --total-episodes"),
    ],
    ids=["one is told from all others", "one accepted", "none accepted"],
)
def test_a_winner_is_called_one_only_if_it_is_told_from_all_others(tmp_path, trials, lead, headline, answer):
    document = words_of(write_search(tmp_path / "run", trials))
    assert (document.lead, document.headline) == (lead, headline) and document.answer[0].startswith(answer)


def test_a_worker_that_died_leaves_no_numbers(tmp_path):
    document = words_of(write_search(tmp_path / "run", NONE_PASSED))
    cells = [line[4:] for line in document.sections[0].tables[0].cells()[1:]]
    assert cells == [["60.0 %", "30.0 %", "0", "300"], ["-", "-", "1", "0"]]


def test_a_run_whose_settings_stand_in_tables_as_earlier_versions_wrote_them_is_in_the_same_group(search, tmp_path):
    game, gate = {"red_agent": "b_line", "variant": "current"}, {"compliance_threshold": 0.95}
    training = {"seed": 0, "total_episodes": 20_000, "game": game, "gate": gate, "ppo": {"num_envs": 100}}
    settings = {"strategy": "gp_ucb", "seed": 1, "test_episodes": 1000, "total_episodes": 3000, "training": training}
    write_config(old := write_search(tmp_path / "old", seed=1), settings)
    groups, _ = comparison_report.group_runs([read_run(search), read_run(old)])
    assert [len(group) for group in groups.values()] == [2] and words_of(search).answer == words_of(old).answer


def test_runs_that_differ_only_in_seed_are_a_group_named_by_what_differs_and_a_seed_counts_once(tmp_path):
    for seed in (0, 1):
        write_search(tmp_path / f"gp-{seed}", seed=seed)
        write_search(tmp_path / f"random-{seed}", seed=seed, strategy="random")
    write_training(tmp_path / "plain")
    runs = [read_run(folder) for folder in sorted(tmp_path.iterdir())]
    groups, repeated = comparison_report.group_runs(runs)
    assert {label: len(group) for label, group in groups.items()} == {"search, gp_ucb": 2, "search, random": 2, "train": 1}
    assert repeated == []
    groups, repeated = comparison_report.group_runs([runs[0], read_run(write_search(tmp_path / "copy"))])
    assert [len(group) for group in groups.values()] == [1]
    assert repeated == ["copy has the configuration and seed of gp-0; it is left out of the comparison."]


def test_thinned_curves_keep_lowest_and_highest_and_never_mix_trials():
    values = np.array([-5.0, -3.0, -1.0, -9.0, np.nan, -7.0])
    curve = curves.thinned(np.arange(1.0, 7.0), values, np.array([0, 0, 0, 1, 1, 1]), most=3)
    trials, _, means, lowest, highest = curve.tolist()
    assert means == [-4.0, -1.0, -8.0] and trials == [0, 0, 1]
    assert (lowest, highest) == ([-5.0, -1.0, -9.0], [-3.0, -1.0, -7.0])


def test_each_training_of_a_search_has_its_learning_curves(answered):
    """Best return and price of the dearest swap after each round, as rounds.csv has them."""
    run = read_run(answered)
    swap = run.answer.swaps[0]
    drawn = curves.trainings_table(run, run.answer.rounds, (swap.first, swap.second)).dicts()
    last = max(row.round for row in run.rounds)
    means = defaultdict(list)
    for row in run.rounds:
        means[row.replicate, run.answer.rounds[row.round - 1]].append(row.mean)
    assert {(row["training"], row["episodes"]): row["best_return"] for row in drawn} == {
        point: max(values) for point, values in means.items()
    }
    assert [row["dropped"] for row in drawn] == [
        (row["training"], run.answer.rounds[last - 1]) not in means for row in drawn
    ]
    # Prices of the search after its last round are the mean of those of its trainings.
    assert np.mean([row["price"] for row in drawn if row["episodes"] == run.answer.rounds[-1]]) == pytest.approx(
        swap.history[-1]
    )


def test_runs_of_a_folder_are_shown_as_people_count(tmp_path):
    names = ["flat", "lab2-b_line-0", "lab2-b_line-10", "lab10-b_line-0"]
    for name in [*names, "notes"]:
        (tmp_path / name).mkdir()
        (tmp_path / name / ("readme" if name == "notes" else "manifest.json")).touch()
    assert [folder.name for folder in expand_run_folders([tmp_path])] == names


def test_a_run_that_cannot_be_read_does_not_hide_the_others(tmp_path):
    write_search(tmp_path / "good")
    write_search(tmp_path / "bad")
    for name in ("trials.csv", "training_log.csv"):
        (tmp_path / "bad" / name).write_text("")
    document = words_of(tmp_path)
    assert any("bad: there is nothing to report" in text for text in document.missing)
    assert document.lead == "1 run in 1 group:" and document.headline == ("-14.00 per episode.",)


@pytest.mark.parametrize(
    ("name", "garbage"), [("config.toml", None), ("training_log.csv", None), ("trials.csv", "id,workflow\n0,x\n")]
)
def test_a_missing_or_damaged_file_is_named_and_the_rest_is_drawn(search, name, garbage):
    """What is said of each file, `runs/test_damage.py` shows."""
    (search / name).unlink()
    if garbage is not None:
        (search / name).write_text(garbage)
    document = words_of(search)
    assert any(name in text for text in document.missing) and document.figures
    assert all(figure.svg for figure in document.figures)


def test_a_run_that_is_worked_on_says_so_and_an_interrupted_one_how_to_go_on(search):
    (search / "runtime.csv").unlink()
    write_session(search, 1.0, outcome="interrupted")
    with locked(search):
        assert read_run(search).missing[0].startswith("The run goes on")
    assert f"fixfirst resume {search}" in read_run(search).missing[0]
