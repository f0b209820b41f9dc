"""The browser's own witness: it notices what pages must not do."""

import pytest

PAGE = "<!doctype html><html lang=en><title>t</title><body style='color:#000;background:#fff'>"
LOUD = "<img src='https://example.org/x.png'><div style='width:600px'>wide</div><script>lost()</script>"
# #777 on white has a contrast of 4.48, #767676 of 4.54: the two sides of 4.5. In pictures the shape under a text counts.
PALE = (
    "<p style='color:#777'>pale</p><p style='color:#767676'>fine</p><svg><text y='20' fill='#eee'>ghost</text></svg>"
    "<svg><rect width='200' height='40'/><text x='9' y='20' fill='#fff'>ok</text><text x='99' y='20' fill='#222'>dim</text>"
)
KEYS = (
    "<style>@media (prefers-color-scheme: dark) {a {color: #111}}</style>"
    "<a href='#x' id=first>one</a><button disabled>no</button><button>two</button>"
)


def test_complaints_requests_overflow_and_pale_text_are_noticed_and_dark_mode_and_tab_stops_are_those_of_the_page(
    visit, tmp_path
):
    def page_with(body, **options):
        (tmp_path / "page.html").write_text(PAGE + body)
        return visit(tmp_path / "page.html", **options)

    visited = page_with("<p>hello</p>")
    assert (visited.complaints, visited.requests, visited.sideways_overflow(), visited.low_contrasts()) == ([], [], 0, [])
    visited = page_with(LOUD, width=380)
    assert visited.requests == ["https://example.org/x.png"] and visited.sideways_overflow() > 200
    assert any("lost is not defined" in complaint for complaint in visited.complaints)
    (first, *others) = page_with(PALE).low_contrasts()
    assert first == ("pale", pytest.approx(4.48, abs=0.005)) and [text for text, _ in others] == ["ghost", "dim"]
    visited = page_with(KEYS, dark=True)
    assert visited.page.eval_on_selector("a", "a => getComputedStyle(a).color") == "rgb(17, 17, 17)"
    assert visited.tab_stops() == [("a", "first", "one"), ("button", "", "two")]
