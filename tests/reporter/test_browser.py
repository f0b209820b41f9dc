"""The browser's own witness: it notices what pages must not do."""

import pytest

PAGE = "<!doctype html><html lang=en><title>t</title><body style='color:#000;background:#fff'>"
LOUD = "<img src='https://example.org/x.png'><div style='width:600px'>wide</div><script>lost()</script>"
PALE = "<p style='color:#777'>pale</p><p style='color:#767676'>fine</p><svg><text fill='#eee'>ghost</text></svg>"
DARK = (
    "<svg><rect width='200' height='40'/><text x='9' y='20' fill='#fff'>ok</text><text x='99' y='20' fill='#222'>dim</text>"
)


@pytest.fixture
def page_with(tmp_path, visit):
    def write(body, **options):
        (tmp_path / "page.html").write_text(PAGE + body)
        return visit(tmp_path / "page.html", **options)

    return write


def test_complaints_requests_and_overflow_are_noticed_where_there_are_any(page_with):
    visited = page_with("<p>hello</p>")
    assert (visited.complaints, visited.requests, visited.sideways_overflow(), visited.low_contrasts()) == ([], [], 0, [])
    visited = page_with(LOUD, width=380)
    assert visited.requests == ["https://example.org/x.png"] and visited.sideways_overflow() > 200
    assert any("lost is not defined" in complaint for complaint in visited.complaints)


def test_pale_text_is_noticed_also_in_pictures_where_it_is_compared_with_the_shape_under_it(page_with):
    """#777 on white has a contrast of 4.48, #767676 of 4.54: the two sides of 4.5."""
    (text, contrast), ghost = page_with(PALE).low_contrasts()
    assert (text, ghost[0]) == ("pale", "ghost") and contrast == pytest.approx(4.48, abs=0.005)
    assert [text for text, _ in page_with(DARK).low_contrasts()] == ["dim"]


def test_tab_stops_are_listed_in_order_without_what_cannot_be_reached_and_dark_mode_is_what_the_page_sees(page_with):
    style = "<style>@media (prefers-color-scheme: dark) {a {color: #111}}</style>"
    visited = page_with(f"{style}<a href='#x' id=first>one</a><button disabled>no</button><button>two</button>", dark=True)
    assert visited.page.eval_on_selector("a", "a => getComputedStyle(a).color") == "rgb(17, 17, 17)"
    assert visited.tab_stops() == [("a", "first", "one"), ("button", "", "two")]
