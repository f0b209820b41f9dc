"""What several searches say together: whether a rule is good in every world.

Following "a before b" where the opposite is better has a cost. A rule is good in all worlds only if it is shown to be worth
something in one of them, and if in each of the others its cost is shown to be within the margin. What is not shown is open.
Worlds without one of the two unit types have no say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fixfirst.orders import network_facts
from fixfirst.runs.answer import NO_ANSWER, Answer, list_words, nothing_shown
from fixfirst.runs.survey import Survey
from fixfirst.runs.worlds import SearchedWorld, Verdict

MOST_WORLDS = 12  # of more, only what they say together is put into sentences


@dataclass(frozen=True)
class Agreement:
    """What the searches of a study say together.

    For example:

        study = ff.search(red_agent="b_line,meander", total_episodes=2_000, out="runs/both", quiet=True)
        print(study.agreement.rule, *study.agreement.sentences, sep="\\n")
    """

    worlds: tuple[SearchedWorld, ...]

    @classmethod
    def of(cls, answers: Sequence[Answer], networks: Sequence[network_facts.NetworkFacts] = ()) -> "Agreement":
        """Group answers by their worlds. networks: of each answer; needed only if they differ.

        What an answer says against attackers that learn is a world of its own.
        """
        places = [None] * len(answers) if len({network.digest for network in networks}) < 2 else networks
        groups: dict[tuple[str, str, str, str], list[tuple[Answer, network_facts.NetworkFacts | None]]] = {}
        found = list(zip(answers, places, strict=True))
        adaptive = [(also, place) for answer, place in found if (also := answer.against_adaptive()) is not None]
        for answer, network in found + adaptive:
            key = answer.red_agent, answer.variant, answer.memory, "" if network is None else network.digest
            groups.setdefault(key, []).append((answer, network))
        differing = [place for place in (1, 2) if len({key[place] for key in groups}) > 1]
        words = ("", "variant ", "memory ")
        names = (", ".join([key[0], *(f"{words[place]}{key[place]}" for place in differing)]) for key in groups)
        return cls(
            tuple(
                SearchedWorld(name, tuple(answer for answer, _ in of), of[0][1])
                for name, of in zip(names, groups.values(), strict=True)
            )
        )

    @cached_property
    def survey(self) -> Survey | None:
        """What several networks say together; None if there is one."""
        return None if self.worlds[0].network is None else Survey(self.worlds)

    @cached_property
    def shown(self) -> list[network_facts.Pair]:
        """Precedences that are shown to matter in some world."""
        found = (pair for world in self.worlds for pair in world.pairs if world.judge(pair) == Verdict.SHOWN)
        return list(dict.fromkeys(found))

    def is_good(self, pair: network_facts.Pair) -> bool:
        """Is it shown in every world that has both types that following it costs no more than the margin?"""
        return all(world.judge(pair) in (Verdict.SHOWN, Verdict.WITHIN) for world in self.worlds if world.has(pair))

    @property
    def rule(self) -> str:
        """The rule that is good in all worlds, in a few words."""
        good = [f"{a} before {b}{self._where((a, b))}" for a, b in self.shown if self.is_good((a, b))]
        if good:
            return f"Fix {list_words(good)}"
        if self.shown:
            return f"No rule is shown to be good {'against' if self.survey is None else 'in'} all of them"
        if not all(world.is_settled for world in self.worlds):
            return NO_ANSWER
        if any(world.pairs for world in self.worlds):
            return "No order is shown to be better than another: seeds disagree"
        return f"No {nothing_shown([answer for world in self.worlds for answer in world.answers if answer.is_settled])}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Why a rule that holds somewhere is not good everywhere; then what each world says.

        Of many worlds, what they say together.
        """
        if self.survey is not None and len(self.worlds) > MOST_WORLDS:
            return self.survey.sentences
        texts = []
        for a, b in self.shown:
            there = [world.name for world in self.worlds if world.judge((a, b)) == Verdict.SHOWN]
            others = [world for world in self.worlds if world.has((a, b))]
            bad = [world for world in others if world.judge((a, b)) not in (Verdict.SHOWN, Verdict.WITHIN)]
            if bad:
                doubts = list_words([f"against {world.name} {world.doubt((a, b))}" for world in bad])
                texts.append(f"{a.capitalize()} before {b} is shown against {list_words(there)}, but {doubts}.")
        each = (f"Against {world.name}: {' '.join(world.sentences)}" for world in self.worlds)
        return (*texts, *each, *(() if self.survey is None else self.survey.sentences))

    def _where(self, pair: network_facts.Pair) -> str:
        """Say in how many worlds a rule can be followed, if not in all."""
        count = sum(world.has(pair) for world in self.worlds)
        return "" if count == len(self.worlds) else f" (in the {count} of {len(self.worlds)} worlds that have both)"
