"""Pages used again by one test after the other: Chromium takes longer to make one than to show most of ours."""

from collections import defaultdict
from functools import wraps

from playwright.sync_api import Locator, Page

from tests.browser.page import PATIENCE

# what a page can change later; everything else is of the context, for good
MEDIA = {
    "color_scheme": "light",
    "reduced_motion": "no-preference",
    "forced_colors": "none",
    "contrast": "no-preference",
}
# a toast leaves after ten seconds, in which a test on a busy machine may not get to its button
STAYING_TOASTS = """
const timer = setTimeout;
window.setTimeout = (act, wait, ...given) => timer(act, wait === 10_000 ? 120_000 : wait, ...given);
"""
BETWEEN = "/ui/healthz"  # of the same origin, or Chromium makes a new process; and with nothing in it


# a page that takes the place of another in one document has come, with all its scripts
HAS_COME = "html:not([data-turning])"


def _turning(act, page_of):
    """The same, and wait for the page that it led to: Playwright itself only waits for documents."""

    @wraps(act)
    def acting(it, *arguments, **options):
        result = act(it, *arguments, **options)
        until_turned(page_of(it))
        return result

    return acting


def until_turned(page):
    if not page.is_closed():
        page.wait_for_selector(HAS_COME, state="attached")


def wait_after_acts():
    """Let each click, key and address that a test waits for wait for the page that it leads to."""
    for name in ("click", "press"):
        setattr(Locator, name, _turning(getattr(Locator, name), lambda it: it.page))
    for name in ("wait_for_url", "go_back", "go_forward"):
        setattr(Page, name, _turning(getattr(Page, name), lambda it: it))


class Pool:
    def __init__(self, chromium):
        self._chromium = chromium
        self._idle = defaultdict(list)
        self._kinds = {}

    def take(self, *, fresh=False, width=1280, height=900, state=None, cookies=(), **options):
        """A page that knows nothing of the tests before but the files it loaded, or not even these when `fresh`."""
        media = {name: options.pop(name, usual) for name, usual in MEDIA.items()}
        kind = tuple(sorted((name, repr(value)) for name, value in options.items()))
        kept = None if fresh else self._idle[kind]
        page = kept.pop() if kept else self._make(options, fresh)
        self._kinds[page] = None if fresh else kind
        page.context.add_cookies([*(state["cookies"] if state else ()), *cookies])
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media="null", **media)
        return page

    def _make(self, options, fresh):
        context = self._chromium.new_context(**options)
        context.set_default_timeout(PATIENCE)
        if not fresh:  # which may have a clock of its own
            context.add_init_script(STAYING_TOASTS)
        page = context.new_page()
        press = page.keyboard.press
        page.keyboard.press = lambda *arguments, **options: (press(*arguments, **options), until_turned(page))
        return page

    def give_back(self, page):
        kind = self._kinds.pop(page)
        if kind is None or page.is_closed():
            page.context.close()
            return
        _forget(page)
        self._idle[kind].append(page)


def _forget(page):
    for other in page.context.pages:
        if other != page:
            other.close()
    page.unroute_all(behavior="ignoreErrors")
    page.goto(BETWEEN)
    page.mouse.move(-1, -1)  # over nothing
    page.evaluate("sessionStorage.clear(); localStorage.clear()")
    page.context.clear_cookies()
