"""Small trainings in memory: of a defender, an attacker, a league; and all that one must bring back from a checkpoint."""

from searches import ORDER

from fixfirst.game.game_config import Game
from fixfirst.game.red_view import RedSpec
from fixfirst.learner.league import League
from fixfirst.learner.red_training import Opponent, RedTraining
from fixfirst.learner.training import Training
from fixfirst.policy.network import Network
from fixfirst.policy.trained import load_policy
from fixfirst.settings.league import LeagueConfig
from fixfirst.settings.training import make_config

RED = RedSpec()
UNTRAINED = Network.drawn(RED.inputs, RED.actions, 5).as_weights()


def small_defender(**settings):
    """25 updates of 4 episodes of 10 steps."""
    usual = {"workflow": ORDER, "keep": "penalty", "n_envs": 4, "max_steps": 10, "total_episodes": 100}
    return Training(make_config(**usual | settings))


def small_attacker():
    """4 updates."""
    return RedTraining([Opponent(load_policy("champion").player())], Game(max_steps=30), RED, episodes=200, seed=0)


def small_league():
    """Two rounds of 2 updates and a response; of two live attackers, the first meets a defender with lapses."""
    policy = load_policy("champion-current")
    sizes = {"live": 2, "lapsing": 1, "life": 2, "frozen": 1, "envs": 3, "frozen_envs": 2, "script_envs": 3}
    config = LeagueConfig(updates=4, responses=1, response_episodes=50, **sizes)
    return League(config, policy.spec, policy.weights, {"known": UNTRAINED})


def state(training):
    """Weights, moments and numbers, but for what the clock says."""
    numbers = {name: value for name, value in training.numbers().items() if name != "seconds"}
    return {name: array.tobytes() for name, array in training.tensors().items()}, numbers
