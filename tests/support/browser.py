"""Pages in a real, headless Chromium: what a reader sees, and what a page does behind the reader's back.

Tests take the fixture `visit`. It needs Chromium: FIXFIRST_CHROMIUM, or `chromium` on PATH; without it they are skipped.
"""

import os
import shutil
from dataclasses import dataclass, field

import pytest
from patience import PATIENCE_S

CHROMIUM = os.environ.get("FIXFIRST_CHROMIUM") or shutil.which("chromium")
# Chromium itself must not use the network either: a request seen here is the page's.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE_MS = 1_000 * PATIENCE_S


@dataclass
class Visit:
    """An open page and what it did since it was opened."""

    page: object  # playwright.sync_api.Page
    complaints: list = field(default_factory=list)  # errors and warnings of the console, uncaught exceptions
    requests: list = field(default_factory=list)  # addresses asked for, other than the page itself; none is answered

    def sideways_overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def low_contrasts(self, least=4.5):
        """Texts that are hard to read: (text, contrast ratio) of all visible text below `least` (WCAG 2, AA: 4.5)."""
        return [(text, ratio) for text, ratio in self.page.evaluate(CONTRASTS) if ratio < least]

    def tab_stops(self, most=200):
        """What the Tab key reaches, in order: the tag, id and text of each element, until it leaves the page or repeats."""
        reached = []
        for _ in range(most):
            self.page.keyboard.press("Tab")
            stop = self.page.evaluate(FOCUSED)
            if stop is None or stop in reached:
                break
            reached.append(stop)
        return [(stop["tag"], stop["id"], stop["text"]) for stop in reached]


@pytest.fixture(scope="module")
def chromium():
    """A headless Chromium, one for the tests of a module."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: install it, or name it in FIXFIRST_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), timeout=PATIENCE_MS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """visit(path, width=1000, height=800, dark=False, javascript=True) -> Visit of a page on disk."""
    contexts = []

    def open_page(path, width=1000, height=800, dark=False, javascript=True):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        visited = Visit(context.new_page())
        address = path.resolve().as_uri()

        def answer(route):
            if route.request.url.split("#")[0] == address:
                route.continue_()
            else:
                visited.requests.append(route.request.url)
                route.abort()

        def console(message):
            if message.type in ("error", "warning"):
                visited.complaints.append(message.text)

        visited.page.route(lambda url: not url.startswith("data:"), answer)
        visited.page.on("console", console)
        visited.page.on("pageerror", lambda error: visited.complaints.append(str(error)))
        visited.page.goto(address)
        return visited

    yield open_page
    for context in contexts:
        context.close()


FOCUSED = """() => {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    const stops = window.__stops ??= new Map();
    if (!stops.has(element)) stops.set(element, stops.size);
    const text = (element.getAttribute('aria-label') || element.textContent || '').trim().slice(0, 60);
    return {place: stops.get(element), tag: element.tagName.toLowerCase(), id: element.id, text};
}"""

# Every visible text node with its contrast to what is painted behind it: the background colours of its ancestors, nearest
# last, over the canvas. SVG text is painted with `fill`, over whatever shapes lie under its middle.
CONTRASTS = """() => {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    canvas.canvas.width = canvas.canvas.height = 1;
    const paint = (colours) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const luminance = (rgb) => {
        const [r, g, b] = rgb.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
        if (!text || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
        const style = getComputedStyle(element), svg = element.closest('svg');
        const behind = ['Canvas'], ancestors = [];
        for (let e = svg ?? element; e; e = e.parentElement) ancestors.unshift(getComputedStyle(e).backgroundColor);
        behind.push(...ancestors);
        if (svg) {
            element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
            const box = element.getBoundingClientRect();
            const stack = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
            const shapes = stack.filter(e => svg.contains(e) && e !== svg && !['text', 'tspan'].includes(e.tagName));
            behind.push(...shapes.reverse().map(e => getComputedStyle(e).fill).filter(fill => fill !== 'none'));
        } else if (!element.getClientRects().length) continue;
        const ink = svg ? style.fill : style.color;
        const back = luminance(paint(behind)), front = luminance(paint([...behind, ink]));
        found.push([text.slice(0, 60), (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05)]);
    }
    return found;
}"""
