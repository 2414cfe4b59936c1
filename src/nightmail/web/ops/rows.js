/**
 * Tables whose rows can be walked through by key: one row can be reached by Tab, j and k go on from there.
 */

import { h } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

/**
 * @template T
 * @param {string[]} heads
 * @param {T[]} items
 * @param {(item: T) => Child[]} cells
 * @param {(item: T) => void} open
 */
export function table(heads, items, cells, open) {
  const body = h("tbody", {}, ...items.map((item, at) => h(
    "tr", {
      tabindex: at ? -1 : 0,
      onclick: () => open(item),
      onkeydown: (event) => {
        if (event.key === "Enter" && event.target === event.currentTarget) open(item);
      },
    },
    ...cells(item).map((cell, column) => h("td", { "data-head": heads[column] }, cell)),
  )));
  return h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), body);
}

/** Move to the next (1) or the previous (-1) row. True if there is a table. @param {Element} within @param {number} step */
export function walk(within, step) {
  const rows = [...within.querySelectorAll("tbody tr")].filter((row) => row instanceof HTMLElement);
  if (!rows.length) return false;
  const at = rows.findIndex((row) => row === document.activeElement);
  const next = rows[at < 0 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1)];
  for (const row of rows) row.tabIndex = row === next ? 0 : -1;
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return true;
}

/** Mark the row that is open. @param {Element} within @param {number} at -1: none */
export function markRow(within, at) {
  within.querySelectorAll("tbody tr").forEach((row, number) => row.setAttribute("aria-selected", String(number === at)));
}

/** Buttons to the next and the previous page. @param {() => void} newer @param {() => void} older */
export function pager(newer, older) {
  const back = h("button", { type: "button", onclick: newer }, "Newer");
  const on = h("button", { type: "button", onclick: older }, "Older");
  const where = h("span", {});
  return {
    element: h("nav", { class: "pager", "aria-label": "Pages" }, back, where, on),
    /** @param {number} page counted from 0 @param {boolean} more */
    set(page, more) {
      back.disabled = page === 0;
      on.disabled = !more;
      where.textContent = `Page ${page + 1}`;
    },
  };
}
