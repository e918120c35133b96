// What only the page of a table needs.
import "./grid.js";
import "./grid_columns.js";
import "./grid_copy.js";
import "./grid_menus.js";
import "./grid_results.js";
import "./grid_selection.js";
import "./query.js";
import "./query_code.js";
import "./query_grid.js";
import "./query_rows.js";
import "./viewer.js";
