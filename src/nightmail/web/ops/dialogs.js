/**
 * What interrupts: a question before something that cannot be undone, and the list of keys.
 */

import { h } from "./dom.js";

/**
 * Ask before something is done. Enter on the first button, and Escape, mean no.
 * @param {{title: string, text: string, does: string, danger?: boolean}} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, does, danger = false }) {
  const before = document.activeElement;
  return new Promise((resolve) => {
    const dialog = h(
      "dialog", { "aria-labelledby": "dialog-title" },
      h("h2", { id: "dialog-title" }, title), h("p", {}, text),
      h("div", { class: "actions" },
        h("button", { type: "button", autofocus: true, onclick: () => dialog.close("no") }, "Cancel"),
        h("button", { type: "button", class: danger ? "danger" : "primary", onclick: () => dialog.close("yes") }, does)),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before instanceof HTMLElement) before.focus();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const KEYS = [
  ["1 – 5", "Overview, dead letters, schedules, trace, storage"],
  ["/", "Go to the field of this view"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["r  x", "Replay or discard the open letter"],
  ["n  p", "Older and newer page"],
  ["[  ]", "Shorter and longer time in the charts"],
  ["t", "Light, dark, or as the system has it"],
  ["Esc", "Close what is open"],
  ["?", "This list"],
];

export function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = h(
    "dialog", { class: "keys", "aria-labelledby": "dialog-title", onclose: () => dialog.remove() },
    h("h2", { id: "dialog-title" }, "Keys"),
    h("dl", {}, ...KEYS.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("div", { class: "actions" },
      h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}
