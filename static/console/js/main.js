// The console's behaviours, one module each, all by delegation: parts that htmx swaps in need no wiring.
import "./appearance.js";
import "./copy.js";
import "./dialog.js";
import "./filter.js";
import "./rail.js";
import "./search.js";
import "./selection.js";
import "./shortcuts.js";
import "./submit.js";
import "./toast.js";
