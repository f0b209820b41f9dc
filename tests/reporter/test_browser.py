"""The browser's own witness: it notices what pages must not do."""

import pytest

PLAIN = "<!doctype html><html lang=en><title>t</title><body style='color:#000;background:#fff'>"


@pytest.fixture
def page_with(tmp_path, visit):
    def write(body, **options):
        path = tmp_path / "page.html"
        path.write_text(PLAIN + body)
        return visit(path, **options)

    return write


def test_a_quiet_page_neither_complains_nor_asks_for_anything_and_a_loud_one_is_noticed(page_with):
    visited = page_with("<p>hello</p>")
    assert (visited.complaints, visited.requests, visited.sideways_overflow(), visited.low_contrasts()) == ([], [], 0, [])
    visited = page_with(
        "<img src='https://example.org/x.png'><div style='width:600px'>wide</div><script>lost()</script>", width=380
    )
    assert visited.requests == ["https://example.org/x.png"] and visited.sideways_overflow() > 200
    assert any("lost is not defined" in complaint for complaint in visited.complaints)


def test_pale_text_is_noticed_also_in_pictures_where_it_is_compared_with_the_shape_under_it(page_with):
    """#777 on white has a contrast of 4.48, #767676 of 4.54: the two sides of 4.5."""
    visited = page_with(
        "<p style='color:#777'>pale</p><p style='color:#767676'>fine</p><svg><text fill='#eee'>ghost</text></svg>"
    )
    assert [text for text, _ in visited.low_contrasts()] == ["pale", "ghost"]
    assert visited.low_contrasts()[0][1] == pytest.approx(4.48, abs=0.005)
    shape = "<rect width='200' height='40' fill='#000'/>"
    visited = page_with(
        f"<svg>{shape}<text x='9' y='20' fill='#fff'>ok</text><text x='99' y='20' fill='#222'>dim</text></svg>"
    )
    assert [text for text, _ in visited.low_contrasts()] == ["dim"]


def test_dark_mode_is_what_the_page_sees(page_with):
    style = "<style>@media (prefers-color-scheme: dark) {p {color: #111}}</style><p>text</p>"
    assert page_with(style, dark=True).page.eval_on_selector("p", "p => getComputedStyle(p).color") == "rgb(17, 17, 17)"


def test_tab_stops_are_listed_in_order_without_what_cannot_be_reached(page_with):
    visited = page_with("<a href='#x' id=first>one</a><button disabled>no</button><button>two</button>")
    assert visited.tab_stops() == [("a", "first", "one"), ("button", "", "two")]
