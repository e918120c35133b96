// A grid that its reader may not change: who tries to, learns once which role it takes, and who has it.
import { bind } from "../site/commands.js";
import { on, onPage } from "../site/on.js";
import { get } from "../site/request.js";
import { addressOf } from "./cell_row.js";

let isTold; // on this page
onPage(() => (isTold = false));

function readOnlyCell({ target }) {
  return !isTold && target.matches?.("[data-grid][data-refused] td[data-property]") && target;
}

/** The server refuses the editor, and the refusal is shown as everywhere. */
function tell(cell, { key } = {}) {
  if (key && "gG?/".includes(key)) return false; // they begin a shortcut
  isTold = true;
  get(addressOf(cell));
}

bind(readOnlyCell, { "F2 Delete Character": tell }, -1);
on("dblclick", "[data-grid][data-refused] td[data-property]", (cell) => void (isTold || tell(cell)));
