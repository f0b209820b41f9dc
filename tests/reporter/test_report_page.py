"""The report's page in a real browser: self-contained, true to the ledger, readable in light and dark, narrow and wide."""

import re

import pytest
from run_folder import LOST, TRIALS, write_search, write_training

from fixfirst.orders.workflow import all_workflows
from fixfirst.reporter.build import write_report
from fixfirst.runs.ledger import read_trials


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A search of 24 orders and one that did not pass, so that every figure is there."""
    texts = [str(workflow) for workflow in all_workflows()][::5]
    trials = [(i, text, "accepted", -14.0 - i % 7, 0.1, 0.97, 0.9, 300, None) for i, text in enumerate(texts)]
    trials.append((24, LOST, "non_compliant", -22.0, 0.4, 0.60, 0.30, 300, None))
    return write_search(tmp_path_factory.mktemp("report") / "run", trials)


@pytest.fixture(scope="module")
def page(folder):
    return write_report([folder]).path


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        write_search(root / f"search-{seed}", [(*TRIALS[0][:3], -14.0 - seed, *TRIALS[0][4:]), *TRIALS[1:]], seed=seed)
    write_training(root / "plain <b>bold")
    (root / "search-0" / "runtime.csv").unlink()
    return write_report([root], root / "report.html").path


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
    assert " > ".join(visited.page.locator(".headline li").all_inner_texts()) in {
        trial.workflow for trial in read_trials(folder) if trial.earned == best.earned
    }


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
    """The smallest text of any figure is at least 7 pixels high; wider figures scroll in their own box."""
    visited = visit(page, width=380)
    heights = visited.page.evaluate(
        "[...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect().height)"
    )
    assert len(heights) > 100 and min(heights) >= 7
    box = "b => b.scrollWidth > b.clientWidth"
    assert visited.page.locator("figure .scroll").first.evaluate(box)


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
    assert visited.page.locator("figure svg").count() == 7
    assert visited.page.locator("#all-tried-orders tbody tr").count() == len(read_trials(folder))


def test_what_is_missing_stands_at_the_top(visit, comparison):
    box = visit(comparison).page.locator(".missing")
    assert "search-0: runtime.csv is not there" in box.inner_text()
    assert box.bounding_box()["y"] < 400


def test_names_with_markup_are_text(visit, comparison):
    visited = visit(comparison)
    assert visited.page.locator("main b").count() == 0
    assert "plain <b>bold" in visited.page.inner_text("#the-runs")


def test_a_mark_tells_its_order_when_pointed_at(visit, page):
    titles = visit(page).page.locator("figure svg title").evaluate_all("all => all.map(t => t.textContent)")
    assert any(re.match(r"1\. .* > .*: -14\.00 \(.* to .*\), may be best", title) for title in titles)
