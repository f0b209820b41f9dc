"""Several seeds and red agents as one job: the bytes of each search alone."""

import json
import shutil

import pytest
from searches import EASY, RANDOM, SHARED, NoView, ledger, one_line, outcome, rows, settings_file

import fixfirst as ff
from fixfirst.base.jobs import InlineScheduler
from fixfirst.cli import main
from fixfirst.reporter.results import searches_document
from fixfirst.searcher.study import begin_study, open_study, run_searches, study_name
from fixfirst.settings.search import search_config, search_configs

MEMBERS = ["b_line-3", "b_line-4", "meander-3", "meander-4"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two seeds, two red agents, on two workers."""
    folder = tmp_path_factory.mktemp("study")
    arguments = ["--seed", "3", "--seeds", "2", "--red-agent", "B_lineAgent,meander", "--workers", "2", "--quiet"]
    assert main(["search", "--out", str(folder / "study"), "--config", str(settings_file(folder, EASY)), *arguments]) == 0
    return folder / "study"


def test_a_study_is_a_folder_of_runs_each_with_the_bytes_of_the_same_search_alone(study, tmp_path):
    (search,) = begin_study([search_config(**EASY, red_agent="meander", seed=4)], tmp_path / "alone").searches
    assert run_searches([search], InlineScheduler(), NoView(), interrupt=False, folder=search.folder)
    assert outcome(study / "meander-4") == outcome(search.folder)
    assert (study / "meander-4" / "config.toml").read_bytes() == (search.folder / "config.toml").read_bytes()
    assert sorted(path.name for path in study.iterdir()) == [".lock", *MEMBERS, "report.html", "study.json"]
    assert all((study / name / "report.html").exists() for name in MEMBERS)
    manifest = json.loads((study / "study.json").read_text())
    assert (manifest["kind"], manifest["seed"], manifest["options"]) == ("study", 3, {"searches": MEMBERS})
    assert main(["resume", str(study / "b_line-3"), "--quiet", "--no-report"]) == 0  # each stands on its own


class Watched(InlineScheduler):
    """Remembers how many jobs were waiting, at most."""

    most = 0

    def __init__(self, workers):
        super().__init__()
        self.workers = workers

    def wait(self, on_progress):
        self.most = max(self.most, len(self._jobs))
        return super().wait(on_progress)


@pytest.mark.parametrize("workers", [3, 1])
def test_as_many_searches_are_worked_on_as_workers_need(tmp_path, workers):
    """Three searches with rounds of one trial keep three workers busy; for one, each ends before the next begins."""
    configs = search_configs(RANDOM | {"round_size": 1, "n_workflows": 2}, seeds=3)
    study, executor = begin_study(configs, tmp_path / "study"), Watched(workers)
    assert run_searches(study.searches, executor, NoView(), interrupt=False, folder=study.folder)
    assert executor.most == workers and [len(ledger(search.folder)) for search in study.searches] == [2, 2, 2]


class InterruptAfter(NoView):
    """As interrupt: true once so many trials are recorded."""

    def __init__(self, trials):
        super().__init__()
        self.left = trials

    def recorded(self, search, trial):
        self.left -= 1

    def __bool__(self):
        return self.left <= 0


def test_resume_goes_on_with_all_that_is_unfinished_and_with_nothing_else(study, tmp_path):
    folder = tmp_path / "study"
    configs = [search.config for search in open_study(study).searches]
    begun = begin_study(configs, folder)
    assert run_searches(begun.searches[:1], InlineScheduler(), NoView(), interrupt=False, folder=folder)
    interrupt = InterruptAfter(3)
    assert not run_searches(begun.searches[1:], InlineScheduler(interrupt), interrupt, interrupt, folder)
    assert main(["resume", str(folder), "--workers", "1", "--quiet", "--no-report"]) == 0
    assert [outcome(folder / name) for name in MEMBERS] == [outcome(study / name) for name in MEMBERS]
    ends = [[row["outcome"] for row in rows(folder / name / "runtime.csv")] for name in MEMBERS]
    assert ends == [["finished"], ["interrupted", "finished"], ["finished"], ["finished"]]  # the last two had not begun


def test_a_plain_list_is_several_red_agents_weights_make_one_mixture_and_the_folder_names_agents_and_seeds():
    def searches(**given):
        return [(config.training.game.red_agent, config.seed) for config in search_configs(given, seeds=2)]

    each = [(red_agent, seed) for red_agent in ("b_line", "meander") for seed in (5, 6)]
    assert searches(red_agent="b_line,RedMeanderAgent", seed=5) == each
    assert searches(red_agent="b_line:0.5,meander:0.5") == [("b_line:0.5,meander:0.5", 0), ("b_line:0.5,meander:0.5", 1)]
    assert searches() == [("b_line", 0), ("b_line", 1)]
    assert study_name(search_configs({})) == "search-b_line-0"
    assert study_name(search_configs({"red_agent": "b_line,meander"}, seeds=5)) == "study-b_line-meander-0-4"
    assert study_name(search_configs({"scenario": "tiny"})) == "search-tiny-b_line-0"
    assert study_name(search_configs({"scenario": "cage2,tiny"})) == "study-cage2-tiny-b_line-0"
    assert study_name(search_configs({"scenario": "generate:0-3:hosts=8"})) == "study-4-networks-b_line-0"


def test_a_study_is_not_written_over(study, capsys):
    assert main(["search", "--out", str(study), "--seeds", "2", "--quiet"]) == 2
    one_line(capsys, f"{study} exists already; go on with it: fixfirst resume {study}")


def test_a_finished_study_is_shown_again_as_json(study, capsys):
    assert main(["resume", str(study), "--quiet", "--no-report", "--json"]) == 0
    said = capsys.readouterr()
    assert "was finished already; this is its result" in said.err
    assert json.loads(said.out) == json.loads(json.dumps(searches_document(open_study(study).searches, study)))


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """Two small networks with other unit types, one of them drawn at random."""
    folder = tmp_path_factory.mktemp("networks") / "study"
    small = {"max_steps": 20, "workers": 1, "quiet": True}
    return ff.search(scenario=["flat", "generate:3-3:hosts=8-9:subnets=4"], out=folder, **SHARED | small)


def test_networks_are_a_study_that_says_what_can_be_compared_as_a_page_as_json_and_as_csv(networks, tmp_path, capsys):
    assert [run.folder.name for run in networks.searches] == ["flat-b_line-0", "generated1-3-b_line-0"]
    together = networks.agreement
    assert [world.name for world in together.worlds] == ["b_line in flat", "b_line in generated1-3"]
    assert any("Two types are compared where both are." in text for text in together.sentences)
    assert together.rule == "No answer yet"
    assert [run.answer.scenario for run in networks.searches] == ["flat", "generated1-3"]
    assert {"the most valuable type first"} <= {row[0] for row in networks.tables()[0].rows}
    folder = shutil.copytree(networks.folder, tmp_path / "study")
    for path in (folder / "flat-b_line-0", folder):  # the page of a search that has one is linked
        assert main(["report", str(path)]) == 0
        assert capsys.readouterr().out.strip() == str(path / "report.html")
    page = (folder / "report.html").read_text()
    assert "How often rules hold" in page and 'href="flat-b_line-0/report.html"' in page
    assert main(["resume", str(networks.folder), "--quiet", "--no-report", "--json"]) == 0
    survey = json.loads(capsys.readouterr().out)["networks"]
    assert [network["name"] for network in survey["networks"]] == ["flat", "generated1-3"]
    assert {rule["attacker"] for rule in survey["rules"]} == {"b_line"}
    lines = networks.to_csv(tmp_path / "orders.csv").splitlines()[1:]
    assert {line.split(",")[0] for line in lines} == {run.folder.name for run in networks.searches}
    begun = begin_study([run.config for run in networks.searches], tmp_path / "begun").folder
    assert main(["report", str(begun)]) == 2
    one_line(capsys, f"2 searches are not finished; go on with: fixfirst resume {begun}")
