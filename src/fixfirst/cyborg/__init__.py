"""The original game, CybORG, behind the arrays of our own: found, identified, played in worker processes, recorded."""

from fixfirst.cyborg.backends import CyborgVecEnv, make_vec, make_world, world_for
from fixfirst.cyborg.checkout import ENVIRONMENT_VARIABLE, find_cyborg, load_cyborg
from fixfirst.cyborg.game import CyborgGame
from fixfirst.cyborg.recorder import Recording, record
from fixfirst.cyborg.variant import identify
