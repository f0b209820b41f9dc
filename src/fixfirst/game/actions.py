"""The 145 actions of blue: ids <-> (verb, host). Ids are computed from the tables, never typed."""

from typing import NamedTuple

from fixfirst.game.scenario import DECOYS, HOST_ID, HOST_NAMES, NUM_HOSTS

# Verbs in the order of their ids: two without a host, then blocks of one action per host.
FREE_VERBS = ("Sleep", "Monitor")
HOST_VERBS = ("Analyse", "Remove", *(f"Decoy{decoy.name}" for decoy in DECOYS), "Restore")
VERBS = FREE_VERBS + HOST_VERBS
REPAIR_VERBS = ("Remove", "Restore")
NUM_ACTIONS = len(FREE_VERBS) + len(HOST_VERBS) * NUM_HOSTS
SLEEP = 0


class BlueAction(NamedTuple):
    """What an action id stands for; `host` is None for Sleep and Monitor."""

    verb: str
    host: str | None

    def __str__(self) -> str:
        return f"{self.verb} {self.host}" if self.host else self.verb


def action_id(verb: str, host: str | None = None) -> int:
    """The id of an action: action_id("Restore", "Op_Server0") == 139."""
    if host is None:
        return FREE_VERBS.index(verb)
    return len(FREE_VERBS) + HOST_VERBS.index(verb) * NUM_HOSTS + HOST_ID[host]


ACTIONS = tuple(BlueAction(verb, None) for verb in FREE_VERBS) + tuple(
    BlueAction(verb, host) for verb in HOST_VERBS for host in HOST_NAMES
)
