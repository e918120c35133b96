"""The console: pages of Django with htmx, a folder for each subject.

Rules of pages:

- A view is a function. A decorator of site/access.py checks the role; a Django form reads the input, and an invalid one
  is answered with 422.
- A page extends ``base.html``. Its block ``part`` is what htmx replaces: ``render_page`` answers with one or the other.
  Only what several templates include is a template of its own, with a leading underscore. It works without JavaScript.
- A subject has one style sheet, ``static/console/NAME/NAME.css``, or one for each of its large pages.
- Keys are bound in ``static/console/site/commands.js``, never by a listener of their own: a test reads its list for
  keys that mean two things.
- There is no inline script or style, because the Content Security Policy forbids them.
- Pages of an account take each other's place in one document, so a module runs once and sees many pages: it listens on
  the document (``on``, ``onSwap`` in ``static/console/site/on.js``), looks for elements when it needs them, and what it
  sets up for one page it sets up in ``onPage(act)``, whose signal ends with that page, as requests do. A link to what
  is no page (a file) has ``download`` or ``data-native``. The browser itself loads a page that failed or is of another
  version.
- Modules that a page imports are joined into its file (site/scripts.py).
- Texts are marked for translation; ``manage.py messages`` lists what has to be translated.
"""
