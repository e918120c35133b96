"""Requirements of every page: the lines G1 to G4 and G7 of the console's acceptance list."""

import time
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.browser.turns import still

ADMIN = "ada@example.org"
ADMIN_PASSWORD = "a password of many words"
PATIENCE = 60_000  # milliseconds; what never comes fails either way, and machines are slow at times
AXE = Path(__file__).parent / "vendor" / "axe-core" / "4.14.1" / "axe.min.js"
REFUSALS = (401, 409, 412, 422)
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# rules that colours, widths and hidden parts can break on a page that was checked before
OF_APPEARANCE = ["color-contrast", "target-size", "scrollable-region-focusable", "link-in-text-block"]
# elements that are about to appear, or to change their colour, are checked afterwards
RUN_AXE = """
async ([within, rules]) => {
    const passing = document.getAnimations().filter(it => it.effect.getComputedTiming().endTime <= 1000);
    await Promise.allSettled(passing.map(it => it.finished));
    const found = await axe.run(within === "body" ? document : within, {
        runOnly: rules, rules: {"target-size": {enabled: true}}, resultTypes: ["violations"],
        preload: false,  // of styles and media, which no rule that is run looks into
    });
    return found.violations.map(
        rule => rule.id + ": " + rule.nodes.map(node => node.target + " " + node.failureSummary).join("; ")
    );
}
"""
# a name for each element within another that has the focus, and what is wrong with how it is seen
LOOK_AT_FOCUS = """
within => {
    const it = document.activeElement;
    if (!it || it === document.body || !it.closest(within)) return null;
    const style = getComputedStyle(it);
    // the middle of what of it is inside the viewport
    const box = it.getBoundingClientRect();
    const middle = (from, to, end) => (Math.max(from, 0) + Math.min(to, end)) / 2;
    const x = middle(box.left, box.right, innerWidth), y = middle(box.top, box.bottom, innerHeight);
    const top = document.elementFromPoint(x, y);
    const isCovered = top !== it && !it.contains(top) && !top?.contains(it);
    const faults = [];
    if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) faults.push("no outline");
    if (box.right < 0 || box.bottom < 0 || box.left > innerWidth || box.top > innerHeight) faults.push("out of view");
    else if (isCovered) faults.push("behind " + top?.outerHTML.slice(0, 80));
    it.dataset.seen = it.dataset.seen ?? String(++window.seen || (window.seen = 1));
    return {name: it.dataset.seen + " " + it.outerHTML.slice(0, 100), faults};
}
"""


# notes this for each element that a Tab moves on from; past the last one within the part, Tab moves nothing
WALK = f"""
within => {{
    const look = {LOOK_AT_FOCUS.strip()};
    const steps = [];
    let hasBegun = false;
    const note = event => {{
        if (hasBegun && steps.at(-1) !== null) steps.push(look(within));
        if (steps.at(-1) === null) event.preventDefault();
        hasBegun = true;
    }};
    addEventListener("keydown", note, true);
    window.walk = {{steps, end: () => removeEventListener("keydown", note, true)}};
}}
"""
AT_ONCE = 8  # presses of Tab before the steps are looked at


# the shifts of a page since it began, once what it loads by itself is there: their sum, and what moved
SHIFTS = """
async () => {
    do await new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)));
    while (document.querySelector(".htmx-request") || document.fonts.status !== "loaded");
    const shifts = await new Promise(done => {
        const observer = new PerformanceObserver(list => done(list.getEntries()));
        observer.observe({type: "layout-shift", buffered: true});
        setTimeout(() => done([]), 50);
    });
    const own = shifts.filter(it => !it.hadRecentInput);
    const written = ({x, y, width, height}) => `${x},${y} ${width}x${height}`;
    const moved = own.flatMap(it => it.sources.map(({node, previousRect, currentRect}) =>
        `${(node?.outerHTML ?? node?.nodeName)?.slice(0, 90)}: ${written(previousRect)} to ${written(currentRect)}`
    ));
    return [own.reduce((sum, it) => sum + it.value, 0), moved];
}
"""
MOST_SHIFT = 0.02
PROBE = "/ui/healthz?intercepted"


def patient(context):
    """Return the context, for use in a ``with`` statement, with the timeout of all tests."""
    context.set_default_timeout(PATIENCE)
    return context


def intercept(page, address, act):
    """Let a page's requests of an address come to an act: all from now on, which Chromium takes a moment for."""
    page.route(address, act)
    page.route(PROBE, lambda route: route.fulfill(status=204))
    page.wait_for_function(f"fetch('{PROBE}').then(answer => answer.status === 204)", polling=10)


class Held:
    """Requests of an address that wait for their answers; at least one is made, by a page that may be slow to ask.

    With `fetched`, the server answers at once, and the page gets its answers when they are released.
    """

    def __init__(self, page, address, *, fetched=False):
        self.requests = []
        self._page, self._is_fetched, self._is_released = page, fetched, False
        intercept(page, address, self._hold)

    def wait(self):
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.requests:
            assert time.monotonic() < deadline, "the page does not ask"
            self._page.wait_for_timeout(10)

    def take(self):
        """Remove the oldest request and return its route."""
        self.wait()
        return self.requests.pop(0)[0]

    def release(self):
        """Let all go on, also those that come later."""
        self.wait()
        self._is_released = True
        self._let_go()

    def _hold(self, route):
        self.requests.append((route, route.fetch(timeout=PATIENCE) if self._is_fetched else None))
        if self._is_released:
            self._let_go()

    def _let_go(self):
        while self.requests:
            route, answer = self.requests.pop(0)
            route.fulfill(response=answer) if answer else route.fallback()


class Watch:
    """Collects what must not happen on a page: errors, violations of the CSP, answers that failed (G2)."""

    def __init__(self, page, expected_status):
        self.faults = []
        self._page = page
        self._expected = expected_status
        page.on("console", self._hear)
        page.on("pageerror", self._note)
        page.on("response", self._look)

    def end(self):
        self._page.remove_listener("console", self._hear)
        self._page.remove_listener("pageerror", self._note)
        self._page.remove_listener("response", self._look)

    def _note(self, error):
        self.faults.append(f"error: {error}")

    def _hear(self, message):
        if message.type not in {"error", "warning"}:
            return
        # error statuses are checked with the answer, whose page is known; this message may belong to the previous page
        if "the server responded with a status of" in message.text:
            return
        self.faults.append(f"{message.type}: {message.text}")

    def _look(self, response):
        is_page = response.request.is_navigation_request() and response.frame == self._page.main_frame
        if is_page:
            policy = response.headers.get("content-security-policy", "")
            if response.status < 300 and ("default-src 'none'" not in policy or "unsafe" in policy):
                self.faults.append(f"{response.url}: CSP {policy!r}")
        is_refusal = "hx-request" in response.request.headers and response.status in REFUSALS
        if response.status >= 400 and not is_refusal and response.status != self._expected:
            self.faults.append(f"{response.url}: {response.status}")


@cache
def _axe():
    return AXE.read_text()


@still
def check_axe(page, within="body", *, appearance_only=False):
    """G1: no violation of any rule; rules for whole pages are left out within a part of one."""
    page.evaluate("window.scrollTo(0, 0)")  # elements below a sticky bar would count as obscured
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())  # by the debugger, which the CSP does not bind
    rules = {"type": "rule", "values": OF_APPEARANCE} if appearance_only else {"type": "tag", "values": TAGS}
    result = page.evaluate(RUN_AXE, [within, rules])
    assert not result, "\n".join(result)


@still
def check_stability(page):
    """Check that late content does not move visible elements."""
    total, moved = page.evaluate(SHIFTS)
    assert total < MOST_SHIFT, "\n".join([f"{total:.3f}", *moved])


# how often what a page has once is there, its language, and what opens with the browser's mark beside ours
STRUCTURE = """
() => ({
    h1: document.querySelectorAll("h1").length,
    main: document.querySelectorAll("main").length,
    lang: document.documentElement.lang,
    marked: [...document.querySelectorAll("summary")]
        .filter(it => getComputedStyle(it).listStyleType !== "none").map(it => it.outerHTML.slice(0, 100)),
})
"""


@still
def check_structure(page, language="en"):
    """G4: one h1, a title, the language, landmarks, a skip link that works."""
    assert page.evaluate(STRUCTURE) == {"h1": 1, "main": 1, "lang": language, "marked": []}
    assert page.title().endswith(" - Tablero")
    assert len(page.title()) > len(" - Tablero")
    page.locator(".skip[href='#main']").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@still
def check_focus(page, within="body", most=250):
    """G3: by Tab through the page or its main part; every focused element is seen, and nothing traps the focus."""
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    if within != "body":
        page.locator(within).focus()
    page.evaluate(WALK, within)
    steps = []
    while len(steps) < most and None not in steps:
        for _ in range(AT_ONCE):
            page.keyboard.press("Tab")
        before, steps = steps, page.evaluate("walk.steps")
        assert len(steps) > len(before), f"the focus never left the {within}"
    page.evaluate("walk.end()")
    assert steps[-1] is None, f"the focus never left the {within}"
    names = []
    for step in steps[:-1]:
        name = step["name"].split(" ")[0]
        if name in names[-1:]:
            continue  # a date has stops of the browser's own
        assert name not in names and not step["faults"], (step["faults"], step["name"])
        names.append(name)
    return names


@still
def check_reflow(page):
    """G7: nothing but a grid's own region scrolls sideways."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1"
        " && !e.closest('.grid-region, .tabs, .sidebar')).map(e => e.outerHTML.slice(0, 120)).slice(0, 5)"
    )


# elements that follow their own size have settled
TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@still
def check_on_a_phone(page):
    """Check the loaded page in the dark and 390 px wide."""
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 900})
    page.evaluate(TWO_FRAMES)
    check_reflow(page)
    check_axe(page, appearance_only=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


# every text of ours by two fifths longer, as other languages have them; data stays as it is
LENGTHEN = """
() => {
    const data = "td, pre, code, bdi, textarea, select, script, style, svg, .mono, [data-grid], [hidden], dialog";
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) {
        const text = walker.currentNode;
        if (text.data.trim() && !text.parentElement.closest(data + ", [popover]")) texts.push(text);
    }
    for (const text of texts) {
        const words = text.data.trim();
        text.data = text.data.trimEnd() + " " + words.slice(0, Math.ceil(words.length * 0.4)).trim();
    }
}
"""
# controls that lie over each other, but for a bar that stays in view while the page scrolls below it
OVERLAPS = """
() => {
    const seen = [...document.querySelectorAll("main :is(a, button, select)")].filter(
        it => it.checkVisibility() && !it.closest(
            "[data-grid], table, [popover], dialog, .visually-hidden, .skip, #row-actions"));
    return seen.filter(it => {
        const box = it.getBoundingClientRect();
        const x = box.left + box.width / 2, y = box.top + box.height / 2;
        if (!box.width || x < 0 || y < 0 || x > innerWidth || y > innerHeight) return false;
        const top = document.elementFromPoint(x, y);
        const other = top?.closest("a, button, select");
        for (let at = other; at; at = at.parentElement)
            if (getComputedStyle(at).position === "sticky" && !at.contains(it)) return false;
        return other && other !== it && !it.contains(other) && !other.contains(it);
    }).map(it => it.outerHTML.slice(0, 120));
}
"""
# words that overflow their container
CUT = """
() => [...document.querySelectorAll("button, .button, .badge, label, legend, h1, h2, .tabs a")]
    .filter(it => it.checkVisibility() && !it.closest(".visually-hidden, [hidden], .sidebar, dialog, [popover]"))
    .filter(it => !it.matches(".page-head > nav + .title > h1"))  // the current tab has its words
    .filter(it => it.clientWidth > 0 && it.scrollWidth > it.clientWidth + 1)
    .filter(it => getComputedStyle(it).display !== "inline" && getComputedStyle(it).textOverflow !== "ellipsis")
    .map(it => it.outerHTML.slice(0, 160))
"""


@still
def check_enlarged(page):
    """Check that at 200 % nothing scrolls sideways, and no control lies over another."""
    page.set_viewport_size({"width": 640, "height": 450})  # 1280 × 900 at 200 %
    check_reflow(page)
    assert page.evaluate(OVERLAPS) == []


@still
def check_lengthened(page):
    """G11: with words of 140 % nothing is cut and nothing scrolls sideways."""
    page.evaluate(LENGTHEN)
    check_reflow(page)
    cut = page.evaluate(CUT)
    assert cut == [], cut


@still
def check(page, language="en", *, within="main"):
    """Check the whole page; the parts that all pages share are checked once, with pages of each kind."""
    check_axe(page, within)
    check_reflow(page)
    check_structure(page, language)
    check_focus(page, within)


def confirm_identity(page):
    """Sign the admin in again, as sensitive actions require after ten minutes, and return to the page.

    The session is the page's own; the shared one still needs a confirmation.
    """
    address = urlsplit(page.url)
    asked_by = dict(parse_qsl(address.query)).get("next") if address.path == "/ui/me/again/" else None
    page.goto("about:blank")  # nothing of the page is to be asked for without the session
    page.context.clear_cookies(name="tablero_session")
    page.goto(f"/ui/login/?{urlencode({'next': asked_by or f'{address.path}?{address.query}'})}")
    page.get_by_label("User name").fill(ADMIN)
    page.get_by_label("Password").fill(ADMIN_PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(lambda url: urlsplit(url).path != "/ui/login/")
