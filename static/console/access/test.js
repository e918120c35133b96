// data-sas-test="ADDRESS": a button that asks for it with nothing but the token in the address, and puts
// the answer into words. The words are in templates: data-answer by code of the service, data-found by whether rows came.
import { on } from "../site/on.js";
import { plainRequest } from "../site/request.js";

const fill = (selector) => document.querySelector(selector)?.content.textContent ?? "";

async function ask(address) {
  const options = { credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer" };
  const headers = { accept: "application/json;odata=nometadata", "x-ms-version": "2019-02-02" };
  const answer = await plainRequest(address, { ...options, headers });
  const text = await answer.text();
  let said = {};
  try {
    said = JSON.parse(text);
  } catch {} // service properties are XML
  const error = said["odata.error"];
  const code = answer.ok ? "200" : (error?.code ?? answer.headers.get("x-ms-error-code") ?? "");
  return { answer, code, message: error?.message?.value.split("\n")[0] ?? "", rows: said.value };
}

function show(result, kind, words, code, message = "") {
  const banner = document.createElement("div");
  banner.className = `banner ${kind}`;
  const inner = document.createElement("div");
  const bold = document.createElement("b");
  bold.textContent = words;
  const exact = document.createElement("code");
  exact.lang = "en";
  exact.textContent = [code, message].filter(Boolean).join(" ");
  inner.append(bold, document.createElement("br"), exact);
  banner.append(inner);
  result.replaceChildren(banner);
}

on("click", "[data-sas-test]", async (button) => {
  if (button.getAttribute("aria-busy")) return;
  const result = document.getElementById("sas-test");
  button.setAttribute("aria-busy", "true");
  try {
    const { answer, code, message, rows } = await ask(button.dataset.sasTest);
    const template = document.querySelector(`template[data-answer="${code}"]`) ?? document.querySelector('template[data-answer=""]');
    const found = answer.ok && rows ? fill(`template[data-found="${Math.min(rows.length, 1)}"]`) : "";
    const words = [template.content.textContent, found].filter(Boolean).join(" ");
    show(result, template.dataset.kind, words, `${answer.status} ${answer.ok ? "OK" : code}`, message);
  } catch {
    show(result, "danger", fill('template[data-answer="offline"]'), "");
  } finally {
    button.removeAttribute("aria-busy");
  }
});
