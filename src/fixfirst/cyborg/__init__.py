"""The original game, CybORG, behind the arrays of our own: found, identified, played in worker processes, recorded."""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.cyborg.backends import make_world, world_for
    from fixfirst.cyborg.checkout import ENVIRONMENT_VARIABLE, find_cyborg, load_cyborg
    from fixfirst.cyborg.game import CyborgGame
    from fixfirst.cyborg.recorder import Recording, record
    from fixfirst.cyborg.variant import identify
    from fixfirst.cyborg.vec_env import CyborgVecEnv, make_vec
else:
    __getattr__, __dir__ = offers(__name__)
