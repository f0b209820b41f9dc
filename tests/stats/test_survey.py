"""What searches in several networks say together: how often a rule holds, what it costs where it is wrong, what decides."""

from dataclasses import replace

import pytest
from answers import a_swap, an_answer
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


def a_network(number, **values):
    """One with these values of its types, 0.1 unless said."""
    made = NetworkFacts.of(UnitScheme.by_type(CAGE2))
    units = {name: replace(made.units[name], value=values.get(name, 0.1)) for name in ("enterprise", "op_server", "user")}
    return replace(made, name=f"lab{number}", digest=str(number), units=units)


def survey_of(*cases):
    """What networks say together, of which each has swaps and values."""
    answers = [an_answer(swaps=swaps, units=("enterprise", "op_server", "user"), idle=()) for swaps, _ in cases]
    return Agreement.of(answers, [a_network(number, **values) for number, (_, values) in enumerate(cases)])


def tally(together, rule):
    (found,) = [tally for tally in together.survey.tallies if tally.rule == rule]
    return found


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


def test_a_rule_is_counted_where_it_holds_where_it_is_wrong_and_where_that_is_open():
    """User first is what the wrong one costs: -14 under enterprise first, where user first is said to be better."""
    orders = tuple(replace(order, mean=-14 - place) for place, order in enumerate(reversed(an_answer().orders)))
    together = survey_of((GOOD, {}), (GOOD, {}), (SMALL, {}), (WRONG, {}), (WIDE, {}))
    found = tally(together, "enterprise before user")
    assert (found.worth, found.harmless, found.wrong, found.open, found.holds, found.decided) == (2, 1, 1, 1, 3, 4)
    assert found.share == pytest.approx(tuple(stats.binomtest(3, 4).proportion_ci(method="exact")))
    assert found.counted == "3 of 4 (19 to 99 %)" and found.wrong_in == ("lab3",) and found.worth_in == ("lab0", "lab1")
    assert str(found) == (
        "holds in 3 of 4 decided networks against b_line (95 %: 19 to 99 %; worth something in 2 (lab0, lab1); wrong in 1 "
        "(lab3), at 0.0 points an episode; open in 1)"
    )
    answer = an_answer(swaps=WRONG, orders=orders, idle=("op_host", "defender"))
    world = Agreement.of([answer, an_answer()], [a_network(0), a_network(1)]).worlds[0]
    assert world.cost([("enterprise", "user")]) == 3.0  # best -14, the first with enterprise first -17
    assert together.rule == "No rule is shown to be good in all of them"
    assert survey_of((GOOD, {}), (SMALL, {})).rule == "Fix enterprise before user"


def test_that_no_order_matters_is_counted_like_a_rule_and_drawn_beside_the_others():
    """In three of four decided networks some order matters; the rows are those of the table, rule by rule."""
    together = survey_of((GOOD, {}), (GOOD, {}), (SMALL, {}), (WRONG, {}), (WIDE, {}))
    *_, none = together.survey.tallies  # a swap that was not compared is open
    assert (none.rule, none.holds, none.decided, none.open) == ("no order matters", 0, 3, 2)
    assert str(none) == "in 0 of 3 decided networks against b_line (95 %: 0 to 71 %; open in 2)"
    drawn = figures.rules(together.survey.table())
    head, *lines = drawn.table.cells()
    assert [line[0] for line in lines] == [[*together.survey.rules][1], "enterprise before user", "no order matters"]
    assert head[3:7] == ["worth", "harmless", "wrong", "open"]
    assert lines[1][2:7] == ["3 of 4 (19 to 99 %)", "2", "1", "1", "1"]
    assert "enterprise before user: 3 of 4 (19 to 99 %)" in drawn.svg


def test_where_rules_are_drawn_the_page_says_what_wrong_ones_cost_and_what_decides():
    orders = tuple(replace(order, mean=-14 - place) for place, order in enumerate(reversed(an_answer().orders)))
    units = ("enterprise", "op_server", "user")
    answers = [an_answer(swaps=swaps, orders=orders, units=units, idle=()) for swaps in (GOOD, WRONG, WRONG)]
    survey = Agreement.of(answers, [a_network(number) for number in range(3)]).survey
    alone = Agreement.of(answers[:1] * 2, [a_network(number) for number in range(2)]).survey
    never = "enterprise before user (2 of 2 (16 to 100 %) against b_line); in brackets, in how many it holds."
    first = alone.beside_figures[0]
    assert first.startswith("Shown to be wrong in no network: ") and first.endswith(never)
    assert survey.beside_figures == (
        "The type nearest to the target first is wrong in 2 networks against b_line (lab1, lab2), at 3.0 points an episode.",
        "Enterprise before user is wrong in 2 networks against b_line (lab1, lab2), at 3.0 points an episode.",
        "What decides is not known: that needs a price in 8 networks against one attacker.",
    )


def test_a_general_rule_names_other_types_in_other_networks():
    """Where users are worth more, the most valuable first means user before enterprise; where both are alike, nothing."""
    together = survey_of(
        (GOOD, {"enterprise": 1.0}), (WRONG, {"user": 1.0}), (GOOD, {"user": 1.0}), (GOOD, {}), (WIDE, {"enterprise": 1.0})
    )
    found = tally(together, "the most valuable type first")
    compared = replace(found, costs=())
    assert (compared.wrong, compared.worth + compared.harmless + compared.open) == (1, 3)
    nearest = tally(together, "the type nearest to the target first")
    assert nearest.wrong == 1 and nearest.decided + nearest.open == 5


def test_types_that_are_not_everywhere_are_named_and_compared_where_they_are():
    there = an_answer(swaps=GOOD, units=("enterprise", "user"), idle=())
    elsewhere = an_answer(swaps=SMALL, units=("till", "user"), idle=())
    networks = [
        a_network(0),
        replace(a_network(1), units={"till": a_network(1).units["user"], "user": a_network(1).units["user"]}),
    ]
    together = Agreement.of([there, elsewhere], networks)
    assert together.rule == "Fix enterprise before user (in the 1 of 2 worlds that have both)"
    said = "Unit types differ: of 2 networks, enterprise is in 1, op_server is in 1 and till is in 1."
    assert any(said in text for text in together.sentences)


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


def test_what_searches_say_against_attackers_that_learn_is_a_third_attacker():
    """Against the script red never holds op_server; what attackers that learn hold is not known, so that it is open."""
    learned = Adaptive(3, 0, (a_swap("enterprise", "user", 500.0, 400.0, 600.0),), an_answer().orders)
    units = ("enterprise", "op_server", "user")
    asked = an_answer(swaps=SMALL, units=units, idle=("op_server",), adaptive=learned)
    together = Agreement.of([asked, asked], [a_network(0), a_network(1)])
    assert list(together.survey.attackers) == ["b_line", "attackers that learn (defenders of b_line)"]
    script, also = (t for t in together.survey.tallies if t.rule == "enterprise before user")
    assert (script.worth, script.harmless) == (0, 2) and (also.worth, also.harmless) == (2, 0)
    judged = {world.attacker: world.judge(("op_server", "user")).value for world in together.worlds}
    assert list(judged.values()) == ["within", "open"]
