"""Pages used again by one test after the other: Chromium takes longer to make one than to show most of ours."""

from collections import defaultdict

from tests.browser.page import patient

# options that a page can change later; all others belong to the context
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
BETWEEN = "/ui/healthz"  # an empty page of the same origin, because Chromium would start a new process for another one


class Pool:
    def __init__(self, chromium):
        self._chromium = chromium
        self._idle = defaultdict(list)
        self._kinds = {}

    def take(self, *, fresh=False, width=1280, height=900, state=None, cookies=(), permissions=(), **options):
        """Return a page without traces of earlier tests except cached files, or without these too if `fresh`."""
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
        if not fresh:  # a fresh page may have a clock of its own
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
