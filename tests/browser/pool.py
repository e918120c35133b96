"""Pages used again by one test after the other: Chromium takes longer to make one than to show most of ours."""

from collections import defaultdict
from functools import wraps

from playwright.sync_api import Error, Keyboard, Locator, Mouse, Page

from tests.browser.page import patient

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
IS_TURNING = "document.documentElement?.hasAttribute('data-turning') ?? true"
evaluate = Page.evaluate
# what may lead to another page
ACTS = {
    Page: ("go_back", "go_forward", "wait_for_url", "wait_for_function"),
    Locator: ("check", "click", "dblclick", "press", "press_sequentially", "select_option", "set_checked", "uncheck"),
    Keyboard: ("press", "type", "up"),
    Mouse: ("click", "dblclick", "up"),
}  # fmt: skip
# what looks at the page once, whichever it is
READS = {
    Page: ("content", "evaluate", "reload", "screenshot", "title"),
    Locator: (
        "all", "all_inner_texts", "aria_snapshot", "bounding_box", "count", "evaluate", "evaluate_all", "focus",
        "get_attribute", "hover", "inner_text", "input_value", "is_visible", "screenshot", "text_content",
    ),
}  # fmt: skip


def wait_for_turns():
    """Let tests meet no page that is about to go; Playwright itself only waits for pages that are documents."""
    for owner in (Keyboard, Mouse):
        _know_page(owner)
    for owner, names in ACTS.items():
        for name in names:
            _wrap(owner, name, is_read=False)
    for owner, names in READS.items():
        for name in names:
            _wrap(owner, name, is_read=True)


def _wrap(owner, name, *, is_read):
    act = getattr(owner, name)

    @wraps(act)
    def acting(self, *arguments, **options):
        if is_read:
            _until_turned(self)
        result = act(self, *arguments, **options)
        if not is_read:
            _until_turned(self)
        return result

    setattr(owner, name, acting)


def _know_page(owner):
    """Keyboards and mice are of a page, and do not say of which."""
    name = owner.__name__.lower()
    read = getattr(Page, name).fget

    def get(page):
        it = read(page)
        it.page = page
        return it

    setattr(Page, name, property(get))


def _until_turned(it):
    page = it if isinstance(it, Page) else it.page
    if page.is_closed():
        return
    try:
        is_turning = evaluate(page, IS_TURNING)  # a tenth of what a wait costs
    except Error:  # the document goes
        is_turning = True
    if is_turning:
        page.wait_for_selector(HAS_COME, state="attached")


class Pool:
    def __init__(self, chromium):
        self._chromium = chromium
        self._idle = defaultdict(list)
        self._kinds = {}

    def take(self, *, fresh=False, width=1280, height=900, state=None, cookies=(), permissions=(), **options):
        """A page that knows nothing of the tests before but the files it loaded, or not even these when `fresh`."""
        media = {name: options.pop(name, usual) for name, usual in MEDIA.items()}
        kind = tuple(sorted((name, repr(value)) for name, value in options.items()))
        kept = None if fresh else self._idle[kind]
        page = kept.pop() if kept else self._make(options, fresh)
        self._kinds[page] = None if fresh else kind
        page.context.add_cookies([*(state["cookies"] if state else ()), *cookies])
        page.context.clear_permissions()
        page.context.grant_permissions([*permissions])
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media="null", **media)
        return page

    def _make(self, options, fresh):
        context = patient(self._chromium.new_context(**options))
        if not fresh:  # which may have a clock of its own
            context.add_init_script(STAYING_TOASTS)
        return context.new_page()

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
