"""What searches in several networks say together: how often a rule holds, what it costs where it is wrong, what decides."""

from dataclasses import replace

import pytest
from answers import a_swap, an_answer
from approved import approve
from late import Late

from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.order import UnitScheme
from fixfirst.reporter import figures
from fixfirst.stats.agreement import Agreement
from fixfirst.stats.answer import Adaptive
from fixfirst.stats.network_facts import NetworkFacts

stats = Late("scipy.stats")

GOOD = (a_swap("enterprise", "user", 4.3, 4.1, 4.5),)
SMALL = (a_swap("enterprise", "user", 0.1, -0.1, 0.3),)
WRONG = (a_swap("enterprise", "user", -3.0, -4.0, -2.0),)
WIDE = (a_swap("enterprise", "user", 1.0, -2.0, 4.0),)


UNITS = ("enterprise", "op_server", "user")


def a_network(number, units=UNITS, **values):
    """One with these values of its types, 0.1 unless said."""
    made = NetworkFacts.of(UnitScheme.by_type(CAGE2))
    units = {name: replace(made.units.get(name, made.units["user"]), value=values.get(name, 0.1)) for name in units}
    return replace(made, name=f"lab{number}", digest=str(number), units=units)


def survey_of(*cases, **facts):
    """What networks say together, of which each has swaps and values."""
    answers = [an_answer(**{"swaps": swaps, "units": UNITS, "idle": ()} | facts) for swaps, _ in cases]
    return Agreement.of(answers, [a_network(number, **values) for number, (_, values) in enumerate(cases)])


def test_what_can_be_compared_of_cage2():
    """User0 is red's own; the server is worth 1, and its service 10; users find an enterprise host, which finds another."""
    units = NetworkFacts.of(UnitScheme.by_type(CAGE2)).units
    assert {name: (t.hosts, t.value, t.distance) for name, t in units.items()} == {
        "user": (4, 0.1, 3),
        "op_host": (3, 0.1, 1),
        "op_server": (1, 11.0, 0),
        "enterprise": (3, 1.0, 1),
        "defender": (1, 0.1, None),
    }
    assert units["enterprise"].links == 4 and units["op_server"].links == 1
    assert NetworkFacts.of(UnitScheme.by_type(CAGE2)).gated


USER_FIRST = tuple(replace(order, mean=-14 - n) for n, order in enumerate(reversed(an_answer().orders)))  # is best
LEARNED = Adaptive(3, 0, (a_swap("enterprise", "user", 500.0, 400.0, 600.0),), an_answer().orders)
OTHER_TYPES = [an_answer(swaps=swaps, units=units, idle=()) for swaps, units in ((GOOD, UNITS), (SMALL, ("till", "user")))]
SURVEYS = {
    "holds in three, is wrong in one and open in one": survey_of(
        (GOOD, {}), (GOOD, {}), (SMALL, {}), (WRONG, {}), (WIDE, {})
    ),
    "holds in all": survey_of((GOOD, {}), (SMALL, {})),
    "enterprise first costs 3: -14 under user first, -17 under the first with enterprise first": survey_of(
        (GOOD, {}), (WRONG, {}), (WRONG, {}), orders=USER_FIRST
    ),
    "the most valuable type is another one in the second and third, and none in the fourth": survey_of(
        *(
            (GOOD, {"enterprise": 1.0}),
            (WRONG, {"user": 1.0}),
            (GOOD, {"user": 1.0}),
            (GOOD, {}),
            (WIDE, {"enterprise": 1.0}),
        )
    ),
    "types that are not everywhere": Agreement.of(OTHER_TYPES, [a_network(0), a_network(1, ("till", "user"))]),
    "red never holds op_server; what attackers that learn hold is not known": survey_of(
        (SMALL, {}), (SMALL, {}), idle=("op_server",), adaptive=LEARNED
    ),
}


def test_surveys_read_as_a_person_would_say_them():
    """A swap that was not compared is open; that no order matters is counted like a rule."""
    texts = []
    for name, together in SURVEYS.items():
        table = (" | ".join(line) for line in together.survey.table().cells())
        texts += [f"=== {name}", together.rule, *together.survey.sentences, "--- beside figures"]
        texts += [*together.survey.beside_figures, *table]
    approve("surveys.txt", "\n".join(texts) + "\n")
    counted = [tally for tally in next(iter(SURVEYS.values())).survey.tallies if tally.rule == "enterprise before user"]
    assert counted[0].share == pytest.approx(tuple(stats.binomtest(3, 4).proportion_ci(method="exact")))
    drawn = figures.rules(next(iter(SURVEYS.values())).survey.table())
    assert "enterprise before user: 3 of 4 (19 to 99 %)" in drawn.svg
    _, *others = SURVEYS.values()
    judged = [world.judge(("op_server", "user")).value for world in others[-1].worlds]
    assert judged == ["within", "within", "open", "open"]


def test_a_split_is_as_wide_as_the_number_of_looks_asks_for():
    dear, cheap = [4.0, 5.0, 6.0, 5.5], [0.5, 1.0, 0.2, 1.1]
    cases = [((a_swap("enterprise", "user", p, p - 0.1, p + 0.1),), {"enterprise": 1.0}) for p in dear]
    cases += [((a_swap("enterprise", "user", p, p - 0.1, p + 0.1),), {"user": 1.0}) for p in cheap]
    (split,) = survey_of(*cases).survey.splits  # all else is alike in all of them
    ends = stats.ttest_ind(dear, cheap, equal_var=False).confidence_interval(0.95)
    assert (split.low, split.high) == pytest.approx((ends.low, ends.high))
    assert split.is_shown and (split.more, split.fewer, split.trait) == (4, 4, "the value of enterprise less that of user")
    assert survey_of(*cases[1:]).survey.splits == ()  # three on one side are too few


def test_a_generated_network_has_values_that_do_not_follow_from_its_place():
    """Users are worth more than enterprise hosts in some, less in others; usual ones always less, or the same."""
    drawn = [Scenario.generate(seed, hosts=(8, 12), subnets=(2, 3), values="any") for seed in range(20)]
    usual = [Scenario.generate(seed, hosts=(8, 12), subnets=(2, 3)) for seed in range(20)]

    def gaps(scenarios):
        units = [NetworkFacts.of(UnitScheme.by_type(scenario)).units for scenario in scenarios]
        return {round(of["enterprise"].value - of["user"].value, 1) for of in units}

    assert gaps(drawn) == {-0.9, 0.0, 0.9} and gaps(usual) <= {0.0, 0.9}
    assert [len(scenario.hosts) for scenario in drawn] == [len(scenario.hosts) for scenario in usual]
    assert all(scenario.exact("b_line") for scenario in drawn) and drawn != usual
