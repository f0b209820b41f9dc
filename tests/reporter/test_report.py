"""What a report says is what the run directory holds, whatever state that is in."""

import csv
import json
import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

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

from fixfirst.base.errors import RunDirError
from fixfirst.base.tables import Table
from fixfirst.cli import main
from fixfirst.orders.order import UnitScheme, Workflow, all_workflows
from fixfirst.reporter import curves, figures, groups, row_figure
from fixfirst.reporter.page import escaped
from fixfirst.reporter.readable_run import read_run
from fixfirst.reporter.report import expand_run_folders, report, report_document
from fixfirst.runs.rows import MatrixRow, ValueRow
from fixfirst.runs.sessions import locked
from fixfirst.stats.across_seeds import ranking_table
from fixfirst.stats.pricing import Part


def words_of(*folders):
    return report_document(expand_run_folders(folders))


@pytest.fixture
def search(tmp_path):
    return write_search(tmp_path / "run")


# ---------------------------------------------------------------- a page of each kind, as it was approved

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
    parts = (Part("enterprise", 4.0, 3.8, 4.2), Part("Restore", 0.3, 0.1, 0.5))
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


def test_a_winner_is_called_one_only_if_it_is_told_from_all_others(tmp_path):
    clear = (TRIALS[0], TRIALS[1], (2, ALIKE, "accepted", -16.0, 0.1, 0.97, 0.95, 200, 1))
    document = words_of(write_search(tmp_path / "run", clear))
    assert document.answer[0].startswith(f"Best order (95 % confidence): {BEST}, return -14.00 ")
    assert document.lead == "The best of 3 accepted orders:" and document.headline == tuple(BEST.split(" > "))
    document = words_of(write_search(tmp_path / "one", TRIALS[:1]))
    assert document.lead == "The only order that passed the gate:" and "Only one order passed the gate" in document.answer[0]


def test_without_an_accepted_order_there_is_no_best_one_and_a_dead_worker_leaves_no_numbers(tmp_path):
    lost = [
        (0, LOST, "non_compliant", -22.0, 0.4, 0.6, 0.3, 300, None),
        (1, LOST, "failed", None, None, None, None, 0, None),
    ]
    document = words_of(write_search(tmp_path / "run", lost))
    assert document.headline == ("No order passed the gate.",)
    cells = [line[4:] for line in document.sections[0].tables[0].cells()[1:]]
    assert cells == [["60.0 %", "30.0 %", "0", "300"], ["-", "-", "1", "0"]]


def test_the_page_of_a_training_says_what_an_episode_cost_and_how_often_blue_repaired(trained):
    document, evaluation = words_of(trained), read_run(trained).result
    said = f"It made {evaluation.restores:.2f} Restores and {evaluation.removes:.2f} Removes an episode."
    assert document.answer[0].endswith(said)
    (table,) = next(section.tables for section in document.sections if section.title == "What an episode cost")
    *parts, whole = [row[1] for row in table.rows]
    assert sum(parts) == pytest.approx(whole) and whole == -evaluation.mean


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
def test_a_run_whose_settings_stand_where_earlier_versions_put_them_is_in_the_same_group(search, tmp_path, settings):
    old = write_search(tmp_path / "old", seed=1)
    write_config(old, OLD_SEARCH | settings)
    documents = [words_of(folder) for folder in (search, old)]
    assert documents[0].answer == documents[1].answer and documents[1].missing == ()
    ((group,), _) = groups.group_runs([read_run(search), read_run(old)])
    assert len(group.runs) == 2


def test_runs_that_differ_only_in_seed_are_a_group_named_by_what_differs_and_a_seed_counts_once(tmp_path):
    for seed in (0, 1):
        write_search(tmp_path / f"gp-{seed}", seed=seed)
        write_search(tmp_path / f"random-{seed}", seed=seed, strategy="random")
    write_training(tmp_path / "plain")
    runs = [read_run(folder) for folder in sorted(tmp_path.iterdir())]
    found, repeated = groups.group_runs(runs)
    assert {group.label: len(group.runs) for group in found} == {"search, gp_ucb": 2, "search, random": 2, "train": 1}
    assert repeated == []
    found, repeated = groups.group_runs([runs[0], read_run(write_search(tmp_path / "copy"))])
    assert [len(group.runs) for group in found] == [1]
    assert repeated == ["copy has the configuration and seed of gp-0; it is left out of the comparison."]


# ---------------------------------------------------------------- curves


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
    rows = curves.trainings_table(run, run.answer.rounds, (swap.first, swap.second)).dicts()
    assert {row["training"] for row in rows} == {row.replicate for row in run.rounds}
    for number in {row["training"] for row in rows}:
        own = [row for row in run.rounds if row.replicate == number]
        drawn = [row for row in rows if row["training"] == number]
        best = [max(row.mean for row in own if row.round == r) for r in sorted({o.round for o in own})]
        assert [row["best_return"] for row in drawn] == best
        assert {row["dropped"] for row in drawn} == {max(row.round for row in own) < len(run.answer.rounds)}
        assert tuple(row["episodes"] for row in drawn) == run.answer.rounds[: len(drawn)]
    # Prices of the search after its last round are the mean of those of its trainings.
    last = [row["price"] for row in rows if row["episodes"] == run.answer.rounds[-1]]
    assert np.mean(last) == pytest.approx(swap.history[-1])


# ---------------------------------------------------------------- what is missing, or damaged


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
    "name, garbage, named",
    [
        ("config.toml", "= =", "config.toml"),
        ("config.toml", "units = 3", "config.toml: was changed since the run began"),
        ("trials.csv", "id,workflow\n0,x\n", "trials.csv"),
        ("trials.csv", "\x00" * 200_000, "trials.csv"),
        ("training_log.csv", "Workflow_ID\n1\n", "training_log.csv"),
        ("gp_sampling_log.csv", "what\n", "gp_sampling_log.csv"),
        ("runtime.csv", "what\n", "runtime.csv"),
        ("warmup/result.json", "[" * 100_000, "warmup/result.json"),
        ("best/policy.json", '{"sha256": "other"}', "best/"),
        *((name, None, name) for name in ("config.toml", "trials.csv", "training_log.csv", "gp_sampling_log.csv", "best")),
    ],
)
def test_a_damaged_or_missing_file_is_named_and_the_rest_is_shown(search, name, garbage, named):
    if garbage is None:
        (search / name).rename(search.parent / "elsewhere")
    else:
        (search / name).write_text(garbage)
    document = words_of(search)
    assert any(named in text for text in document.missing), document.missing
    assert all(figure.svg for figure in document.figures) and document.figures


@pytest.mark.parametrize(
    ("garbage", "says"), [("{", "manifest.json: cannot be read"), ('{"schema": 99, "kind": "search"}', "another version")]
)
def test_without_its_manifest_a_run_is_none(search, garbage, says):
    (search / "manifest.json").write_text(garbage)
    with pytest.raises(RunDirError, match=says):
        words_of(search)
    (search / "manifest.json").unlink()
    with pytest.raises(RunDirError, match="is not a run directory"):
        words_of(search)


def test_a_changed_digit_of_a_result_is_noticed(tmp_path):
    path = write_training(tmp_path / "run") / "result.json"
    path.write_text(path.read_text().replace("-15.0", "-12.0"))
    assert words_of(path.parent).missing == (f"{path}: cannot be read (its document_sha256 is not that of its contents)",)


def test_a_half_written_ledger_counts_up_to_its_last_whole_line(search):
    path = search / "trials.csv"
    path.write_bytes(path.read_bytes()[:-20])
    assert "3 trials" in " ".join(words_of(search).answer)


def test_a_run_that_is_worked_on_says_so_and_an_interrupted_one_how_to_go_on(search):
    (search / "runtime.csv").unlink()
    write_session(search, 1.0, outcome="interrupted")
    with locked(search):
        assert read_run(search).missing[0].startswith("The run goes on")
    assert f"fixfirst resume {search}" in read_run(search).missing[0]


# ---------------------------------------------------------------- names are text

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def test_whatever_a_run_holds_is_shown_as_text(tmp_path):
    name = ATTACK.replace("/", "")
    folder = write_search(tmp_path / name, command=ATTACK, red_agent=ATTACK, note=ATTACK + "]]>&amp;\u202e")
    for folders in ([folder], [folder, write_training(tmp_path / "plain")]):
        text = report(folders, tmp_path / "out.html").path.read_text()
        assert "<img" not in text and text.count("<script>") == 1  # our own
        assert ATTACK in unescape(text)
        text = report(folders, tmp_path / "out.md", form="md").path.read_text()
        assert not re.search(r"(?<!\\)<(img|script)", re.sub(r"\n    .*", "", text))  # indented: code
    assert escaped("<b> | *x* [y](z) &lt;\nnew") == r"\<b\> \| \*x\* \[y\](z) &amp;lt; new"


def test_no_terminal_page_or_picture_obeys_the_name_of_a_folder(tmp_path, capsys):
    name = "a\x1b[31m$b$*c*\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    folder = write_training(tmp_path / name)
    for runs in ([folder], [folder, write_training(tmp_path / "other", red_agent="meander")]):
        out = tmp_path / "out.md"
        assert main(["report", *map(str, runs), "--format", "md", "--out", str(out), "--figures", str(tmp_path / "f")]) == 0
        assert r"\$b\$\*c\*" in out.read_text() and "\x1b" not in out.read_text()
        ElementTree.parse(tmp_path / "f" / "learning.svg")  # raises where it is not XML
    for command in (["report", folder], ["runs", tmp_path], ["runs", tmp_path / name / "entrants"]):
        (tmp_path / name / "entrants").mkdir(exist_ok=True)
        assert main([*map(str, command)]) == 0
        printed = capsys.readouterr()
        assert "a\ufffd[31m$b$*c*\ufffd" in printed.out and "\x1b" not in printed.out + printed.err


# ---------------------------------------------------------------- files


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_every_figure_comes_as_svg_png_and_csv_and_markdown_links_its_pictures(search, tmp_path):
    written = report([search], tmp_path / "doc" / "run.md", figures=tmp_path / "pictures", form="md")
    names = {figure.name for figure in written.document.figures}
    assert names == {"ranking", "learning"} and len(written.figures) == 3 * len(names)
    for name in names:
        ElementTree.parse(tmp_path / "pictures" / f"{name}.svg")
        assert (tmp_path / "pictures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert read_table(tmp_path / "pictures" / f"{name}.csv")
    links = re.findall(r"!\[.*?\]\(<(.*?)>\)", written.path.read_text())
    assert len(links) == 2 and all(link.startswith("../pictures/") for link in links)
    assert all((tmp_path / "doc" / link).is_file() for link in links)


def test_what_is_drawn_is_what_the_csv_says(search, tmp_path):
    """In the SVG, the dots of the ranking lie on a line through (return, place): two fix the scale, the others must fit."""
    run = read_run(search)
    figure = figures.ranking(ranking_table(run.ranked_trials, run.trials, all_tried=True))
    figure.write(tmp_path)
    rows = read_table(tmp_path / "ranking.csv")
    assert [float(row["mean"]) for row in rows] == [-14.0, -14.2, -30.0, -22.0]
    assert [row["verdict"] for row in rows] == ["may be best", "may be best", "worse", "not accepted"]
    svg = (tmp_path / "ranking.svg").read_text()
    drawn = re.findall(r"<title>([^\n]*)\n.*?</title>.*?<use [^>]*x=\"([\d.]+)\"", svg, re.S)
    assert [unescape(order) for order, _ in drawn] == [row["order"] for row in rows]
    at, value = np.array([float(x) for _, x in drawn]), np.array([float(row["mean"]) for row in rows])
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


def test_a_figure_draws_no_more_than_a_reader_can_look_at(monkeypatch):
    """A file may name as many swaps as it likes; the numbers below the figure are all there."""
    monkeypatch.setattr(row_figure, "_MOST_ROWS", 3)
    monkeypatch.setattr(row_figure, "_MOST_MARKS", 4)
    table = Table(("name", "n"), tuple((f"row {n}", n) for n in range(8)))
    marks = [row_figure.Mark(row, 1.0, f"mark {row}") for row in (0, 0, 1, 1, 2, 7)]
    drawn = row_figure.rows_figure("x", table, marks, "label")
    assert drawn.svg.count("<title>mark") == 4 and "row 2" in drawn.svg and "row 3" not in drawn.svg
    assert len(drawn.table.rows) == 8


# ---------------------------------------------------------------- the command


def test_nothing_to_show_and_a_report_that_cannot_be_written_are_one_line_and_exit_code_2(search, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    outs = [[tmp_path / "empty"], [tmp_path / "nowhere"], [search, "--out", search / "trials.csv" / "x.html"]]
    for arguments in outs:
        assert main(["report", *map(str, arguments)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"fixfirst: {arguments[-1].parent if len(arguments) > 1 else arguments[0]}")


def test_the_command_writes_beside_the_run_and_tells_people_and_programs_where(search, tmp_path, capsys):
    assert main(["report", str(search)]) == 0
    assert capsys.readouterr().out.strip() == str(search / "report.html")
    assert (search / "report.html").read_text().startswith("<!doctype html>")
    arguments = ["report", str(search), "--out", str(tmp_path / "x.html"), "--figures", str(tmp_path / "f"), "--json"]
    assert main(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["headline"].startswith("Fix op_host before user") and printed["report"] == str(tmp_path / "x.html")
    assert printed["runs"] == [str(search)] and len(printed["figures"]) == 6 and printed["missing"] == []
