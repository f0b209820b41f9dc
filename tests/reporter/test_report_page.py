"""The report's page in a real browser: self-contained, true to the ledger, readable in light and dark, narrow and wide."""

import re
import shutil

import pytest
from run_folder import LOST, TRIALS, write_search, write_training

from fixfirst.orders.order import all_workflows
from fixfirst.reporter.report import report
from fixfirst.runs.layout import RunFiles
from fixfirst.stats.across_seeds import read_trials


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A search of 24 orders and one that did not pass."""
    texts = [str(workflow) for workflow in all_workflows()][::5]
    trials = [(i, text, "accepted", -14.0 - i % 7, 0.1, 0.97, 0.9, 300, None) for i, text in enumerate(texts)]
    trials.append((24, LOST, "non_compliant", -22.0, 0.4, 0.60, 0.30, 300, None))
    return write_search(tmp_path_factory.mktemp("report") / "run", trials)


@pytest.fixture(scope="module")
def page(folder):
    return report([folder]).path


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        write_search(root / f"search-{seed}", [(*TRIALS[0][:3], -14.0 - seed, *TRIALS[0][4:]), *TRIALS[1:]], seed=seed)
    (write_training(root / "plain") / "runtime.csv").unlink()
    return report([root], root / "report.html").path


OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"


def cells(page, column):
    return page.locator(f"#all-tried-orders tbody td:nth-child({column})").all_text_contents()


def test_the_page_has_the_numbers_of_the_ledger_also_without_javascript(visit, page, folder):
    trials = read_trials(folder)
    best = max((trial for trial in trials if trial.accepted), key=lambda trial: trial.mean)
    for javascript in (True, False):
        there = visit(page, javascript=javascript).page
        earned = re.search(r"return (−[\d.]+) ", there.inner_text("#answer"))[1]
        assert float(earned.replace("−", "-")) == best.mean
        table = dict(zip(cells(there, 1), cells(there, 2), strict=True))
        assert table == {t.workflow: f"{t.mean:.2f}".replace("-", "−") for t in trials}
        assert there.locator("figure svg:visible").count() == 2


@pytest.mark.parametrize(("width", "dark"), [(380, False), (380, True), (1600, False), (1600, True)])
def test_pages_are_quiet_ask_for_nothing_never_scroll_sideways_and_all_text_has_contrast(
    visit, page, comparison, width, dark
):
    for path in (page, comparison):
        visited = visit(path, width=width, dark=dark)
        visited.page.evaluate(OPEN_ALL)
        assert visited.sideways_overflow() == 0 and visited.low_contrasts() == []
        visited.page.wait_for_timeout(100)
        assert (visited.complaints, visited.requests) == ([], [])


def test_figures_and_tables_are_readable_on_a_phone(visit, page):
    """No box scrolls, no text of a figure is lower than 7 pixels, a number stays in one line beside a long name."""
    page = visit(page, width=380).page
    heights = page.evaluate("[...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect().height)")
    assert len(heights) > 30 and min(heights) >= 7
    wider = "boxes => boxes.filter(b => b.scrollWidth > b.clientWidth).length"
    assert page.locator("figure .scroll").evaluate_all(wider) == 0
    height = page.evaluate(
        "() => {const box = document.createElement('div'); box.className = 'pairs';"
        "box.innerHTML = '<table><tr><td>standard deviation between two trainings</td><td>x</td></tr><tr>'"
        "+ '<td>n</td><td>1,200,000</td></tr></table>';"
        "document.querySelector('main').append(box); const t = box.firstChild;"
        "return t.rows[1].getBoundingClientRect().height / parseFloat(getComputedStyle(t).lineHeight)}"
    )
    assert height < 2


def test_figures_follow_light_and_dark_and_lines_do_not_strike_through_the_names_of_rows(visit, page):
    """A name has a rim of the page's own colour."""
    inks = []
    for dark in (False, True):
        there = visit(page, dark=dark).page
        ink = "t => [getComputedStyle(t).fill, getComputedStyle(document.body).color]"
        inks.append(there.locator("figure svg text").first.evaluate(ink))
        rim, paper = there.locator("svg .row-name text").first.evaluate(
            "t => [getComputedStyle(t), getComputedStyle(document.body)]"
            ".map((s, i) => i ? s.backgroundColor : s.paintOrder + ' ' + s.stroke)"
        )
        assert rim == f"stroke {paper}"
    assert inks[0][0] == inks[0][1] != inks[1][0] == inks[1][1]


def test_the_keyboard_reaches_everything_and_goes_from_mark_to_mark_and_columns_are_sorted_both_ways(visit, page):
    visited = visit(page)
    visited.page.evaluate(OPEN_ALL)
    stops = visited.tab_stops()
    reached = {tag: [text for t, _, text in stops if t == tag] for tag in ("a", "summary", "button")}
    assert "All tried orders" in reached["a"] and "Glossary" in reached["a"]
    assert "All tried orders, as a table" in reached["summary"]
    assert {"sort by return", "sort by compliance", "sort by trial"} <= set(reached["button"])
    assert ("div", "", "Figure ranking") in stops
    orders = cells(visited.page, 1)
    visited.page.focus("[aria-label='Figure ranking']")
    for place in (0, 1):
        visited.page.keyboard.press("ArrowDown")
        assert visited.page.inner_text("#card b") == orders[place]
    visited.page.keyboard.press("Escape")
    page = visited.page
    assert page.locator("#card").is_hidden()
    for upwards in (True, False):
        page.get_by_role("button", name="sort by return").first.click()
        values = [float(text.replace("−", "-")) for text in cells(page, 2)]
        assert values == sorted(values, reverse=not upwards)
    assert min(values) == -22.0 and max(values) == -14.0


def first_mark(page, figure):
    """The middle of the first mark of a figure."""
    mark = page.locator(f"[aria-label='Figure {figure}'] svg .mark").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.parametrize("width", [380, 1600])
def test_a_mark_tells_its_order_numbers_and_trial_when_pointed_at_and_keeps_the_card_when_tapped(visit, page, width):
    visited = visit(page, width=width)
    page, card = visited.page, visited.page.locator("#card")
    x, y = first_mark(page, "ranking")
    assert card.is_hidden()
    page.mouse.move(x + 9, y)  # near is enough
    said = card.inner_text()
    assert re.match(r"\w+ > .*\nreturn -14\.00\n95 % interval \[.*\]\nverdict may be best\n", said)
    assert re.search(r"fixfirst watch \S+/trials/\d{4}$", said)
    box = card.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    page.mouse.move(2, 2)
    assert card.is_hidden() and visited.sideways_overflow() == 0
    page.mouse.click(*first_mark(page, "ranking"))
    page.mouse.move(2, 2)
    assert card.inner_text() == said and card.is_visible()
    page.mouse.click(2, 2)
    assert card.is_hidden()


def test_a_mark_links_to_its_replay_once_there_is_one(visit, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "run")
    (copy / "replays").mkdir()
    for trial in read_trials(copy):
        RunFiles(copy).replay_of(f"trial {trial.id}").write_text("a replay")
    page = visit(report([copy], tmp_path / "elsewhere.html").path).page
    page.mouse.click(*first_mark(page, "ranking"))
    link = tmp_path / page.get_attribute("#card a", "href")
    assert link.resolve().parent == (copy / "replays").resolve() and link.exists()
