"""What a report says is what the run directory holds, whatever state that is in."""

import csv
import json
import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from cage2 import HOST_NAMES
from run_folder import ALIKE, BEST, LOST, TRIALS, WORST, digest, write_config, write_search, write_session, write_training

from fixfirst.base.errors import RunDirError
from fixfirst.cli import main
from fixfirst.orders.order import UnitScheme, Workflow, all_workflows
from fixfirst.reporter import analysis, figure, figures
from fixfirst.reporter.document import escaped
from fixfirst.reporter.figure import FigureData
from fixfirst.reporter.report import expand_run_folders, read_run, report, report_document
from fixfirst.runs.manifest import locked

THREE = UnitScheme(("a", "b", "c"), (0, 1, *11 * (2,)))
SIX_ORDERS = ("a > b > c", "a > c > b", "b > a > c", "b > c > a", "c > a > b", "c > b > a")
# -20 + 2 for a before b, -2 for b before a; -3 for b before c, +3 for c before b; a and c do not matter.
SIX_RETURNS = (-21.0, -15.0, -25.0, -25.0, -15.0, -19.0)


def orders(*texts):
    return [Workflow.parse(text, THREE) for text in texts]


def replace_in(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


BLANK = FigureData("blank", "", "<svg/>", lambda: b"", (), ())


def words_of(*folders):
    """What a report says, its figures left blank: drawing them takes a second."""
    return report_document(expand_run_folders(folders), draw=lambda make: BLANK)


def answer(*folders):
    return " ".join(words_of(*folders).answer)


@pytest.fixture
def search(tmp_path):
    return write_search(tmp_path / "run")


# ---------------------------------------------------------------- the answer


def test_the_answer_states_the_best_order_what_it_cannot_be_told_from_and_what_it_is_compared_with(search):
    """Three orders at once need 2.388 standard errors (Sidak; 1.003 times as many for t with 999 degrees): 0.24 of 0.1.

    -14.0 and -14.2 are 1.4 standard errors of their difference apart. Both have op_host, op_server and enterprise before
    user, the third order has user first; all have defender last, which was not tried otherwise. -14.5 was earned without an
    order; the best trial saw 2,000 + 200 episodes; the worst earned -30.
    """
    document = words_of(search)
    said = " ".join(document.answer)
    assert f"trained for {BEST} earned −14.00 per episode (95 % interval −14.24 to −13.76)" in said
    assert "in 99.0 % of the judged repairs (98.0 % of the contested ones)" in said
    alike = "It cannot be told from 1 other order at 95 % confidence: of 3 accepted orders, 2 may be the best."
    assert alike in document.answer
    assert document.lead == "No single order wins. What the 2 of 3 accepted orders that may be the best have in common:"
    assert document.headline == ("Fix op_host before user, op_server before user and enterprise before user.",)
    shared = said.split("in common: ")[1].split(".")[0]
    assert shared.count("before user (the other way round in 1 accepted order)") == 3 and "defender" not in shared
    assert "Without an order, the same defender earned −14.50 (−14.70 to −14.30) after 2,000 episodes" in said
    assert "earned 0.50 more, but its weights have seen 2,200 episodes and it is the highest of 3" in said
    assert f"The worst accepted order, {WORST}, earned −30.00" in said and "16.00 less per episode" in said


def test_a_winner_is_called_one_only_if_it_is_told_from_all_others(tmp_path):
    clear = (TRIALS[0], TRIALS[1], (2, ALIKE, "accepted", -16.0, 0.1, 0.97, 0.95, 200, 1))
    document = words_of(write_search(tmp_path / "run", clear))
    assert "It is better than each of the other 2 accepted orders, at 95 % confidence." in document.answer
    assert document.lead == "The best of 3 accepted orders:"
    document = words_of(write_search(tmp_path / "one", TRIALS[:1]))
    assert "It is the only order that passed the gate, so there is nothing to compare it with." in document.answer


def test_without_an_accepted_order_there_is_no_best_one(tmp_path):
    lost = [(0, LOST, "non_compliant", -22.0, 0.4, 0.6, 0.3, 300, None)]
    document = report([write_search(tmp_path / "run", lost)]).document
    assert document.headline == ("No order passed the gate.",)
    assert [figure.name for figure in document.figures] == ["ranking", "progress", "compliance", "learning", "time"]


def test_a_trial_whose_worker_died_is_listed_without_numbers(tmp_path):
    """Its order was tried before without passing; it has neither return nor compliance."""
    dead = (4, LOST, "failed", None, None, None, None, 300, None)
    folder = write_search(tmp_path / "run", (*TRIALS, dead))
    table = words_of(folder).sections[0].tables[0]
    assert [cell.text for cell in table.rows[-1]] == ["", LOST, "-", "-", "-", "-", "failed", "4", "300"]


def test_a_training_is_reported_by_its_evaluation(tmp_path):
    said = answer(write_training(tmp_path / "run", -15.0))
    assert "The trained policy earned −15.00 per episode (−15.30 to −14.70) on 1,000 held-out episodes." in said
    assert "A defender without an order, 1,000 training episodes; red agent b_line, variant current." in said


def test_the_page_of_a_training_says_what_an_episode_cost_and_how_often_blue_repaired(trained):
    document = report_document([trained], draw=lambda make: BLANK)
    evaluation = read_run(trained).result
    said = f"It made {evaluation.restores:.2f} Restores and {evaluation.removes:.2f} Removes an episode."
    assert document.answer[0].endswith(said)
    (table,) = next(section.tables for section in document.sections if section.title == "What an episode cost")
    *parts, whole = [row[1].value for row in table.rows]
    assert sum(parts) == pytest.approx(whole) and whole == -evaluation.mean


def test_origin_names_hashes_and_the_command_that_does_it_again(tmp_path):
    search = write_search(tmp_path / "run", command="fixfirst search --n-envs 100")
    text = report([search]).path.read_text()
    assert digest(0) in text and "fixfirst search --n-envs 100" in text
    assert f"fixfirst search --config {search / 'config.toml'} --out runs/again" in text


OLD_SEARCH = {"strategy": "gp_ucb", "seed": 1, "test_episodes": 1000, "total_episodes": 3000}
OLD_GAME = {"red_agent": "b_line", "variant": "current"}
OLD_GATE = {"compliance_threshold": 0.95}
OLD_PPO = {"num_envs": 100}


@pytest.mark.parametrize(
    "settings",
    [
        {"max_episodes": 20_000, "workflow": "all", "ppo": OLD_PPO} | OLD_GAME | OLD_GATE,
        {"training": {"seed": 0, "total_episodes": 20_000, "game": OLD_GAME, "gate": OLD_GATE, "ppo": OLD_PPO}},
    ],
    ids=["on the top level", "in tables"],
)
def test_a_run_whose_settings_stand_where_earlier_versions_put_them_is_shown_all_the_same(search, tmp_path, settings):
    """With the settings of a new one it is the same group."""
    old = write_search(tmp_path / "old", seed=1)
    write_config(old, OLD_SEARCH | settings)
    documents = [words_of(folder) for folder in (search, old)]
    assert documents[0].answer == documents[1].answer and documents[1].missing == ()
    assert "red agent b_line, variant current" in documents[1].answer[-1]
    ((group,), _) = analysis.group_runs([read_run(search), read_run(old)])
    assert len(group.runs) == 2


# ---------------------------------------------------------------- numbers


def test_pair_effects_recover_a_sum_over_pairs_exactly():
    effects = analysis.pair_effects(orders(*SIX_ORDERS), SIX_RETURNS)
    assert [(e.first, e.second) for e in effects[:2]] == [("c", "b"), ("a", "b")]
    assert [e.effect for e in effects] == pytest.approx([6.0, 4.0, 0.0], abs=1e-9)
    assert (effects[0].low, effects[0].high) == pytest.approx((6.0, 6.0), abs=1e-6)  # nothing is left over
    assert all((e.tried, e.reversed) == (3, 3) for e in effects)


def test_intervals_of_pair_effects_come_from_what_the_pairs_do_not_explain():
    """Least squares by hand is long; NumPy's solver and the textbook formula for its errors are the second opinion."""
    returns = np.add(SIX_RETURNS, (0.5, -0.5, 0.25, 0.0, -0.25, 0.0))
    design = np.column_stack([np.ones(6), np.array([w.pair_signs() for w in orders(*SIX_ORDERS)])])
    beta, rest, *_ = np.linalg.lstsq(design, returns, rcond=None)
    error = np.sqrt(rest[0] / 2 * np.diag(np.linalg.inv(design.T @ design)))
    found = {(e.first, e.second): e for e in analysis.pair_effects(orders(*SIX_ORDERS), returns)}
    pair = found["a", "b"]
    assert pair.effect == pytest.approx(2 * beta[1])
    assert pair.high - pair.effect == pytest.approx(2 * 4.302653 * error[1])  # t with 2 degrees of freedom


def test_a_precedence_is_not_told_that_was_tried_one_way_only_or_with_as_many_orders_as_unknowns():
    effects = analysis.pair_effects(orders("a > b > c", "a > c > b", "c > a > b", "a > b > c"), [-1.0, -2.0, -3.0, -1.5])
    assert [e.effect for e in effects if {e.first, e.second} == {"a", "b"}] == [None]
    effects = analysis.pair_effects(orders("a > b > c", "b > a > c", "b > c > a", "c > b > a"), [-1.0, -2.0, -3.0, -4.0])
    assert [e.effect for e in effects] == [None, None, None]


def test_position_means_are_plain_means_of_the_orders_with_a_unit_there():
    means = analysis.position_means(orders("a > b > c", "a > c > b", "b > a > c"), [-10.0, -20.0, -40.0])
    assert (means.mean[0, 0], means.orders[0, 0], means.mean[2, 2], means.orders[2, 2]) == (-15.0, 2, -25.0, 2)
    assert np.isnan(means.mean[2, 0]) and means.orders[2, 0] == 0  # c first: not tried


def test_time_adds_up_to_wall_time_times_workers(search):
    """10 s x 2 workers: warm-up 2, 10 updates of 0.3 + 0.4, trials 4 x 2.25 - 7, choosing 0.5 x 2; the rest is waiting."""
    use = analysis.time_use(read_run(search))
    expected = {
        "warm-up": 2.0,
        "playing training episodes": 3.0,
        "updating the policy": 4.0,
        "gate, evaluation, files": 2.0,
        "choosing orders": 1.0,
        "waiting": 8.0,
    }
    assert dict(use.parts) == pytest.approx(expected)
    assert use.total == pytest.approx(20.0) and use.wall_s == 10.0


def test_the_course_of_a_search(search):
    run = read_run(search)
    assert analysis.episodes_used(run) == [2200, 2500, 2700, 3000]
    assert analysis.best_so_far(run.trials) == [-14.0, -14.0, -14.0, -14.0]
    assert analysis.best_so_far(run.trials[1:]) == [-30.0, -14.2, -14.2]
    assert analysis.lineage_episodes(run, run.trials[2]) == 2000 + 200 + 300 + 200


def test_thinned_curves_keep_lowest_and_highest_and_never_mix_trials():
    curve = analysis.thinned(
        np.arange(1.0, 7.0), np.array([-5.0, -3.0, -1.0, -9.0, np.nan, -7.0]), np.array([0, 0, 0, 1, 1, 1]), most=3
    )
    assert curve.mean.tolist() == [-4.0, -1.0, -8.0]
    assert (curve.low.tolist(), curve.high.tolist()) == ([-5.0, -1.0, -9.0], [-3.0, -1.0, -7.0])


# ---------------------------------------------------------------- several runs


def test_runs_that_differ_only_in_seed_are_a_group_named_by_what_differs(tmp_path):
    for seed in (0, 1):
        write_search(tmp_path / f"gp-{seed}", seed=seed)
        write_search(tmp_path / f"random-{seed}", seed=seed, strategy="random")
    write_training(tmp_path / "plain")
    runs = [read_run(folder) for folder in sorted(tmp_path.iterdir())]
    groups, repeated = analysis.group_runs(runs)
    assert {group.label: len(group.runs) for group in groups} == {"search, gp_ucb": 2, "search, random": 2, "train": 1}
    assert repeated == []
    copy = read_run(write_search(tmp_path / "copy"))  # a seed counts once
    groups, repeated = analysis.group_runs([runs[0], copy])
    assert [len(group.runs) for group in groups] == [1]
    assert repeated == ["copy has the configuration and seed of gp-0; it is left out of the comparison."]


def test_a_group_course_holds_where_every_seed_has_an_accepted_order_and_that_of_one_seed_is_its_own(tmp_path):
    """The second seed's first trial was not accepted, so the course begins at its second, after 2,600 episodes."""
    lost_first = [
        (0, LOST, "non_compliant", -22.0, 0.4, 0.6, 0.3, 300, None),
        (1, BEST, "accepted", -16.0, 0.1, 1, 1, 300, None),
    ]
    runs = (read_run(write_search(tmp_path / "a")), read_run(write_search(tmp_path / "b", lost_first, seed=1)))
    course = analysis.group_course(analysis.RunGroup("both", runs))
    assert (course.episodes.tolist(), course.mean.tolist()) == ([2600], [-15.0])
    # -14 and -16: a standard error of 1, and t with 1 degree of freedom is 12.706
    assert (course.low[0], course.high[0]) == pytest.approx((-15 - 12.706, -15 + 12.706), abs=1e-3)
    alone = analysis.group_course(analysis.RunGroup("one", runs[:1]))
    assert alone.mean.tolist() == alone.low.tolist() == alone.high.tolist() == [-14.0] * 4


def test_each_training_of_a_search_has_its_learning_curves(answered):
    """Best return and price of the dearest swap after each round, as rounds.csv has them."""
    run = read_run(answered)
    swap = run.answer.swaps[0]
    found = analysis.training_courses(run, run.answer.rounds, (swap.first, swap.second))
    assert [course.number for course in found] == sorted({row.replicate for row in run.rounds})
    for course in found:
        own = [row for row in run.rounds if row.replicate == course.number]
        assert list(course.best) == [max(row.mean for row in own if row.round == r) for r in sorted({o.round for o in own})]
        assert course.is_dropped == (max(row.round for row in own) < len(run.answer.rounds))
        assert course.episodes == run.answer.rounds[: len(course.best)]
    # Prices of the search after its last round are the mean of those of its trainings.
    last = [course.prices[-1] for course in found if not course.is_dropped]
    assert np.mean(last) == pytest.approx(swap.history[-1])
    assert "Learning curves" in [section.title for section in words_of(answered).sections]


def test_learning_curves_of_several_trainings_are_drawn_on_one_axis(tmp_path):
    for seed in (0, 1):
        write_training(tmp_path / f"plain-{seed}", seed=seed)
    drawn = {}
    words = report_document(expand_run_folders([tmp_path]), draw=lambda make: drawn.setdefault((f := make()).name, f))
    assert "Learning curves" in [section.title for section in words.sections]
    assert {row[0] for row in drawn["trainings"].rows} == {"plain-0", "plain-1"}


def test_the_page_says_of_several_seeds_what_the_terminal_says(tmp_path):
    """BEST: -14 and -15, ALIKE -14.2 twice, WORST -30 twice, LOST never passed. BEST alone varies: spread^2 = 0.5 / 3."""
    for seed in range(2):
        write_search(tmp_path / f"s{seed}", [(*TRIALS[0][:3], -14.0 - seed, *TRIALS[0][4:]), *TRIALS[1:]], seed=seed)
    document = words_of(tmp_path)
    section = next(section for section in document.sections if section.title.startswith("Across seeds"))
    assert section.text[0].startswith("Over seeds: 2 of 3 orders (marked *) cannot be told from the best at 95 % confidence")
    assert section.text[0].endswith(f"(spread between seeds {(0.5 / 3) ** 0.5:.2f}, measured with 3 degrees of freedom)")
    rows = [[cell.text for cell in row] for row in section.tables[0].rows]
    assert rows[0] == ["1*", ALIKE, "-14.20", "[-14.20, -14.20]", "2/2", "2/2", "2/2"]
    assert rows[1] == ["2*", BEST, "-14.50", "[-20.85, -8.15]", "2/2", "2/2", "1/2"]
    assert rows[3] == ["4 ", LOST, "-", "-", "2/2", "0/2", "0/2"]


def test_a_folder_of_runs_means_all_of_them(tmp_path):
    for seed in range(2):
        write_search(tmp_path / f"s{seed}", seed=seed)
    write_training(tmp_path / "t", -15.0)
    (tmp_path / "notes").mkdir()
    written = report([tmp_path], tmp_path / "all.html")
    assert [path.name for path in written.runs] == ["s0", "s1", "t"]
    assert written.document.answer == (
        "search: −14.00 per episode (−14.00 to −14.00; two seeds only: the interval says little), 2 runs.",
        "train: −15.00 per episode, 1 run.",
    )
    assert [figure.name for figure in written.document.figures] == ["groups", "courses"]
    titles = [section.title for section in words_of(tmp_path / "s0", tmp_path / "t").sections]
    assert not any("Across seeds" in title for title in titles)  # of one seed


def test_runs_of_a_folder_are_shown_as_people_count(tmp_path):
    for name in ("lab10-b_line-0", "lab2-b_line-0", "lab2-b_line-10", "flat"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").touch()
    found = [folder.name for folder in expand_run_folders([tmp_path])]
    assert found == ["flat", "lab2-b_line-0", "lab2-b_line-10", "lab10-b_line-0"]


def test_a_run_that_cannot_be_read_does_not_hide_the_others(tmp_path):
    write_search(tmp_path / "good")
    write_search(tmp_path / "bad")
    for name in ("trials.csv", "training_log.csv"):
        (tmp_path / "bad" / name).write_text("")
    document = words_of(tmp_path)
    assert any("bad: there is nothing to report" in text for text in document.missing)
    assert document.lead == "1 run in 1 group:" and document.headline == ("−14.00 per episode.",)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "name, garbage, told",
    [
        ("config.toml", "= =", "config.toml"),
        ("config.toml", "units = 3", "config.toml: was changed since the run began"),
        ("trials.csv", "id,workflow\n0,x\n", "trials.csv"),
        ("trials.csv", "\x00" * 200_000, "trials.csv"),
        ("training_log.csv", "Workflow_ID\n1\n", "training_log.csv"),
        ("gp_sampling_log.csv", "what\n", "gp_sampling_log.csv"),
        ("runtime.csv", "what\n", "runtime.csv"),
        ("warmup/result.json", "[" * 100_000, "warmup/result.json"),
        ("warmup/result.json", '{"evaluation": {"mean": NaN, "low": 1, "high": 2}}', "result.json"),
        ("best/policy.json", '{"sha256": "other"}', "best/"),
    ],
)
def test_a_damaged_file_is_named_and_the_rest_is_shown(search, name, garbage, told):
    """That figures can be drawn of what is left, the test of missing files shows."""
    (search / name).write_text(garbage)
    document = words_of(search)
    assert any(told in text for text in document.missing), document.missing
    assert document.figures


@pytest.mark.parametrize(
    ("garbage", "told"), [("{", "manifest.json: cannot be read"), ('{"schema": 99, "kind": "search"}', "another version")]
)
def test_without_its_manifest_a_run_is_none(search, garbage, told):
    (search / "manifest.json").write_text(garbage)
    with pytest.raises(RunDirError, match=told):
        words_of(search)
    (search / "manifest.json").unlink()
    with pytest.raises(RunDirError, match="is not a run directory"):
        words_of(search)


def test_a_changed_digit_of_a_result_is_noticed(tmp_path):
    folder = write_training(tmp_path / "run")
    assert words_of(folder).missing == ()
    text = (folder / "result.json").read_text()
    (folder / "result.json").write_text(text.replace("-15.0", "-12.0"))
    assert words_of(folder).missing == (
        f"{folder / 'result.json'}: cannot be read (its document_sha256 is not that of its contents)",
    )


NOTHING = ["config.toml", "runtime.csv", "best"]  # no figure shows them


@pytest.mark.parametrize("name", ["trials.csv", "training_log.csv", "gp_sampling_log.csv", *NOTHING])
def test_a_missing_file_is_named_and_figures_are_drawn_of_what_is_left(search, name):
    (search / name).rename(search.parent / "elsewhere")
    document = words_of(search) if name in NOTHING else report([search]).document
    assert any(name in text for text in document.missing) and document.figures


def test_a_half_written_ledger_counts_up_to_its_last_whole_line(search):
    path = search / "trials.csv"
    path.write_bytes(path.read_bytes()[:-20])
    assert "3 trials" in answer(search)


def test_a_run_that_is_worked_on_says_so_and_an_interrupted_one_how_to_go_on(search):
    with locked(search):
        assert read_run(search).missing[0].startswith("The run goes on")


def test_an_interrupted_run_says_how_to_go_on(search):
    (search / "runtime.csv").unlink()
    write_session(search, 1.0, outcome="interrupted")
    assert f"fixfirst resume {search}" in read_run(search).missing[0]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("trials.csv", "accepted,-14.2,", "accepted,-14.3,"),
        ("trials.csv", ALIKE, "mice > men"),
        ("training_log.csv", "0.3,", "0.4,"),
        ("gp_sampling_log.csv", "-16.0", "-15.0"),
        ("runtime.csv", "10.0", "11.0"),
    ],
)
def test_a_log_with_a_changed_cell_is_left_out(search, name, old, new):
    replace_in(search / name, old, new)
    assert any(f"{name}: damaged (line" in text for text in read_run(search).missing)


ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def test_whatever_a_run_holds_is_shown_as_text(tmp_path):
    name = ATTACK.replace("/", "")
    folder = write_search(tmp_path / name, command=ATTACK, red_agent=ATTACK, note=ATTACK + "]]>&amp;\u202e")
    for folders in ([folder], [folder, write_training(tmp_path / "plain")]):
        text = report(folders, tmp_path / "out.html").path.read_text()
        assert "<img" not in text and text.count("<script>") == 1  # our own
        assert ATTACK in unescape(text)


def test_control_characters_of_a_name_do_not_reach_the_files(tmp_path):
    folder = write_training(
        tmp_path / "a\x1b[31m$b$\ud800c".encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    )
    other = write_training(tmp_path / "plain", seed=1, red_agent="meander")
    written = report([folder, other], tmp_path / "out.html", figures=tmp_path / "figures")
    assert "\x1b" not in written.path.read_text()
    ElementTree.parse(tmp_path / "figures" / "groups-1.svg")  # raises where it is not XML


# ---------------------------------------------------------------- files


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_every_figure_comes_as_svg_png_and_csv(search, tmp_path):
    written = report([search], figures=tmp_path / "figures")
    names = {figure.name for figure in written.document.figures}
    assert names == {"ranking", "pairs", "positions", "progress", "compliance", "learning", "time"} - {"pairs"}
    for name in names:
        ElementTree.parse(tmp_path / "figures" / f"{name}.svg")
        assert (tmp_path / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert read_table(tmp_path / "figures" / f"{name}.csv")
    assert len(written.figures) == 3 * len(names)


def test_pair_effects_are_drawn_once_enough_orders_were_tried(tmp_path):
    texts = [str(workflow) for workflow in all_workflows()][::5]
    trials = [(i, text, "accepted", -14.0 - i % 7, 0.1, 0.99, 0.98, 100, None) for i, text in enumerate(texts)]
    written = report([write_search(tmp_path / "run", trials)], figures=tmp_path / "figures")
    assert "pairs" in [figure.name for figure in written.document.figures]
    assert len(read_table(tmp_path / "figures" / "pairs.csv")) == 10


def test_what_is_drawn_is_what_the_csv_says(search, tmp_path):
    """In the SVG, the dots of the ranking lie on a line through (return, place): two fix the scale, the others must fit."""
    figure = figures.ranking(read_run(search))
    figure.write(tmp_path)
    rows = read_table(tmp_path / "ranking.csv")
    assert [float(row["return"]) for row in rows] == [-14.0, -14.2, -30.0, -22.0]
    assert [row["verdict"] for row in rows] == ["may be best", "may be best", "worse", "not accepted"]
    svg = (tmp_path / "ranking.svg").read_text()
    drawn = re.findall(r"<title>\d+\. ([^\n]*)\n.*?</title>.*?<use [^>]*x=\"([\d.]+)\"", svg, re.S)
    assert [unescape(order) for order, _ in drawn] == [row["order"] for row in rows]
    at, value = np.array([float(x) for _, x in drawn]), np.array([float(row["return"]) for row in rows])
    scale = (at[0] - at[2]) / (value[0] - value[2])
    assert at - at[0] == pytest.approx(scale * (value - value[0]), abs=1e-3)
    inline = figure.inline()  # follows the page's colours; files are printed in ink
    assert "currentColor" in inline and "#010203" not in inline + svg and "#222222" in svg
    assert "http-equiv" not in inline and "<metadata" not in inline


def test_the_same_files_give_the_same_report(search, tmp_path):
    first, second = (report([search], tmp_path / f"{i}.html", figures=tmp_path / f"f{i}") for i in (1, 2))
    assert first.path.read_bytes() == second.path.read_bytes()
    assert [path.read_bytes() for path in first.figures] == [path.read_bytes() for path in second.figures]


def test_a_large_run_stays_well_below_3_megabytes(tmp_path):
    """All 120 orders with 100 updates each: 1.2 million episodes."""
    texts = map(str, all_workflows())
    trials = [(i, text, "accepted", -14.0 - i / 10, 0.1, 0.99, 0.98, 10_000, None) for i, text in enumerate(texts)]
    assert report([write_search(tmp_path / "run", trials)]).path.stat().st_size < 1_500_000


def test_thirteen_unit_types_can_be_shown(tmp_path):
    scheme = UnitScheme.per_host()
    texts = [str(Workflow(tuple(np.roll(range(13), shift)), scheme)) for shift in range(5)]
    trials = [(i, text, "accepted", -14.0 - i, 0.1, 0.99, 0.98, 200, None) for i, text in enumerate(texts)]
    folder = write_search(tmp_path / "run", trials, units={name: [name] for name in HOST_NAMES})
    document = report([folder]).document
    assert document.headline == ("Fix Defender before User1, Enterprise0 before User1 and Enterprise1 before User1.",)
    assert any("Not told by what was tried" in text for section in document.sections for text in section.text)


def test_markdown_says_the_same_and_links_its_pictures(search, tmp_path):
    written = report([search], tmp_path / "doc" / "run.md", figures=tmp_path / "pictures", form="md")
    text = written.path.read_text()
    assert all(escaped(sentence) in text for sentence in written.document.answer)
    links = re.findall(r"!\[.*?\]\(<(.*?)>\)", text)
    assert len(links) == len(written.document.figures)
    assert all((tmp_path / "doc" / link).is_file() and link.startswith("../pictures/") for link in links)
    assert escaped("<b> | *x* [y](z) &lt;\nnew") == r"\<b\> \| \*x\* \[y\](z) &amp;lt; new"
    assert f"| 1 | {escaped(BEST)} | −14.00 | −14.24 to −13.76 | 99.0 % | 98.0 % | may be best | 0 | 200 |" in text


# ---------------------------------------------------------------- at the edges


def test_a_slow_report_says_once_what_it_does(search, monkeypatch):
    monkeypatch.setattr("fixfirst.reporter.report.SILENT_S", -1.0)
    said = []
    report([search], say=said.append)
    assert said == ["drawing figures"]


def test_nothing_to_show_and_a_report_that_cannot_be_written_are_one_line_and_exit_code_2(search, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "nowhere"):
        assert main(["report", str(folder)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"fixfirst: {folder}: ")
    assert main(["report", str(search), "--out", str(search / "trials.csv" / "x.html")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_command_writes_beside_the_run_and_tells_people_and_programs_where(search, tmp_path, capsys):
    assert main(["report", str(search)]) == 0
    assert capsys.readouterr().out.strip() == str(search / "report.html")
    assert (search / "report.html").read_text().startswith("<!doctype html>")
    arguments = ["report", str(search), "--out", str(tmp_path / "x.html"), "--figures", str(tmp_path / "f"), "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["headline"].startswith("Fix op_host before user") and told["report"] == str(tmp_path / "x.html")
    assert told["runs"] == [str(search)] and len(told["figures"]) == 18 and told["missing"] == []


def test_a_figure_draws_no_more_than_a_reader_can_look_at(monkeypatch):
    """A file may name as many swaps as it likes; the numbers below the figure are all there."""
    monkeypatch.setattr(figure, "_MOST_ROWS", 3)
    monkeypatch.setattr(figure, "_MOST_MARKS", 4)
    marks = [figure.Mark(row, 1.0, f"mark {row}") for row in (0, 0, 1, 1, 2, 7)]
    drawn = figure.draw_rows("x", "alt", [f"row {n}" for n in range(8)], marks, "label", ("n",), [(n,) for n in range(8)])
    assert drawn.svg.count("<title>mark") == 4 and "row 2" in drawn.svg and "row 3" not in drawn.svg and len(drawn.rows) == 8
