// The behaviours of a page of entities, beside those of every page.
import "./entities/browse.js";
import "./entities/cell.js";
import "./entities/drawer.js";
import "./entities/read_only.js";
import "./history/entity.js";
import "./transfer/upload.js";
