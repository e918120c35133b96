// What was used last in the palette, by ids that name no table and no account; signing out clears it.
const PLACE = "palette";
const MOST = 20;

export function recent() {
  try {
    return JSON.parse(localStorage.getItem(PLACE) ?? "[]");
  } catch {
    return []; // storage is off, or not ours
  }
}

export function remember(id) {
  try {
    localStorage.setItem(PLACE, JSON.stringify([id, ...recent().filter((other) => other !== id)].slice(0, MOST)));
  } catch {
    // without it, nothing comes first
  }
}
