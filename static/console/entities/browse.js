// What only the page of a table needs.
import "../grid/grid.js";
import "../grid/columns.js";
import "../grid/copy.js";
import "../grid/entrance.js";
import "./menus.js";
import "./range.js";
import "./narrow.js";
import "./results.js";
import "./live.js";
import "./presence.js";
import "../grid/selection.js";
import "../queries/query.js";
import "../queries/code.js";
import "../queries/save.js";
import "../queries/cells.js";
import "../queries/builder.js";
import "./viewer.js";
