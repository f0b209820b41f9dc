"""Settings of a run by name, whichever version wrote its config.toml."""

import tomllib

import pytest

from fixfirst.orders.order import UnitScheme
from fixfirst.reporter.run import Run
from fixfirst.runs.layout import Kind
from fixfirst.runs.manifest import create_run
from fixfirst.runs.setting_names import flatten
from fixfirst.settings.search import SearchConfig
from fixfirst.settings.training import TrainConfig

# As earlier versions wrote them.
OLD_SEARCH = """
seed = 7
total_episodes = 3000
strategy = "gp_ucb"
separate = true
beginners = 3
[training]
seed = 0
total_episodes = 20000
workflow = "none"
[training.game]
red_agent = "meander"
cyborg = "/there"
[training.gate]
compliance_threshold = 0.9
min_episodes = 0
[training.ppo]
num_envs = 100
episodes_per_update = 100
value = 0.25
[training.alignment]
kind = "penalty"
weight = 3.0
rate = 1.0
"""
OLD_TRAINING = 'total_episodes = 400\nworkflow = "balanced"\n[game]\nmax_steps = 9\n[ppo]\nnum_envs = 4'
FLAT = {
    **{"seed": 7, "total_episodes": 3000, "strategy": "gp_ucb", "separate": True, "trainings": 3, "max_episodes": 20_000},
    **{"workflow": "none", "red_agent": "meander", "cyborg": "/there", "compliance_threshold": 0.9, "min_episodes": 0},
    **{"n_envs": 100, "episodes_per_update": 100, "vf_coef": 0.25},
    **{"keep": "penalty", "alignment_lambda": 3.0, "alignment_rate": 1.0},
}


def test_a_configuration_in_tables_is_flattened_and_the_outermost_of_a_name_wins():
    assert flatten(tomllib.loads(OLD_SEARCH)) == FLAT == flatten(FLAT)


def test_configurations_of_earlier_versions_still_make_configs():
    search = SearchConfig.resolve({}, {name: value for name, value in FLAT.items() if name != "cyborg"})
    assert search == SearchConfig.resolve({}, tomllib.loads(OLD_SEARCH) | {"cyborg": None})
    assert (search.total_episodes, search.training.total_episodes, search.game.red_agent) == (3000, 20_000, "meander")
    training = TrainConfig.resolve({}, tomllib.loads(OLD_TRAINING))
    assert (training.total_episodes, training.max_steps, training.ppo.num_envs) == (400, 9, 4)


def test_what_decides_a_result_leaves_out_what_does_not(tmp_path):
    units = UnitScheme.per_host().as_dict()
    create_run(tmp_path / "run", Kind.SEARCH, FLAT | {"units": units, "from_policy": None})
    run = Run(tmp_path / "run")
    assert run.config == {name: value for name, value in FLAT.items() if name != "cyborg"} | {"units": units}
    assert run.scheme == UnitScheme.per_host()
    assert run.result_settings["kind"] == "search" and run.result_settings["n_envs"] == "100"
    assert not {"seed", "cyborg", "workflow"} & set(run.result_settings)


@pytest.mark.parametrize("training", [3, [], "game"])
def test_a_table_that_is_none_holds_no_settings(training):
    assert flatten({"training": training}) == {"training": training}
