/**
 * Light, dark, or as the system has it. The choice is kept in this browser; it is no secret.
 */

const KEPT = "nightmail.theme";
const THEMES = ["auto", "light", "dark"];

export function theme() {
  const kept = localStorage.getItem(KEPT) ?? "auto";
  return THEMES.includes(kept) ? kept : "auto";
}

export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

/** The next one of the three. */
export function turnTheme() {
  localStorage.setItem(KEPT, String(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]));
  applyTheme();
}

/** Call when the colours have changed. @param {() => void} then */
export function onColours(then) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", then);
}
