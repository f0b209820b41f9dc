"""The state of one environment: a record of fixed size, without pointers, that can be copied, saved and put back.

Sets of hosts and ports are bit masks (see `tables.py`), signed because Numba turns uint64 - int into a float. The record
holds the world, what red and blue know, and what happened in the last step. It holds no randomness: which outcomes come
next depends on the environment the record is in (`chance.py`), so one state copied into a thousand environments has a
thousand futures.
"""

from enum import IntEnum
from functools import cache

import numpy as np

from fixfirst.game.scenario import Scenario
from fixfirst.game.tables import SMALL, Size


class RedAgent(IntEnum):
    """The attackers."""

    B_LINE = 0
    MEANDER = 1
    SLEEP = 2
    LATE = 3  # sleeps for some time, then goes like B_line; CybORG has none of this kind


class RedVerb(IntEnum):
    """What red can do; the target is a subnet for DISCOVER, a host otherwise, and nothing for SLEEP."""

    SLEEP = 0
    DISCOVER = 1
    SCAN = 2
    EXPLOIT = 3
    ESCALATE = 4
    IMPACT = 5


class Success(IntEnum):
    """How an action is reported to whoever took it."""

    UNKNOWN = -1
    FALSE = 0
    TRUE = 1


class OTService(IntEnum):
    """The service on Op_Server0 that Impact stops. Once restored, it can never be stopped again in the episode."""

    RUNNING = 0
    STOPPED = 1
    RESTORED = 2


LEARNED = 128  # from this number on, an attacker's decisions are written into the record before the turn (`red_view.py`)
NO_TARGET = -1


@cache
def state_dtype(size: Size) -> np.dtype:
    """Return the type of a state, for scenarios of a size."""
    host_set, subnet_set, hosts = size.host_set, size.subnet_set, size.hosts
    return np.dtype(
        [
            # the clock
            ("episode", np.uint32),  # how many episodes this environment has finished or abandoned
            ("step", np.uint32),  # steps taken in this episode
            ("return10", np.int32),  # rewards of this episode so far, in tenths
            ("ended", np.bool_),  # the step limit was reached; a reset must come next
            # the world: who holds what
            ("privileged", host_set),  # hosts where red is root or SYSTEM
            ("removable", host_set),  # hosts with a user-level session that Remove kills; cleared once privileged
            ("stubborn", host_set),  # hosts with a user-level session that only Restore kills; cleared once privileged
            ("malware", host_set),  # hosts with files of red that Analyse finds
            ("patched", host_set),  # hosts whose smtp service resists HarakaRCE (variant leaderboard)
            ("decoys", np.int16, hosts),  # per host: ports opened by decoys
            ("ot", np.uint8),  # OTService
            # what red knows
            ("red_agent", np.uint8),  # RedAgent of this episode
            ("remembered", np.int16, hosts),  # per host: ports red saw listening; 0 = never scanned
            ("ot_known", np.bool_),  # red has found the OT service
            ("red_verb", np.uint8),  # RedVerb of the last step
            ("red_target", np.int8),
            ("red_success", np.int8),  # Success
            ("red_exploit", np.int8),  # index into EXPLOITS, or -1
            ("red_met", np.bool_),  # something answered red's last action: a host that was scanned, a service under attack
            ("red_wish", np.int8),  # the exploit that red names for its next attack; -1: the game draws one
            ("scan_answered", np.bool_),  # the last scan reached its host
            # B_line: position in its script
            ("bline_stage", np.uint8),
            ("bline_user", np.int8),  # the user host it goes through; -1 = not chosen yet
            ("bline_seen_server", np.bool_),  # its check whether the target answered is behind it
            # Meander and learned attackers: what they know and believe
            ("known_subnets", subnet_set),
            ("explored_subnets", subnet_set),
            ("known_hosts", host_set),  # by address
            ("known_names", host_set),
            ("scanned", host_set),
            ("exploited", host_set),  # believed to be held
            ("escalated", host_set),  # believed to be held as root
            ("breached", host_set),  # exploited successfully at least once
            # learned attackers only (red_view.py)
            ("lost", host_set),  # hosts once held and found lost
            ("failed", host_set),  # hosts where an exploit failed since the last scan that answered, or success
            ("failed_again", host_set),  # likewise, more than once
            ("resisted", host_set),  # likewise, although something answered
            ("impact_reported", np.bool_),  # an Impact was reported as a success
            ("sleeps", np.uint8),  # turns slept in a row
            # what blue sees
            ("observation", np.uint64, size.words),  # bit i = observation[i]; also blue's memory of who is compromised
            ("blue_action", np.int16),  # of the last step
            ("blue_success", np.int8),  # Success
            ("chances", np.int16),  # which chance decisions the last step made, one bit each (chance.py)
        ]  # packed: no padding, so that equal states have equal bytes
    )


# What happened in the last turn of an environment, and its state since: the same of every world.
_TURN_FIELDS: tuple[str, ...] = ("step", "return10", "red_agent", "red_verb", "red_target", "red_success", "red_exploit")
_TURN_FIELDS += ("scan_answered", "blue_action", "blue_success", "ot")


@cache
def turn_dtype(scenario: Scenario) -> np.dtype:
    """Return the type of a turn as worlds give it; `observation` is one word, or several."""
    fields = state_dtype(SMALL)
    hosts = scenario.num_hosts
    more = [("observation", np.uint64, scenario.words_shape), ("decoys", np.int16, hosts), ("access", np.uint8, hosts)]
    more += [("red_belief", np.uint8, hosts)]  # of learned attackers: none, user, root, lost
    return np.dtype([*((name, fields[name]) for name in _TURN_FIELDS), *more])
