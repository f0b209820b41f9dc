"""The replay page in a real browser: it shows what the document says, every control works, and it keeps to itself.

The document: react-restore judged by an order against B_line, whose worst episode has violations; and a sleeping defender,
who suffers impacts.
"""

import re

import pytest
from cage2 import HOST_NAMES

from fixfirst.api.policies import make_defender
from fixfirst.api.watch import replay
from fixfirst.game.game import Game
from fixfirst.learner.checkpoint import save_policy
from fixfirst.learner.settings import make_config
from fixfirst.learner.training import Training
from fixfirst.play.evaluation import PROTOCOL_PURPOSE, play
from fixfirst.reporter.replay import replay_page, write_replay

ORDER = "enterprise > defender > op_server > op_host > user"
GAME = {"red_agent": "b_line", "steps": 60, "seed": 0}


@pytest.fixture(scope="module")
def document():
    return replay("react-restore", workflow=ORDER, episodes=100, **GAME)


@pytest.fixture(scope="module")
def file(document, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "replay.html"
    write_replay(path, document)
    return path


@pytest.fixture(scope="module")
def sleeping(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "sleep.html"
    write_replay(path, replay("sleep", episodes=3, **GAME))
    return path


@pytest.fixture
def at_start(visit):
    """As `visit`, at step 0 of the worst episode: by itself a page begins where red first takes a machine."""

    def open_page(path, **options):
        visited = visit(path, **options)
        visited.page.keyboard.press("Home")
        return visited

    return open_page


def step_shown(visited):
    return int(visited.page.inner_text(".step").split()[0])


def wait_for_step(visited, pattern):
    """Until the step shown matches. The page's policy allows no evaluated code, so no `wait_for_function`."""
    visited.page.locator(".step", has_text=re.compile(pattern)).wait_for()


def shown(tenths):
    """As the page writes numbers: with a real minus."""
    return f"{tenths / 10:.1f}".replace("-", "\u2212")


def address(visited):
    return visited.page.evaluate("location.hash")


def steps_where(episode, test):
    return [step["step"] for step in episode["steps"] if test(step)]


def violations(episode):
    return steps_where(episode, lambda step: step["verdict"] is not None and step["verdict"]["kind"] == "violation")


# ---------------------------------------------------------------- what it shows


def test_every_step_shows_what_the_document_says(at_start, file, document):
    visited, worst = at_start(file), document["episodes"][0]
    for step in worst["steps"]:
        page = visited.page
        assert step_shown(visited) == step["step"]
        assert page.inner_text(".reward") == shown(step["reward10"]) and page.inner_text(".return") == shown(
            step["return10"]
        )
        assert step["red"] in page.inner_text(".red") and step["blue"] in page.inner_text(".blue")
        if step["verdict"]:
            assert page.inner_text(".verdict") == step["verdict"]["kind"] + step["verdict"]["reason"]
        rows = page.evaluate("[...document.querySelectorAll('.rows tr')].map(r => [...r.cells].map(c => c.textContent))")
        for name, access, belief, row in zip(HOST_NAMES, step["access"], step["belief"], rows, strict=True):
            assert (row[0], row[2], row[3]) == (name, access, belief)
        labels = page.evaluate("[...document.querySelectorAll('.map .host')].map(h => h.getAttribute('aria-label'))")
        assert labels == [
            f"{name}: truth {access}, blue believes {belief}"
            for name, access, belief in zip(HOST_NAMES, step["access"], step["belief"], strict=True)
        ]
        page.keyboard.press("ArrowRight")
    assert visited.complaints == [] and visited.requests == []


def test_the_return_at_the_end_is_that_of_the_evaluation(visit, file, document):
    player, orders, _ = make_defender("react-restore", ORDER, False)
    game = Game(red_agent=GAME["red_agent"], max_steps=GAME["steps"])
    measured = play(player, game, episodes=100, seed=GAME["seed"], purpose=PROTOCOL_PURPOSE, workflows=orders)
    visited = visit(file)
    for key, episode in zip("123", document["episodes"], strict=True):
        visited.page.keyboard.press(key)
        visited.page.keyboard.press("End")
        assert visited.page.inner_text(".return") == shown(round(10 * measured.returns[episode["number"]]))


def test_letters_on_the_map_stand_for_belief_and_truth(visit, file, document):
    visited, worst = visit(file), document["episodes"][0]
    letters = {"none": "", "clean": "", "unknown": "?", "user": "U", "root": "R"}
    visited.page.keyboard.press("End")
    halves = visited.page.evaluate(
        "[...document.querySelectorAll('.map .host')].map(h => [...h.querySelectorAll('.half')].map(s => s.textContent))"
    )
    last = worst["steps"][-1]
    assert halves == [[letters[b], letters[a]] for b, a in zip(last["belief"], last["access"], strict=True)]
    assert any(truth == "R" for _, truth in halves)


def test_the_order_shows_what_needed_repair_and_what_was_fixed(visit, file, document):
    visited, worst = visit(file), document["episodes"][0]
    first = violations(worst)[0]
    visited.page.evaluate(f"location.hash = 'e=worst&t={first}'")
    wait_for_step(visited, f"^{first} of")
    step = worst["steps"][first]
    units = {host["name"]: host["unit"] for host in document["hosts"]}
    needy = visited.page.evaluate(
        "[...document.querySelectorAll('.order li.needy b')].map(b => b.textContent.split(' ')[1])"
    )
    fixed = visited.page.evaluate(
        "[...document.querySelectorAll('.order li.fixed b')].map(b => b.textContent.split(' ')[1])"
    )
    assert set(needy) == {units[name] for name in step["needed"]} and fixed == [units[step["blue_target"]]]


# ---------------------------------------------------------------- moving


def test_the_slider_changes_the_step(visit, file):
    visited = visit(file)
    visited.page.fill("#slider", "25")
    assert step_shown(visited) == 25 and address(visited) == "#e=worst&t=25"


def test_a_click_into_the_timeline_goes_there(visit, file):
    visited = visit(file)
    box = visited.page.locator(".timeline").bounding_box()
    visited.page.mouse.click(box["x"] + box["width"] * 30.5 / 61, box["y"] + 20)
    assert step_shown(visited) == 30


def test_keys_move_and_stop_at_the_ends(at_start, file):
    visited = at_start(file)
    seen = []
    for key in ("ArrowLeft", "ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home"):
        visited.page.keyboard.press(key)
        seen.append(step_shown(visited))
    assert seen == [0, 1, 2, 1, 60, 60, 0]


def test_arrow_keys_move_one_step_also_with_the_slider_in_focus(at_start, file):
    visited = at_start(file)
    visited.page.focus("#slider")
    visited.page.keyboard.press("ArrowRight")
    assert step_shown(visited) == 1


def test_the_next_violation_is_a_violation_and_after_the_last_comes_the_first(visit, file, document):
    visited, expected = visit(file), violations(document["episodes"][0])
    assert len(expected) > 3
    seen = []
    for _ in range(len(expected) + 1):
        visited.page.keyboard.press("v")
        seen.append(step_shown(visited))
        assert visited.page.inner_text(".verdict").startswith("violation")
    assert seen == [*expected, expected[0]]
    visited.page.keyboard.press("Shift+V")
    assert step_shown(visited) == expected[-1]
    visited.page.click("#violation")
    assert step_shown(visited) == expected[0]


@pytest.mark.parametrize(("key", "button", "mark"), [("r", "#repair", "repair"), ("c", "#contested", "contested")])
def test_the_next_repair_and_the_next_contested_one_are_found_by_key_and_button(at_start, file, document, key, button, mark):
    visited, expected = at_start(file), steps_where(document["episodes"][0], lambda step: step[mark])
    assert len(expected) > 3
    seen = []
    for act in (lambda: visited.page.keyboard.press(key), lambda: visited.page.click(button)):
        act()
        seen.append(step_shown(visited))
    assert seen == expected[:2]
    visited.page.keyboard.press(f"Shift+{key.upper()}")
    assert step_shown(visited) == expected[0]


def first_compromise(episode):
    foothold = HOST_NAMES.index("User0")
    return steps_where(episode, lambda step: any(a != "none" for host, a in enumerate(step["access"]) if host != foothold))[
        0
    ]


def test_an_episode_begins_where_red_first_takes_a_machine(visit, file, document):
    visited = visit(file)
    assert step_shown(visited) == first_compromise(document["episodes"][0]) > 0
    visited.page.keyboard.press("2")
    assert step_shown(visited) == first_compromise(document["episodes"][1])
    visited.page.keyboard.press("End")
    visited.page.keyboard.press("f")
    assert step_shown(visited) == first_compromise(document["episodes"][1])


def test_an_episode_without_violations_offers_none(visit, file, document):
    visited, best = visit(file), document["episodes"][2]
    assert violations(best) == []
    visited.page.keyboard.press("3")
    assert visited.page.is_disabled("#violation") and visited.page.is_disabled("#impact")
    before = step_shown(visited)
    visited.page.keyboard.press("v")
    assert step_shown(visited) == before and visited.complaints == []


def test_the_next_impact_is_an_impact(visit, sleeping):
    visited = visit(sleeping)
    visited.page.keyboard.press("i")
    assert "Impact Op_Server0" in visited.page.inner_text(".red") and "impact \u221210.0" in visited.page.inner_text(
        ".costs"
    )
    first = step_shown(visited)
    visited.page.click("#impact")
    assert step_shown(visited) == first + 1
    visited.page.keyboard.press("ArrowLeft"), visited.page.keyboard.press("ArrowLeft")
    assert "Impact" not in visited.page.inner_text(".red")


def stop_the_clock(visited):
    """From now on the page's time moves only when told."""
    visited.page.clock.install(time=0)
    visited.page.clock.pause_at(1_000)


def test_playing_goes_on_by_itself_and_ends_at_the_end(visit, file):
    """At 16 steps a second, ten steps take 625 ms of the page's clock, which moves only when told."""
    visited = visit(file)
    stop_the_clock(visited)
    for _ in range(5):
        visited.page.keyboard.press("]")
    assert visited.page.input_value("#speed") == "16"
    visited.page.fill("#slider", "50")
    visited.page.keyboard.press("Space")
    assert visited.page.inner_text("#play") == "Pause"
    visited.page.clock.run_for(600)
    assert step_shown(visited) == 59 and visited.page.inner_text("#play") == "Pause"
    visited.page.clock.run_for(100)
    assert step_shown(visited) == 60 and visited.page.inner_text("#play") == "Play"


def test_space_pauses(at_start, file):
    """Two steps a second."""
    visited = at_start(file)
    stop_the_clock(visited)
    visited.page.keyboard.press("Space")
    visited.page.clock.run_for(1_100)
    visited.page.keyboard.press("Space")
    visited.page.clock.run_for(5_000)
    assert step_shown(visited) == 2 and visited.page.inner_text("#play") == "Play"


def test_an_address_leads_to_its_episode_and_step(visit, file):
    visited = visit(file)
    visited.page.goto(file.resolve().as_uri() + "#e=best&t=37")
    visited.page.reload()
    assert step_shown(visited) == 37
    assert visited.page.get_attribute("#episodes button:nth-child(3)", "aria-pressed") == "true"
    visited.page.keyboard.press("ArrowRight")
    assert address(visited) == "#e=best&t=38"


@pytest.mark.parametrize(
    ("fragment", "step"), [("#e=nobody&t=5", 5), ("#t=999", 60), ("#t=-4", 0), ("#t=x&e=%3Cb%3E", 0), ("#%", 3)]
)
def test_an_address_that_names_nothing_shows_the_nearest_thing(visit, file, fragment, step):
    visited = visit(file)
    visited.page.goto(file.resolve().as_uri() + fragment)
    visited.page.reload()
    assert step_shown(visited) == step and visited.complaints == []


# ---------------------------------------------------------------- two players, orders that change, the shield


@pytest.fixture(scope="module")
def shielded(tmp_path_factory):
    """An untrained policy for all orders, kept to them by a shield."""
    folder = tmp_path_factory.mktemp("policy")
    save_policy(folder, Training(make_config(workflow="all", red_agent="b_line", total_episodes=100)), accepted=False)
    return folder


def test_two_players_stand_side_by_side_in_the_same_episode_at_the_same_step(visit, tmp_path):
    told = replay("react-restore", beside="sleep", workflow=ORDER, episodes=20, **GAME)
    told["policy"] = "runs/mine-0"  # a name with a number that is not negative
    write_replay(tmp_path / "pair.html", told)
    for width, beside in ((1600, True), (380, False)):
        visited = visit(tmp_path / "pair.html", width=width)
        visited.page.keyboard.press("End")
        last = [player["episodes"][0]["steps"][-1] for player in (told, told["beside"])]
        assert visited.page.locator(".return").all_inner_texts() == [shown(step["return10"]) for step in last]
        assert visited.page.locator(".step").all_inner_texts() == ["60 of 60", "60 of 60"]
        maps = [visited.page.locator(".map").nth(i).bounding_box() for i in (0, 1)]
        assert (maps[0]["y"] == maps[1]["y"]) is beside and (maps[0]["x"] < maps[1]["x"]) is beside
        why = visited.page.inner_text("#why")
        assert "runs/mine-0: The worst of 20 episodes" in why and "sleep: Here" in why and " of \u2212" in why
        assert visited.sideways_overflow() == 0 and visited.low_contrasts() == [] and visited.complaints == []
    numbers = [[episode["number"] for episode in player["episodes"]] for player in (told, told["beside"])]
    assert numbers[0] == numbers[1]


def test_the_page_shows_which_order_is_in_force_and_where_it_changed(visit, shielded, tmp_path):
    told = replay(str(shielded), workflow=ORDER, then=["20: user_priority"], episodes=5, **GAME)
    write_replay(tmp_path / "changing.html", told)
    visited = visit(tmp_path / "changing.html")
    orders = []
    for step in ("19", "20"):
        visited.page.fill("#slider", step)
        orders.append([text.split(" ")[1] for text in visited.page.locator(".order b").all_inner_texts()])
    assert orders == [ORDER.split(" > "), ["user", "defender", "enterprise", "op_server", "op_host"]]
    assert visited.page.inner_text(".since") == "changed at step 20"
    assert visited.page.locator(".timeline .change").count() == 1
    assert "from step 20 on user > defender" in visited.page.inner_text("#about")


def test_what_the_shield_forbade_stands_at_every_step(visit, shielded, tmp_path):
    told = replay(str(shielded), workflow=ORDER, episodes=5, **GAME)
    write_replay(tmp_path / "shield.html", told)
    visited, worst = visit(tmp_path / "shield.html"), told["episodes"][0]
    step = next(step for step in worst["steps"] if step["forbidden"])
    visited.page.fill("#slider", str(step["step"]))
    crossed = visited.page.locator(".order li.forbidden b").all_inner_texts()
    assert {text.split(" ")[1] for text in crossed} == set(step["forbidden"])
    said = f"suspected {', '.join(step['suspected'])}; forbade repairs of {', '.join(step['forbidden'])}"
    assert visited.page.inner_text(".shield") == said


# ---------------------------------------------------------------- readable, and alone


@pytest.mark.parametrize("width", [380, 700, 1059, 1061, 1600])
def test_nothing_is_cut_off_sideways(visit, file, width):
    visited = visit(file, width=width)
    for key in ("v", "End"):
        visited.page.keyboard.press(key)
        assert visited.sideways_overflow() == 0
    names = visited.page.evaluate(
        "[...document.querySelectorAll('.map .label')].map(l => [l.getBoundingClientRect(), getComputedStyle(l).fontSize])"
        ".map(([r, size]) => [r.left, r.right, r.top, r.bottom, parseFloat(size)])"
    )
    assert all(size >= 11 and left >= 0 and right <= width for left, right, _, _, size in names)
    for i, (left, right, top, bottom, _) in enumerate(names):
        for other in names[:i]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top, "names overlap"


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_has_contrast(visit, file, sleeping, dark):
    for path, key in ((file, "v"), (file, "End"), (sleeping, "End")):
        visited = visit(path, dark=dark)
        visited.page.keyboard.press(key)
        assert visited.low_contrasts() == []


def test_dark_is_dark_and_light_is_light(visit, file):
    colours = [visit(file, dark=dark).page.evaluate("getComputedStyle(document.body).backgroundColor") for dark in (0, 1)]
    assert colours == ["rgb(255, 255, 255)", "rgb(20, 25, 31)"]


def test_every_control_is_reached_by_tab(visit, file):
    visited = visit(file)
    visited.page.keyboard.press("ArrowRight")
    reached = [name or text for _, name, text in visited.tab_stops()]
    controls = ["first", "back", "play", "forward", "last", "speed"]
    controls += ["compromise", "repair", "contested", "violation", "slider"]
    assert [name for name in reached if name in controls] == controls
    assert sum(name.startswith(("worst", "median", "best")) for name in reached) == 3


def test_without_an_order_the_page_says_so(visit, sleeping):
    visited = visit(sleeping)
    visited.page.keyboard.press("ArrowRight")
    assert visited.page.inner_text(".verdict") == "no order to judge by"
    assert "no order to keep to" in visited.page.inner_text("#about") and visited.page.inner_text(".order") == ""
    assert visited.page.locator(".remembers").count() == 0 and visited.complaints == []


def test_what_is_remembered_stands_beside_each_host(visit, tmp_path):
    told = replay("champion", episodes=3, steps=20)
    write_replay(tmp_path / "champion.html", told)
    visited, last = visit(tmp_path / "champion.html"), told["episodes"][0]["steps"][-1]
    visited.page.keyboard.press("End")
    shown = visited.page.evaluate("[...document.querySelectorAll('.rows tr')].map(row => row.cells[7].textContent)")
    assert shown == [last["remembered"].get(host, "") for host in HOST_NAMES] and any(shown)
    assert visited.page.inner_text(".memory") == last["remembered"].get("network", "\u2013")
    assert "memory full" in visited.page.inner_text("#about") and visited.complaints == []
    assert visited.sideways_overflow() == 0 and visited.low_contrasts() == []


def test_a_wide_window_shows_the_whole_table_of_hosts_with_all_that_is_remembered(visit, tmp_path):
    told = replay("champion", number=5, red_agent="meander", steps=30)
    write_replay(tmp_path / "champion.html", told)
    visited = visit(tmp_path / "champion.html", width=1600)
    visited.page.keyboard.press("Home")
    for _ in range(30):
        assert visited.page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.scroll'))") == 0
        visited.page.keyboard.press("ArrowRight")


def test_markup_in_names_is_shown_as_text_and_does_nothing(visit, document, tmp_path):
    evil = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    step = document["episodes"][0]["steps"][1] | {"red": evil, "verdict": {"kind": "violation", "reason": evil}}
    episode = document["episodes"][0] | {"label": evil, "red_agent": evil, "steps": [step, step]}
    hosts = [host | {"unit": evil} for host in document["hosts"]]
    path = tmp_path / "evil.html"
    path.write_text(
        replay_page(document | {"policy": evil, "workflow": [evil], "hosts": hosts, "episodes": [episode]}), encoding="utf-8"
    )
    visited = visit(path)
    assert visited.page.title() == f"fixfirst replay: {evil}"
    assert visited.page.inner_text(".red").endswith(evil) and visited.page.inner_text(".verdict").endswith(evil)
    assert visited.page.locator("img").count() == 0 and visited.complaints == [] and visited.requests == []


def test_without_javascript_the_page_says_what_to_do(visit, file):
    visited = visit(file, javascript=False)
    assert "fixfirst watch --text" in visited.page.inner_text("noscript")
