// data-submit-on-change: a form of one choice is sent when the choice is made; without scripts it has a button.
import { on } from "./on.js";

on("change", "form[data-submit-on-change]", (form) => form.requestSubmit());
