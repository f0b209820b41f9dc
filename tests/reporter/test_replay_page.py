"""The replay page in a real browser: it shows what the document says, every control works, and it keeps to itself.

The document: react-restore judged by an order against B_line, whose worst episode has violations; and a sleeping defender,
who suffers impacts.
"""

import pytest
from cage2 import HOST_NAMES

from fixfirst.api.watch import replay
from fixfirst.learner.training import Training
from fixfirst.reporter.replay import write_replay
from fixfirst.settings.training import make_config

ORDER = "enterprise > defender > op_server > op_host > user"
GAME = {"red_agent": "b_line", "steps": 60, "seed": 0}
LETTERS = {"none": "", "clean": "", "unknown": "?", "user": "U", "root": "R"}


@pytest.fixture(scope="module")
def document():
    return replay("react-restore", workflow=ORDER, episodes=100, **GAME)


@pytest.fixture(scope="module")
def sleeping():
    return replay("sleep", episodes=3, **GAME)


class Player:
    """A replay page that is open. By itself it begins where red first takes a machine."""

    def __init__(self, visited):
        self.visited, self.page = visited, visited.page
        self.press, self.text, self.evaluate = self.page.keyboard.press, self.page.inner_text, self.page.evaluate

    @property
    def step(self):
        return int(self.text(".step").split()[0])

    def texts(self, selector):
        return self.page.locator(selector).all_text_contents()

    def units(self, selector):
        """Names of unit types, without their place in the order."""
        return [text.split(" ")[1] for text in self.page.locator(f"{selector} b").all_inner_texts()]

    def is_readable(self):
        return self.visited.sideways_overflow() == 0 and self.visited.low_contrasts() == []


@pytest.fixture
def show(visit, tmp_path):
    """show(document, **options) -> Player of its page; when the test ends, no page has complained or asked for anything."""
    players = []

    def open_page(document, **options):
        write_replay(tmp_path / "replay.html", document)
        players.append(Player(visit(tmp_path / "replay.html", **options)))
        return players[-1]

    yield open_page
    assert players and all((player.visited.complaints, player.visited.requests) == ([], []) for player in players)


def written(tenths):
    """As the page writes numbers: with a real minus."""
    return f"{tenths / 10:.1f}".replace("-", "\u2212")


def steps_where(episode, test):
    return [step["step"] for step in episode["steps"] if test(step)]


def violations(episode):
    return steps_where(episode, lambda step: step["verdict"] is not None and step["verdict"]["kind"] == "violation")


def test_every_step_shows_what_the_document_says(show, document):
    player, units = show(document), {host["name"]: host["unit"] for host in document["hosts"]}
    player.press("Home")
    for step in document["episodes"][0]["steps"]:
        assert player.step == step["step"]
        assert (player.text(".reward"), player.text(".return")) == (written(step["reward10"]), written(step["return10"]))
        assert step["red"] in player.text(".red") and step["blue"] in player.text(".blue")
        assert not step["verdict"] or player.text(".verdict") == step["verdict"]["kind"] + step["verdict"]["reason"]
        assert {*player.units(".order li.needy")} == {units[name] for name in step["needed"]}
        assert player.units(".order li.fixed") == ([units[step["blue_target"]]] if step["repair"] else [])
        hosts = list(zip(HOST_NAMES, step["access"], step["belief"], strict=True))
        rows = player.evaluate(
            "[...document.querySelectorAll('.rows tr')].map(r => [0, 2, 3].map(c => r.cells[c].textContent))"
        )
        assert [tuple(row) for row in rows] == hosts
        labels = player.evaluate("[...document.querySelectorAll('.map .host')].map(h => h.getAttribute('aria-label'))")
        assert labels == [f"{name}: truth {access}, blue believes {belief}" for name, access, belief in hosts]
        assert player.texts(".map .half") == [LETTERS[level] for _, access, belief in hosts for level in (belief, access)]
        player.press("ArrowRight")


def test_without_an_order_the_page_says_so_and_without_javascript_what_to_do(show, sleeping):
    player = show(sleeping)
    player.press("ArrowRight")
    assert player.text(".verdict") == "no order to judge by" and player.text(".order") == ""
    assert "no order to keep to" in player.text("#about") and player.texts(".remembers") == []
    assert "fixfirst watch --text" in show(sleeping, javascript=False).text("noscript")


def test_slider_timeline_keys_and_address_lead_to_a_step_or_the_nearest_thing(show, document):
    player = show(document)
    player.page.fill("#slider", "25")
    assert player.step == 25 and player.evaluate("location.hash") == "#e=worst&t=25"
    box = player.page.locator(".timeline").bounding_box()
    player.page.mouse.click(box["x"] + box["width"] * 30.5 / 61, box["y"] + 20)
    assert player.step == 30
    seen = []
    for key in ("Home", "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home"):
        player.press(key)
        seen.append(player.step)
    assert seen == [0, 0, 1, 2, 1, 60, 60, 0]
    player.page.focus("#slider")
    player.press("ArrowRight")
    assert player.step == 1
    fragments = {"#e=nobody&t=5": 5, "#t=999": 60, "#t=-4": 0, "#t=x&e=%3Cb%3E": 0, "#%": 3, "#e=best&t=37": 37}
    for fragment, step in fragments.items():
        player.page.goto(player.page.url.split("#")[0] + fragment)
        player.page.reload()
        assert player.step == step
    assert player.page.get_attribute("#episodes button:nth-child(3)", "aria-pressed") == "true"
    player.press("ArrowRight")
    assert player.evaluate("location.hash") == "#e=best&t=38"


@pytest.mark.parametrize("name", ["violation", "repair", "contested", "impact"])
def test_the_next_violation_repair_contested_one_and_impact_are_found_by_key_and_button(show, document, sleeping, name):
    """After the last one comes the first; with Shift one goes back."""
    player = show(sleeping if name == "impact" else document)
    worst = (sleeping if name == "impact" else document)["episodes"][0]
    expected = violations(worst) if name == "violation" else steps_where(worst, lambda step: step[name])
    player.press("Home")
    seen = []
    for key in (name[0], name[0], f"Shift+{name[0].upper()}", f"Shift+{name[0].upper()}"):
        player.press(key)
        seen.append(player.step)
    player.page.click(f"#{name}")
    assert len(expected) > 3 and [*seen, player.step] == [*expected[:2], expected[0], expected[-1], expected[0]]


def test_an_episode_begins_where_red_first_takes_a_machine_and_offers_only_what_it_has_by_tab_too(show, document):
    player, foothold = show(document), HOST_NAMES.index("User0")
    for key, episode in zip("12", document["episodes"], strict=False):
        player.press(key)
        taken = steps_where(episode, lambda step: any(a != "none" for h, a in enumerate(step["access"]) if h != foothold))
        assert player.step == taken[0] > 0
        player.press("End")
        player.press("f")
        assert player.step == taken[0]
    assert violations(document["episodes"][2]) == []
    player.press("3")
    assert player.page.is_disabled("#violation") and player.page.is_disabled("#impact")
    before = player.step
    player.press("v")
    assert player.step == before
    reached = [name or text for _, name, text in show(document).visited.tab_stops()]
    controls = ["first", "back", "play", "forward", "last", "speed"]
    controls += ["compromise", "repair", "contested", "violation", "slider"]
    assert [name for name in reached if name in controls] == controls
    assert sum(name.startswith(("worst", "median", "best")) for name in reached) == 3


def test_playing_goes_on_by_itself_pauses_and_ends_at_the_end(show, document):
    """The page's clock moves only when told: two steps a second, then 16, at which ten steps take 625 ms."""
    player = show(document)
    page = player.page
    player.press("Home")
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
    player.press("Space")
    page.clock.run_for(1_100)
    player.press("Space")
    page.clock.run_for(5_000)
    assert player.step == 2 and player.text("#play") == "Play"
    for _ in range(5):
        player.press("]")
    assert page.input_value("#speed") == "16"
    page.fill("#slider", "50")
    player.press("Space")
    page.clock.run_for(600)
    assert player.step == 59 and player.text("#play") == "Pause"
    page.clock.run_for(100)
    assert player.step == 60 and player.text("#play") == "Play"


def test_two_players_stand_side_by_side_in_the_same_episode_at_the_same_step(show):
    pair = replay("react-restore", beside="sleep", workflow=ORDER, episodes=20, **GAME)
    pair["policy"] = "runs/mine-0"  # a name with a number that is not negative
    for width, is_beside in ((1600, True), (380, False)):
        player = show(pair, width=width)
        player.press("1")  # the page opens where the two part
        player.press("End")
        last = [each["episodes"][0]["steps"][-1] for each in (pair, pair["beside"])]
        assert player.texts(".return") == [written(step["return10"]) for step in last]
        assert player.texts(".step") == ["60 of 60", "60 of 60"]
        maps = [player.page.locator(".map").nth(i).bounding_box() for i in (0, 1)]
        assert (maps[0]["y"] == maps[1]["y"]) is is_beside and (maps[0]["x"] < maps[1]["x"]) is is_beside
        why = player.text("#why")
        assert "runs/mine-0: The worst of 20 episodes" in why and "sleep: Here" in why and " of \u2212" in why
        assert player.is_readable()


def test_the_page_shows_which_order_is_in_force_where_it_changed_and_what_the_shield_forbade(show, tmp_path):
    """An untrained policy for all orders, kept to them by a shield."""
    Training(make_config(workflow="all", red_agent="b_line", total_episodes=100)).save_policy(tmp_path)
    episodes = replay(str(tmp_path), workflow=ORDER, then=["20: user_priority"], episodes=5, **GAME)
    player, orders = show(episodes), []
    for step in ("19", "20"):
        player.page.fill("#slider", step)
        orders.append(player.units(".order"))
    assert orders == [ORDER.split(" > "), ["user", "defender", "enterprise", "op_server", "op_host"]]
    assert player.text(".since") == "changed at step 20" and len(player.texts(".timeline .change")) == 1
    assert "from step 20 on user > defender" in player.text("#about")
    step = next(step for step in episodes["episodes"][0]["steps"] if step["forbidden"])
    player.page.fill("#slider", str(step["step"]))
    assert {*player.units(".order li.forbidden")} == {*step["forbidden"]}
    expected = f"suspected {', '.join(step['suspected'])}; forbade repairs of {', '.join(step['forbidden'])}"
    assert player.text(".shield") == expected


@pytest.mark.parametrize(("width", "dark"), [(380, False), (700, True), (1059, False), (1061, True), (1600, False)])
def test_nothing_is_cut_off_sideways_names_do_not_overlap_and_all_text_has_contrast(show, document, sleeping, width, dark):
    for each in (document, sleeping):
        player = show(each, width=width, dark=dark)
        for key in ("v", "End"):
            player.press(key)
            assert player.is_readable()
    paper = player.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 25, 31)" if dark else "rgb(255, 255, 255)")
    names = player.evaluate(
        "[...document.querySelectorAll('.map .label')].map(l => [l.getBoundingClientRect(), getComputedStyle(l).fontSize])"
        ".map(([r, size]) => [r.left, r.right, r.top, r.bottom, parseFloat(size)])"
    )
    assert all(size >= 11 and left >= 0 and right <= width for left, right, _, _, size in names)
    for i, (left, right, top, bottom, _) in enumerate(names):
        for other in names[:i]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top, "names overlap"


def test_what_is_remembered_stands_beside_each_host_in_a_table_that_fits_a_wide_window(show):
    episodes = replay("champion", number=5, red_agent="meander", steps=30)
    player, last = show(episodes, width=1600), episodes["episodes"][0]["steps"][-1]
    player.press("Home")
    for _ in range(30):
        assert player.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.scroll'))") == 0
        player.press("ArrowRight")
    remembered = player.texts(".rows tr td:nth-child(8)")
    assert remembered == [last["remembered"].get(host, "") for host in HOST_NAMES] and any(remembered)
    assert player.text(".memory") == last["remembered"].get("network", "\u2013")
    assert "memory full" in player.text("#about") and player.is_readable()


def test_markup_in_names_is_shown_as_text_and_does_nothing(show, document):
    evil = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    worst = document["episodes"][0]
    step = worst["steps"][1] | {"red": evil, "verdict": {"kind": "violation", "reason": evil}}
    parts = {"policy": evil, "workflow": [evil], "hosts": [host | {"unit": evil} for host in document["hosts"]]}
    parts["episodes"] = [worst | {"label": evil, "red_agent": evil, "steps": [step, step]}]
    player = show(document | parts)
    assert player.page.title() == f"fixfirst replay: {evil}"
    assert player.text(".red").endswith(evil) and player.text(".verdict").endswith(evil) and player.texts("img") == []
