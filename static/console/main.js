// The console's behaviours, one module each, all by delegation: parts that htmx swaps in need no wiring.
import "./site/appearance.js";
import "./site/copy.js";
import "./site/dialog.js";
import "./site/drafts.js";
import "./site/filter.js";
import "./site/navigation.js";
import "./site/page_form.js";
import "./site/sidebar.js";
import "./home/search.js";
import "./notices/bell.js";
import "./site/selection.js";
import "./site/shortcuts.js";
import "./site/time_zone.js";
import "./site/toast.js";
import "./site/trouble.js";

// htmx does so in a task of its own, which may come after the page was used: what was typed before it would ask for nothing
window.htmx?.process(document.body);
