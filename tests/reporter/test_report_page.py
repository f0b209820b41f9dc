"""The report's page in a real browser: self-contained, true to the ledger, readable in light and dark, narrow and wide."""

import json
import re
import shutil

import pytest
from run_folder import LOST, TRIALS, write_search, write_training

from fixfirst.orders.order import all_workflows
from fixfirst.reporter.report import report
from fixfirst.runs.layout import replay_file
from fixfirst.runs.ledger import read_trials
from fixfirst.runs.lock import locked


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A search of 24 orders and one that did not pass, so that every figure is there."""
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
    write_training(root / "plain <b>bold")
    (root / "search-0" / "runtime.csv").unlink()
    return report([root], root / "report.html").path


WIDTHS = (380, 1600)


def test_the_page_is_quiet_and_asks_for_nothing(visit, page, comparison):
    for path in (page, comparison):
        visited = visit(path)
        visited.page.wait_for_timeout(200)
        assert (visited.complaints, visited.requests) == ([], [])


def test_the_numbers_of_the_answer_are_the_ledgers(visit, page, folder):
    visited = visit(page)
    best = max((trial for trial in read_trials(folder) if trial.accepted), key=lambda trial: trial.earned)
    shown = visited.page.inner_text("#answer")
    assert float(re.search(r"earned (−[\d.]+) per episode", shown)[1].replace("−", "-")) == best.earned
    assert f"{100 * best.compliance:.1f} % of the judged repairs" in shown
    assert visited.page.locator(".headline li").all_inner_texts() == list(report([folder]).document.headline)


def test_the_table_has_every_order_with_the_ledgers_numbers(visit, page, folder):
    rows = visit(page).page.locator("#all-tried-orders tbody tr")
    shown = {cells[1]: cells[2] for cells in (row.split("\t") for row in rows.evaluate_all(CELLS))}
    ledger = {t.workflow: f"{t.earned:.2f}".replace("-", "−") for t in read_trials(folder)}
    assert shown == ledger


CELLS = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent).join('\\t'))"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_never_scrolls_sideways(visit, page, comparison, width):
    for path in (page, comparison):
        visited = visit(path, width=width)
        visited.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert visited.sideways_overflow() == 0


def test_figures_are_readable_on_a_phone(visit, page):
    """There is nothing to scroll, and no text is lower than 7 pixels."""
    visited = visit(page, width=380)
    heights = visited.page.evaluate(
        "[...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect().height)"
    )
    assert len(heights) > 100 and min(heights) >= 7
    wider = "boxes => boxes.filter(b => b.scrollWidth > b.clientWidth).length"
    assert visited.page.locator("figure .scroll").evaluate_all(wider) == 0


def test_lines_do_not_strike_through_the_names_above_rows(visit, page):
    """A name has a rim of the page's own colour, light or dark."""
    for dark in (False, True):
        name = visit(page, width=380, dark=dark).page.locator("svg .row-name text").first
        rim, paper = name.evaluate(
            "t => [getComputedStyle(t), getComputedStyle(document.body)]"
            ".map((s, i) => i ? s.backgroundColor : s.paintOrder + ' ' + s.stroke)"
        )
        assert rim == f"stroke {paper}"


def test_a_number_stays_in_one_line_beside_a_long_name(visit, page):
    visited = visit(page, width=380)
    height = visited.page.evaluate(
        "() => {const t = document.createElement('table'); t.className = 'pairs';"
        "t.innerHTML = '<tr><td>standard deviation between two trainings</td><td>x</td></tr><tr>'"
        "+ '<td>n</td><td>1,200,000</td></tr>';"
        "document.querySelector('main').append(t);"
        "return t.rows[1].getBoundingClientRect().height / parseFloat(getComputedStyle(t).lineHeight)}"
    )
    assert height < 2


def test_a_cpus_features_are_counted(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "run")
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["machine"] = {"features": [f"feature{n}" for n in range(90)]}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    text = report([copy]).path.read_text()
    assert "90, named in manifest.json" in text and "feature7" not in text


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_has_contrast_in_light_and_dark(visit, page, comparison, dark):
    for path in (page, comparison):
        visited = visit(path, dark=dark)
        visited.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert visited.low_contrasts() == []


def test_light_and_dark_differ_and_figures_follow(visit, page):
    inks = []
    for dark in (False, True):
        element = visit(page, dark=dark).page.locator("figure svg text").first
        inks.append(element.evaluate("t => [getComputedStyle(t).fill, getComputedStyle(document.body).color]"))
    assert inks[0][0] == inks[0][1] != inks[1][0] == inks[1][1]


def test_the_keyboard_reaches_links_boxes_and_column_titles(visit, page):
    visited = visit(page)
    visited.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    stops = visited.tab_stops()
    reached = {tag: [text for t, _, text in stops if t == tag] for tag in ("a", "summary", "button")}
    assert "All tried orders" in reached["a"] and "Glossary" in reached["a"]
    assert "All tried orders, as a table" in reached["summary"]
    assert {"sort by return", "sort by compliance", "sort by trial"} <= set(reached["button"])
    assert ("div", "", "Figure ranking") in stops


def test_a_column_can_be_sorted_both_ways_by_its_numbers(visit, page):
    visited = visit(page)
    visited.page.locator("summary").first.click()
    button = visited.page.get_by_role("button", name="sort by return")
    cells = visited.page.locator("#all-tried-orders tbody tr td:nth-child(3)")
    for upwards in (True, False):
        button.click()
        values = [float(text.replace("−", "-")) for text in cells.all_inner_texts()]
        assert values == sorted(values, reverse=not upwards)
    assert min(values) == -22.0 and max(values) == -14.0


def test_the_page_is_complete_without_javascript(visit, page, folder):
    visited = visit(page, javascript=False)
    assert visited.page.locator("figure svg:visible").count() == 7
    assert visited.page.locator("#all-tried-orders tbody tr").count() == len(read_trials(folder))


def test_what_is_missing_stands_at_the_top(visit, comparison):
    box = visit(comparison).page.locator(".missing")
    assert "search-0: runtime.csv is not there" in box.inner_text()
    assert box.bounding_box()["y"] < 400


def test_names_with_markup_are_text(visit, comparison):
    visited = visit(comparison)
    assert visited.page.locator("main b").count() == 0
    assert "plain <b>bold" in visited.page.inner_text("#the-runs")


def first_mark(visited, figure):
    """The middle of the first mark of a figure that can be seen."""
    mark = visited.page.locator(f"[aria-label='Figure {figure}'] svg:visible .mark").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.parametrize("width", WIDTHS)
def test_a_mark_tells_its_order_numbers_and_trial_when_pointed_at(visit, page, width):
    visited = visit(page, width=width)
    x, y = first_mark(visited, "ranking")
    card = visited.page.locator("#card")
    assert card.is_hidden()
    visited.page.mouse.move(x + 9, y)  # near is enough
    said = card.inner_text()
    assert re.match(r"1\. \w+ > .*\nreturn -14\.00 \(.* to .*\)\nmay be best, trial \d+\n", said)
    assert re.search(r"fixfirst watch \S+/trials/\d{4}$", said)
    box = card.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    visited.page.mouse.move(2, 2)
    assert card.is_hidden() and visited.sideways_overflow() == 0


def test_a_tap_keeps_the_card_until_the_next_one(visit, page):
    visited = visit(page, width=380)
    x, y = first_mark(visited, "progress")
    visited.page.mouse.click(x, y)
    card = visited.page.locator("#card")
    assert card.inner_text().startswith("trial 0: ")
    visited.page.mouse.move(2, 2)
    assert card.is_visible()
    visited.page.mouse.click(2, 2)
    assert card.is_hidden()


def test_with_the_keyboard_one_goes_from_mark_to_mark(visit, page):
    visited = visit(page)
    visited.page.focus("[aria-label='Figure ranking']")
    said = []
    for _ in range(2):
        visited.page.keyboard.press("ArrowDown")
        said.append(visited.page.inner_text("#card b"))
    assert [text.split(".")[0] for text in said] == ["1", "2"]
    visited.page.keyboard.press("Escape")
    assert visited.page.locator("#card").is_hidden()


def test_a_mark_links_to_its_replay_once_there_is_one(visit, folder, tmp_path):
    (folder / "replays").mkdir()
    for trial in read_trials(folder):
        (folder / replay_file(f"trial {trial.id}")).write_text("a replay")
    written = report([folder], tmp_path / "elsewhere.html")
    visited = visit(written.path)
    visited.page.mouse.click(*first_mark(visited, "ranking"))
    link = visited.page.get_attribute("#card a", "href")
    assert (tmp_path / link).resolve().parent == (folder / "replays").resolve() and (tmp_path / link).exists()


def test_a_running_search_has_a_page_that_looks_for_news(visit, tmp_path):
    folder = write_search(tmp_path / "run")
    with locked(folder):
        visited = visit(report([folder]).path)
        assert visited.page.get_attribute("meta[http-equiv=refresh]", "content") == "10"
        assert "still running" in visited.page.inner_text(".running")
    assert visit(report([folder]).path).page.locator("meta[http-equiv=refresh]").count() == 0
