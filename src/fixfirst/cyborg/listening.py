"""CybORG's chance decisions, noted while it plays.

CybORG stays as it is on disk. In the recording process its few decisive random calls are replaced by ones that draw the
same numbers from the same generators and take note.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fixfirst.base import errors
from fixfirst.cyborg.checkout import Cyborg
from fixfirst.cyborg.cyborg_game import CyborgGame
from fixfirst.cyborg.recordings import HOST_LETTERS
from fixfirst.game import chance as dice
from fixfirst.game.scenario import CAGE2

_EXPLOIT_OF_WEIGHT = {exploit.weight: exploit.name for exploit in CAGE2.exploits}  # CybORG draws among weights


class Listener:
    """Notes the chance decisions of one game. Changes CybORG in this process for good."""

    def __init__(self, cyborg: Cyborg, game: CyborgGame):
        self._game = game
        self._noted_pids: Mapping[str, list[int]] = {}
        self.chances: list[list[Any]] = []  # of a turn: pairs of a decision and its outcome, as they are recorded
        self.pid_reused = False  # a new process got a process id that blue had noted
        agents, actions = "Agents.SimpleAgents", "Shared.Actions"
        exploits = cyborg.module(f"{actions}.AbstractActions.ExploitRemoteService")
        cyborg.module(f"{agents}.GreenAgent").random = _Dice(self._note_green)
        cyborg.module(f"{agents}.B_line").random = _Dice(lambda address: self._note("user", self._letter(address)))
        cyborg.module(f"{agents}.Meander").random = _Dice(self._note_order)
        top, detected = _Odds(self._note, "top", dice.P_TOP_EXPLOIT), _Odds(self._note, "detected", CAGE2.detection)
        exploits.random = _Dice(lambda weight: self._note("other", _EXPLOIT_OF_WEIGHT[weight]), top)
        cyborg.module(f"{actions}.ConcreteActions.ExploitAction").random = _Dice(odds=detected).random
        cyborg.module(f"{actions}.AbstractActions.Misinform").choice = _Dice(self._note_decoy).choice
        self._watch_processes(cyborg.module("Simulator.Host").Host)

    def begin_turn(self) -> None:
        """Forget the last turn."""
        self.chances, self.pid_reused, self._noted_pids = [], False, self._game.noted_pids

    def _note(self, decision: str, outcome: Any) -> None:
        self.chances.append([decision, outcome])

    def _letter(self, host_or_address: Any) -> str:
        return HOST_LETTERS[self._game.host_id(host_or_address)]

    def _note_green(self, picked: Any) -> None:
        if isinstance(picked, str):
            can_be_scanned = picked in (self._game.scenario.green_hosts or ())
            self._note("green_host", self._letter(picked) if can_be_scanned else None)
        else:
            self._note("green", {"Sleep": 0, "GreenPortScan": 1}[picked.__name__])

    def _note_decoy(self, picked: Any) -> None:
        """Note what Misinform places; sessions are drawn by the same function, and do not matter."""
        name = type(picked).__name__
        if name.endswith("DecoyFactory") and self._game.scenario.misinform:
            self._note("misinform", name.removesuffix("DecoyFactory"))

    def _note_order(self, order: Sequence[Any]) -> None:
        letters = "".join(map(self._letter, order))
        self._note("names" if isinstance(order[0], str) else "addresses", letters)

    def _watch_processes(self, host_class: Any) -> None:
        add_process = host_class.add_process

        def listened(host: Any, *args: Any, **kwargs: Any) -> Any:
            process = add_process(host, *args, **kwargs)
            self.pid_reused |= process.pid in self._noted_pids.get(host.hostname, ())
            return process

        host_class.add_process = listened


class _Odds(NamedTuple):
    """A yes-or-no decision and the probability of yes that our model expects."""

    note: Callable[[str, Any], None]
    decision: str
    probability: float


class _Dice:
    """Stands in for the module `random` in one module of CybORG: draws just as that would, and notes what came."""

    def __init__(self, note: Callable[[Any], None] = lambda picked: None, odds: _Odds | None = None):
        self._note, self._odds = note, odds

    def choice(self, options: Sequence[Any]) -> Any:
        picked = random.choice(options)
        self._note(picked)
        return picked

    def choices(self, options: Sequence[Any]) -> list[Any]:
        picked = random.choices(options)
        self._note(picked[0])
        return picked

    def shuffle(self, items: list[Any]) -> None:
        random.shuffle(items)
        self._note(items)

    def random(self) -> float:
        if self._odds is None:
            raise errors.CyborgError("CybORG draws a number where it did not before")
        draw = _Draw(random.random())
        draw.odds = self._odds
        return draw


class _Draw(float):
    """A random number that knows what it decides: the outcome is noted when it is compared with a probability."""

    odds: _Odds

    def __lt__(self, probability: float) -> bool:
        outcome = float(self) < probability
        note, decision, expected = self.odds
        if probability != expected:
            raise errors.CyborgError(f"CybORG decides {decision!r} with probability {probability}, not {expected}")
        note(decision, int(outcome))
        return outcome
