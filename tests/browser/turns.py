"""Pages that take the place of another in one document: tests wait for them, as Playwright waits for documents."""

from functools import wraps

from playwright.sync_api import Error, Keyboard, Locator, Mouse, Page

# a page that takes the place of another in one document has come, with all its scripts
HAS_COME = "html:not([data-turning])"
IS_TURNING = "document.documentElement?.hasAttribute('data-turning') ?? true"
evaluate = Page.evaluate
STILL = set()  # pages that are checked, in which no act leads to another
# methods that may lead to another page
ACTS = {
    Page: ("go_back", "go_forward", "wait_for_url", "wait_for_function"),
    Locator: ("check", "click", "dblclick", "press", "press_sequentially", "select_option", "set_checked", "uncheck"),
    Keyboard: ("press", "type", "up"),
    Mouse: ("click", "dblclick", "up"),
}  # fmt: skip
# methods that read the page once, whichever it is
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
            until_turned(self)
        result = act(self, *arguments, **options)
        if not is_read:
            until_turned(self)
        return result

    setattr(owner, name, acting)


def _know_page(owner):
    """Make keyboards and mice know the page they belong to."""
    name = owner.__name__.lower()
    read = getattr(Page, name).fget

    def get(page):
        it = read(page)
        it.page = page
        return it

    setattr(Page, name, property(get))


def until_turned(it):
    page = it if isinstance(it, Page) else it.page
    if page in STILL or page.is_closed():
        return
    try:
        is_turning = evaluate(page, IS_TURNING)  # a tenth of the time of a wait
    except Error:  # the document goes
        is_turning = True
    if is_turning:
        page.wait_for_selector(HAS_COME, state="attached")


def still(check):
    """Wait before a check of a page, and not for each act and each look of it."""

    @wraps(check)
    def checking(page, *arguments, **options):
        if page in STILL:
            return check(page, *arguments, **options)
        until_turned(page)
        STILL.add(page)
        try:
            return check(page, *arguments, **options)
        finally:
            STILL.discard(page)

    return checking
