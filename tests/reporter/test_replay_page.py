"""The replay page in a real browser: it shows what the document says, every control works, and it keeps to itself.

The document: react-restore judged by an order against B_line, whose worst episode has violations; and a sleeping defender,
who suffers impacts.
"""

import re

import pytest
from cage2 import HOST_NAMES

from fixfirst.adapters.defenders import make_defender
from fixfirst.api.evaluate import PURPOSE
from fixfirst.api.watch import replay
from fixfirst.game.game_config import Game
from fixfirst.learner.training import Training
from fixfirst.play.evaluation import play
from fixfirst.reporter.replay import replay_page, write_replay
from fixfirst.settings.training import make_config

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


def test_returns_are_those_of_the_evaluation_and_letters_on_the_map_stand_for_belief_and_truth(visit, file, document):
    defender = make_defender("react-restore", ORDER)
    game = Game(red_agent=GAME["red_agent"], max_steps=GAME["steps"])
    told = {"seed": GAME["seed"], "purpose": PURPOSE, "workflows": defender.orders}
    measured = play(defender.player, game, episodes=100, **told)
    page, letters = visit(file).page, {"none": "", "clean": "", "unknown": "?", "user": "U", "root": "R"}
    for key, episode in zip("123", document["episodes"], strict=True):
        page.keyboard.press(key)
        page.keyboard.press("End")
        assert page.inner_text(".return") == shown(round(10 * measured.returns[episode["number"]]))
        halves = page.evaluate(
            "[...document.querySelectorAll('.map .host')].map(h => [...h.querySelectorAll('.half')].map(s => s.textContent))"
        )
        last = episode["steps"][-1]
        assert halves == [[letters[b], letters[a]] for b, a in zip(last["belief"], last["access"], strict=True)]
        assert key != "1" or any(truth == "R" for _, truth in halves)


def test_the_order_shows_what_needed_repair_and_what_was_fixed(visit, file, document):
    visited, worst = visit(file), document["episodes"][0]
    first = violations(worst)[0]
    visited.page.evaluate(f"location.hash = 'e=worst&t={first}'")
    wait_for_step(visited, f"^{first} of")
    step, units = worst["steps"][first], {host["name"]: host["unit"] for host in document["hosts"]}
    needy, fixed = (
        [text.split(" ")[1] for text in visited.page.locator(f".order li.{kind} b").all_inner_texts()]
        for kind in ("needy", "fixed")
    )
    assert set(needy) == {units[name] for name in step["needed"]} and fixed == [units[step["blue_target"]]]


def test_without_an_order_the_page_says_so_and_without_javascript_what_to_do(visit, file, sleeping):
    visited = visit(sleeping)
    visited.page.keyboard.press("ArrowRight")
    assert visited.page.inner_text(".verdict") == "no order to judge by"
    assert "no order to keep to" in visited.page.inner_text("#about") and visited.page.inner_text(".order") == ""
    assert visited.page.locator(".remembers").count() == 0 and visited.complaints == []
    assert "fixfirst watch --text" in visit(file, javascript=False).page.inner_text("noscript")


# ---------------------------------------------------------------- moving


def test_slider_timeline_and_keys_change_the_step_and_stop_at_the_ends(at_start, file):
    visited = at_start(file)
    visited.page.fill("#slider", "25")
    assert step_shown(visited) == 25 and address(visited) == "#e=worst&t=25"
    box = visited.page.locator(".timeline").bounding_box()
    visited.page.mouse.click(box["x"] + box["width"] * 30.5 / 61, box["y"] + 20)
    assert step_shown(visited) == 30
    seen = []
    for key in ("Home", "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home"):
        visited.page.keyboard.press(key)
        seen.append(step_shown(visited))
    assert seen == [0, 0, 1, 2, 1, 60, 60, 0]
    visited.page.focus("#slider")
    visited.page.keyboard.press("ArrowRight")
    assert step_shown(visited) == 1


@pytest.mark.parametrize("name", ["violation", "repair", "contested"])
def test_the_next_violation_repair_and_contested_one_are_found_by_key_and_button(at_start, file, document, name):
    """After the last one comes the first; with Shift one goes back."""
    visited, worst = at_start(file), document["episodes"][0]
    expected = violations(worst) if name == "violation" else steps_where(worst, lambda step: step[name])
    assert len(expected) > 3
    visited.page.keyboard.press(name[0])
    seen = [step_shown(visited)]
    visited.page.click(f"#{name}")
    seen.append(step_shown(visited))
    visited.page.keyboard.press(f"Shift+{name[0].upper()}")
    visited.page.keyboard.press(f"Shift+{name[0].upper()}")
    assert seen == expected[:2] and step_shown(visited) == expected[-1]
    visited.page.keyboard.press(name[0])
    assert step_shown(visited) == expected[0]
    assert name != "violation" or visited.page.inner_text(".verdict").startswith("violation")


def test_an_episode_begins_where_red_first_takes_a_machine_and_offers_only_what_it_has(visit, file, document):
    visited, foothold = visit(file), HOST_NAMES.index("User0")
    for key, episode in zip("12", document["episodes"], strict=False):
        visited.page.keyboard.press(key)
        taken = steps_where(episode, lambda step: any(a != "none" for h, a in enumerate(step["access"]) if h != foothold))
        assert step_shown(visited) == taken[0] > 0
        visited.page.keyboard.press("End")
        visited.page.keyboard.press("f")
        assert step_shown(visited) == taken[0]
    assert violations(document["episodes"][2]) == []
    visited.page.keyboard.press("3")
    assert visited.page.is_disabled("#violation") and visited.page.is_disabled("#impact")
    before = step_shown(visited)
    visited.page.keyboard.press("v")
    assert step_shown(visited) == before and visited.complaints == []


def test_the_next_impact_is_an_impact(visit, sleeping):
    visited = visit(sleeping)
    visited.page.keyboard.press("i")
    assert "Impact Op_Server0" in visited.page.inner_text(".red")
    assert "impact \u221210.0" in visited.page.inner_text(".costs")
    first = step_shown(visited)
    visited.page.click("#impact")
    assert step_shown(visited) == first + 1
    visited.page.keyboard.press("ArrowLeft"), visited.page.keyboard.press("ArrowLeft")
    assert "Impact" not in visited.page.inner_text(".red")


def test_playing_goes_on_by_itself_pauses_and_ends_at_the_end(at_start, file):
    """The page's clock moves only when told: two steps a second, then 16, at which ten steps take 625 ms."""
    visited = at_start(file)
    page = visited.page
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
    page.keyboard.press("Space")
    page.clock.run_for(1_100)
    page.keyboard.press("Space")
    page.clock.run_for(5_000)
    assert step_shown(visited) == 2 and page.inner_text("#play") == "Play"
    for _ in range(5):
        page.keyboard.press("]")
    assert page.input_value("#speed") == "16"
    page.fill("#slider", "50")
    page.keyboard.press("Space")
    page.clock.run_for(600)
    assert step_shown(visited) == 59 and page.inner_text("#play") == "Pause"
    page.clock.run_for(100)
    assert step_shown(visited) == 60 and page.inner_text("#play") == "Play"


def test_an_address_leads_to_its_episode_and_step_or_the_nearest_thing(visit, file):
    visited = visit(file)
    for fragment, step in (("#e=nobody&t=5", 5), ("#t=999", 60), ("#t=-4", 0), ("#t=x&e=%3Cb%3E", 0), ("#%", 3)):
        visited.page.goto(file.resolve().as_uri() + fragment)
        visited.page.reload()
        assert step_shown(visited) == step and visited.complaints == []
    visited.page.goto(file.resolve().as_uri() + "#e=best&t=37")
    visited.page.reload()
    assert step_shown(visited) == 37
    assert visited.page.get_attribute("#episodes button:nth-child(3)", "aria-pressed") == "true"
    visited.page.keyboard.press("ArrowRight")
    assert address(visited) == "#e=best&t=38"


# ---------------------------------------------------------------- two players, orders that change, the shield


@pytest.fixture(scope="module")
def shielded(tmp_path_factory):
    """An untrained policy for all orders, kept to them by a shield."""
    folder = tmp_path_factory.mktemp("policy")
    Training(make_config(workflow="all", red_agent="b_line", total_episodes=100)).save_policy(folder)
    return folder


def test_two_players_stand_side_by_side_in_the_same_episode_at_the_same_step(visit, tmp_path):
    told = replay("react-restore", beside="sleep", workflow=ORDER, episodes=20, **GAME)
    told["policy"] = "runs/mine-0"  # a name with a number that is not negative
    write_replay(tmp_path / "pair.html", told)
    for width, beside in ((1600, True), (380, False)):
        visited = visit(tmp_path / "pair.html", width=width)
        visited.page.keyboard.press("1")  # the page opens where the two part
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


def test_the_page_shows_which_order_is_in_force_where_it_changed_and_what_the_shield_forbade(visit, shielded, tmp_path):
    told = replay(str(shielded), workflow=ORDER, then=["20: user_priority"], episodes=5, **GAME)
    write_replay(tmp_path / "changing.html", told)
    page, orders = visit(tmp_path / "changing.html").page, []
    for step in ("19", "20"):
        page.fill("#slider", step)
        orders.append([text.split(" ")[1] for text in page.locator(".order b").all_inner_texts()])
    assert orders == [ORDER.split(" > "), ["user", "defender", "enterprise", "op_server", "op_host"]]
    assert page.inner_text(".since") == "changed at step 20" and page.locator(".timeline .change").count() == 1
    assert "from step 20 on user > defender" in page.inner_text("#about")
    step = next(step for step in told["episodes"][0]["steps"] if step["forbidden"])
    page.fill("#slider", str(step["step"]))
    crossed = page.locator(".order li.forbidden b").all_inner_texts()
    assert {text.split(" ")[1] for text in crossed} == set(step["forbidden"])
    said = f"suspected {', '.join(step['suspected'])}; forbade repairs of {', '.join(step['forbidden'])}"
    assert page.inner_text(".shield") == said


# ---------------------------------------------------------------- readable, and alone


@pytest.mark.parametrize(("width", "dark"), [(380, False), (700, True), (1059, False), (1061, True), (1600, False)])
def test_nothing_is_cut_off_sideways_names_do_not_overlap_and_all_text_has_contrast(visit, file, sleeping, width, dark):
    for path in (file, sleeping):
        visited = visit(path, width=width, dark=dark)
        for key in ("v", "End"):
            visited.page.keyboard.press(key)
            assert visited.sideways_overflow() == 0 and visited.low_contrasts() == []
    paper = visited.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 25, 31)" if dark else "rgb(255, 255, 255)")
    names = visited.page.evaluate(
        "[...document.querySelectorAll('.map .label')].map(l => [l.getBoundingClientRect(), getComputedStyle(l).fontSize])"
        ".map(([r, size]) => [r.left, r.right, r.top, r.bottom, parseFloat(size)])"
    )
    assert all(size >= 11 and left >= 0 and right <= width for left, right, _, _, size in names)
    for i, (left, right, top, bottom, _) in enumerate(names):
        for other in names[:i]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top, "names overlap"


def test_every_control_is_reached_by_tab(visit, file):
    visited = visit(file)
    visited.page.keyboard.press("ArrowRight")
    reached = [name or text for _, name, text in visited.tab_stops()]
    controls = ["first", "back", "play", "forward", "last", "speed"]
    controls += ["compromise", "repair", "contested", "violation", "slider"]
    assert [name for name in reached if name in controls] == controls
    assert sum(name.startswith(("worst", "median", "best")) for name in reached) == 3


def test_what_is_remembered_stands_beside_each_host_in_a_table_that_fits_a_wide_window(visit, tmp_path):
    told = replay("champion", number=5, red_agent="meander", steps=30)
    write_replay(tmp_path / "champion.html", told)
    visited, last = visit(tmp_path / "champion.html", width=1600), told["episodes"][0]["steps"][-1]
    visited.page.keyboard.press("Home")
    for _ in range(30):
        assert visited.page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.scroll'))") == 0
        visited.page.keyboard.press("ArrowRight")
    cells = visited.page.evaluate("[...document.querySelectorAll('.rows tr')].map(row => row.cells[7].textContent)")
    assert cells == [last["remembered"].get(host, "") for host in HOST_NAMES] and any(cells)
    assert visited.page.inner_text(".memory") == last["remembered"].get("network", "\u2013")
    assert "memory full" in visited.page.inner_text("#about") and visited.complaints == []
    assert visited.sideways_overflow() == 0 and visited.low_contrasts() == []


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
