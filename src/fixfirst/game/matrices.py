"""Remembering as matrices of 0 and 1, for whoever carries a memory out of here: files made by `fixfirst export`.

What `remembering.py` does with sets in integers, these do with rows of bits. D slots of decoys.
"""

from typing import NamedTuple

import numpy as np

from fixfirst.game.action_sets import ActionSet
from fixfirst.game.decoy_lists import CLEARS, PLACES
from fixfirst.game.memory import ANALYSES, GROUPS, HALF_SCANS, HALF_SLOTS, RESTORES
from fixfirst.game.network import HOST_NAMES
from fixfirst.game.remembering import Memories
from fixfirst.game.tables import HALF_BITS

NUM_SLOTS = int(max(PLACES)).bit_length()


class MemoryMatrices(NamedTuple):
    """All float32."""

    groups: dict[str, int]  # the bits of each group of memory, in their order
    restores: np.ndarray  # [145, 13]: the host an action restores
    analyses: np.ndarray  # [145, 13]: the host an action analyses
    places: np.ndarray  # [145, D]: the decoy an action places
    clears: np.ndarray  # [145, D]: the decoys an action takes away
    host_slots: np.ndarray  # [13, bits of `seen`]: the decoys of a host
    host_scans: np.ndarray  # [13, bits of `scans`]: the bit of a host


def memory_matrices() -> MemoryMatrices:
    """Made anew from the tables of the compiled functions."""
    groups = {group.name: len(group.parts) for group in GROUPS}
    hosts = [divmod(host, HALF_BITS) for host in range(len(HOST_NAMES))]
    slots = [int(HALF_SLOTS[half, 1 << place]) for half, place in hosts]
    scans = [int(HALF_SCANS[half, 1 << place]) for half, place in hosts]
    return MemoryMatrices(
        groups,
        _bits(RESTORES, len(HOST_NAMES)),
        _bits(ANALYSES, len(HOST_NAMES)),
        _bits(PLACES, NUM_SLOTS),
        _bits(CLEARS, NUM_SLOTS),
        _bits(slots, groups["seen"]),
        _bits(scans, groups["scans"]),
    )


class Meaning(NamedTuple):
    """What a choice does: the first action whose decoy does not stand, else the last one."""

    actions: tuple[int, ...]
    slots: tuple[int, ...]  # of these actions, but for the last
    masked: bool  # once all of its decoys stand


def meanings_of(action_set: ActionSet) -> list[Meaning]:
    """Of every choice, found out by taking it until it places nothing new."""
    found = []
    for choice in range(action_set.size):
        memory = Memories(1, "none", action_set)
        actions: list[int] = []
        slots: list[int] = []
        while True:
            (action,) = np.array(memory.actions_of(np.array([choice]))).tolist()
            placed = int(PLACES[action]).bit_length() - 1
            actions.append(action)
            if choice < len(action_set.actions) or placed < 0 or placed in slots:
                break
            slots.append(placed)
            memory.records["decoy"] |= PLACES[action]
        found.append(Meaning(tuple(actions), tuple(slots), not memory.masks()[0, choice]))
    return found


def _bits(sets: np.ndarray | list[int], size: int) -> np.ndarray:
    """[M, size] float32 of sets [M] in integers."""
    return (np.asarray(sets, np.int64)[:, None] >> np.arange(size) & 1).astype(np.float32)
