"""What several searches say together: whether a rule is good in every world.

A rule is good in all worlds only if it is shown to be worth something in one of them, and if in each of the others its cost
is shown to be within the margin. What is not shown is open. Worlds without one of the two unit types have no say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fixfirst.base import errors
from fixfirst.stats.answer import NO_ANSWER, Answer, no_effect_text
from fixfirst.stats.network_facts import NetworkFacts, Pair
from fixfirst.stats.survey import Survey
from fixfirst.stats.worlds import SearchedWorld, Verdict

_MOST_WORLDS = 12


@dataclass(frozen=True)
class Agreement:
    """What the searches of a study say together.

    For example:

        study = ff.search(red_agent="b_line,meander", total_episodes=2_000, out="runs/both", quiet=True)
        print(study.agreement.rule, *study.agreement.sentences, sep="\\n")
    """

    worlds: tuple[SearchedWorld, ...]

    @classmethod
    def of(cls, answers: Sequence[Answer], networks: Sequence[NetworkFacts] = ()) -> "Agreement":
        """Group answers by their worlds. networks: of each answer; needed only if they differ.

        What an answer says against attackers that learn is a world of its own.
        """
        compared = [None] * len(answers) if len({network.digest for network in networks}) < 2 else networks
        searches = list(zip(answers, compared, strict=True))
        adaptive = [(answer.against_adaptive(), network) for answer, network in searches]
        searches += [(answer, network) for answer, network in adaptive if answer is not None]
        groups: dict[tuple[str, str, str, str], list[tuple[Answer, NetworkFacts | None]]] = {}
        for answer, network in searches:
            key = answer.red_agent, answer.variant, answer.memory, "" if network is None else network.digest
            groups.setdefault(key, []).append((answer, network))
        variants, memories = ({key[number] for key in groups} for number in (1, 2))
        worlds = []
        for (red_agent, variant, memory, _), of_world in groups.items():
            name = [red_agent]
            name += [f"variant {variant}"] if len(variants) > 1 else []
            name += [f"memory {memory}"] if len(memories) > 1 else []
            worlds.append(SearchedWorld(", ".join(name), tuple(answer for answer, _ in of_world), of_world[0][1]))
        return cls(tuple(worlds))

    @property
    def is_large(self) -> bool:
        """Are there so many worlds that only what they say together is put into sentences?"""
        return len(self.worlds) > _MOST_WORLDS

    @cached_property
    def survey(self) -> Survey | None:
        """What several networks say together; None if there is one."""
        return None if self.worlds[0].network is None else Survey(self.worlds)

    @cached_property
    def shown(self) -> list[Pair]:
        """Precedences that are shown to matter in some world."""
        pairs = (pair for world in self.worlds for pair in world.pairs if world.judge(pair) == Verdict.SHOWN)
        return list(dict.fromkeys(pairs))

    def _worlds_against(self, pair: Pair) -> list[SearchedWorld]:
        """Return the worlds with both types in which it is not shown that following it costs no more than the margin."""
        having = [world for world in self.worlds if world.has(pair)]
        return [world for world in having if world.judge(pair) not in (Verdict.SHOWN, Verdict.WITHIN)]

    @property
    def rule(self) -> str:
        """The rule that is good in all worlds, in a few words."""
        good = [f"{a} before {b}{self._where((a, b))}" for a, b in self.shown if not self._worlds_against((a, b))]
        if good:
            return f"Fix {errors.list_words(good)}"
        if self.shown:
            return f"No rule is shown to be good {'against' if self.survey is None else 'in'} all of them"
        if not all(world.is_settled for world in self.worlds):
            return NO_ANSWER
        if any(world.pairs for world in self.worlds):
            return "No order is shown to be better than another: seeds disagree"
        return f"No {no_effect_text([answer for world in self.worlds for answer in world.settled])}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Why a rule that holds somewhere is not good everywhere; then what each world says.

        Of many worlds, what they say together.
        """
        if self.survey is not None and self.is_large:
            return self.survey.sentences
        texts = []
        for a, b in self.shown:
            if against := self._worlds_against((a, b)):
                there = errors.list_words([world.name for world in self.worlds if world.judge((a, b)) == Verdict.SHOWN])
                doubts = errors.list_words([f"against {world.name} {world.doubt((a, b))}" for world in against])
                texts.append(f"{a.capitalize()} before {b} is shown against {there}, but {doubts}.")
        each = (f"Against {world.name}: {' '.join(world.sentences)}" for world in self.worlds)
        return (*texts, *each, *(() if self.survey is None else self.survey.sentences))

    def _where(self, pair: Pair) -> str:
        """Say in how many worlds a rule can be followed, if not in all."""
        count = sum(world.has(pair) for world in self.worlds)
        return "" if count == len(self.worlds) else f" (in the {count} of {len(self.worlds)} worlds that have both)"
