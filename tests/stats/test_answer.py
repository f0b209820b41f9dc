"""What an answer and several together say: tests/approved/answers.txt, and what that rests on."""

from dataclasses import replace

from answers import a_swap, an_answer
from approved import approve

from fixfirst.stats.agreement import Agreement
from fixfirst.stats.intervals import MeanInterval

ANSWER = an_answer()
RULE, OTHER = ANSWER.swaps
PARTS = {
    "enterprise": MeanInterval(3.12, 3.0, 3.2),
    "Restore": MeanInterval(2.49, 2.4, 2.6),
    "user": MeanInterval(-1.64, -1.7, -1.6),
    "op_server": MeanInterval(0.01, -0.03, 0.05),
}
DOUBTFUL = PARTS | {"Restore": MeanInterval(2.49, -1.0, 2.6)}
NOTHING = an_answer(swaps=(a_swap("enterprise", "user", 0.1, -0.2, 0.27),))  # though some orders are shown to be worse
OPEN = replace(NOTHING, orders=tuple(replace(order, tier=2) for order in NOTHING.orders))
MEANDER = an_answer(red_agent="meander", swaps=(a_swap("user", "enterprise", 0.16, 0.07, 0.24),))
WAITING = an_answer(swaps=(a_swap("enterprise", "user", 4.3),))
ANSWERS = {
    "a rule": ANSWER,
    "with parts": an_answer(swaps=(replace(RULE, parts=PARTS), OTHER)),
    "with a doubtful part": an_answer(swaps=(replace(RULE, parts=DOUBTFUL), OTHER)),
    "may be worth more than the margin": an_answer(swaps=(RULE, replace(OTHER, low=-0.3, high=0.51))),
    "two orders never tried": an_answer(orders=ANSWER.orders[:4]),
    "nothing is shown to matter": NOTHING,
    "nothing by more than the margin": replace(NOTHING, swaps=(a_swap("user", "enterprise", 0.7, 0.1, 1.3),)),
    "all alike": replace(NOTHING, orders=NOTHING.orders[:3], possible=3),
    "all open": OPEN,
    "too short": an_answer(long_enough=False, swaps=(a_swap("op_server", "user", 65.6), a_swap("user", "enterprise", 3.25))),
    "one training": replace(WAITING, replicates=1),
    "still falling": an_answer(swaps=(RULE, a_swap("op_server", "user", 0.9))),
    "some dropped": an_answer(dropped=(1.24, 0.91)),
}
SEEDS = (  # the second shows that user before enterprise is worth something, perhaps no more than the margin
    replace(OPEN, red_agent="meander", swaps=(a_swap("user", "enterprise", 0.40, -0.07, 0.861),)),
    replace(OPEN, red_agent="meander", swaps=(a_swap("user", "enterprise", 0.41, 0.07, 0.75),)),
)
OPPOSITE = an_answer(swaps=(a_swap("user", "enterprise", 2.0, 1.5, 2.5),))
TOGETHER = {
    "good against both": (ANSWER, MEANDER),
    "costly against one": (ANSWER, replace(MEANDER, swaps=(a_swap("user", "enterprise", 2.07, 0.98, 3.17),))),
    "open against one": (ANSWER, replace(MEANDER, swaps=(a_swap("user", "enterprise", 0.4, -0.3, 1.1),))),
    "no answer against one": (ANSWER, replace(MEANDER, swaps=(a_swap("user", "enterprise", 2.07),))),
    "never held by one": (ANSWER, replace(MEANDER, idle=("user",), swaps=())),
    "all open": (OPEN, replace(OPEN, red_agent="meander")),
    "nothing by more than the margin": (NOTHING, MEANDER),
    "one is not long enough": (replace(NOTHING, long_enough=False), MEANDER),
    "bounds are rounded up": SEEDS,
    "a rule, and seeds that bound it": (ANSWER, *SEEDS),
    "seeds that agree": (an_answer(swaps=[a_swap(a, "user", 4.3, 4.1, 4.5) for a in ("enterprise", "op_server")]),) * 3,
    "no answer in any seed": (WAITING, WAITING),
    "one of two seeds": (NOTHING, ANSWER),
    "one of three shows the opposite": (ANSWER, ANSWER, OPPOSITE),
}


def test_answers_read_as_a_person_would_say_them():
    texts = []
    for name, answer in ANSWERS.items():
        settled = ", ".join(line[3] for line in answer.swaps_table().cells()[1:])
        texts.append([f"=== {name}", answer.rule, *answer.sentences, f"prices: {settled}", f"trainings: {answer.trainings}"])
    for name, answers in TOGETHER.items():
        together = Agreement.of(answers)
        texts.append([f"=== together: {name}", together.rule, *together.sentences])
    approve("answers.txt", "".join(f"{line}\n" for text in texts for line in text))


def test_orders_with_a_settled_swap_the_wrong_way_round_are_excluded_and_two_orders_tell_the_swap_that_matters():
    """Two of the six orders have user right before enterprise; op_server before user still falls."""
    falling = ANSWERS["still falling"]
    assert falling.excluded == {"user > enterprise > op_server", "op_server > user > enterprise"}
    assert [line[3] for line in falling.table().cells()[1:]].count("excluded") == 2
    assert not ANSWER.excluded and not ANSWERS["one training"].excluded
    # Types whose names begin alike: of four orders only the last has b right before a; "b > a1" is none of it.
    orders = [replace(ANSWER.orders[0], workflow=text) for text in ("a > b > a1", "a1 > a > b", "b > a1 > a", "b > a > a1")]
    facts = {"units": ("a", "a1", "b"), "idle": (), "orders": tuple(orders), "possible": 6, "all_orders": 6}
    settled = a_swap("a", "b", 4.3, 4.1, 4.5)
    assert an_answer(swaps=(settled, a_swap("a1", "b", 0.9)), **facts).excluded == {"b > a > a1"}
    assert an_answer(swaps=(settled,), **facts).telling_orders == ("a > b > a1", "b > a > a1")
    # Those that tell most differ in the swap that matters most.
    assert ANSWER.telling_orders == ("enterprise > user > op_server", "user > enterprise > op_server")
    assert replace(ANSWER, swaps=(OTHER,)).telling_orders is None and replace(ANSWER, replicates=1).telling_orders is None


def test_a_price_of_few_long_trainings_asks_for_more_of_them_not_for_longer_ones():
    tables = [replace(WAITING, replicates=1), replace(WAITING, replicates=1, long_enough=False), WAITING]
    asked = [answer.swaps_table().cells()[1][3] for answer in tables]
    assert asked == ["so far: more trainings", "so far: train longer", "so far: train longer"]
