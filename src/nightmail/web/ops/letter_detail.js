/**
 * One dead letter, with all that is known of it. What is sealed stays sealed: only its size is shown.
 */

import { h, pill, time } from "./dom.js";
import { bytes, count, moment } from "./format.js";

/** @import { Letter } from "./types.js" */
/** @typedef {import("./dom.js").Child} Child */

const TEXT_MAX = 4_000;

/** @type {Record<string, string>} */
export const STATUS = { waiting: "warn", replayed: "good", delivered: "good", discarded: "calm", expired: "calm" };

/**
 * @param {Letter} letter
 * @param {{close: () => void, replay: () => void, discard: () => void}} actions
 */
export function letterDetail(letter, actions) {
  const first = letter.original_message, waits = letter.status === "waiting";
  return h(
    "div", {},
    h("header", {}, h("h2", {}, `Letter ${letter.id}`),
      h("button", { type: "button", class: "plain", "aria-label": "Close", onclick: actions.close }, "×")),
    h("p", { class: "status" }, pill(STATUS[letter.status] ?? "calm", letter.status),
      letter.settled_at ? h("span", {}, "settled ", at(letter.settled_at)) : ""),
    h("p", { class: "why" }, letter.error),
    h("dl", {}, ...facts([
      ["Error class", letter.error_class],
      ["Message", first.msg_id && h("a", { href: `#/trace/${encodeURIComponent(first.msg_id)}` }, first.msg_id)],
      ["From", first.sender], ["To", first.recipient],
      ["Accepted", first.timestamp && at(first.timestamp)],
      ["First attempt", at(letter.first_attempt)], ["Last attempt", at(letter.last_attempt)],
      ["Retries", count(letter.retry_count)], ["Died", at(letter.dlq_timestamp)],
      ["Source", `${letter.source_topic}, partition ${letter.source_partition}, offset ${letter.source_offset}`],
    ])),
    ...content(letter),
    h("div", { class: "actions" },
      h("button", { type: "button", class: "primary", disabled: !(waits && letter.replayable), onclick: actions.replay }, "Replay"),
      h("button", { type: "button", class: "danger", disabled: !waits, onclick: actions.discard }, "Discard")),
  );
}

/** @param {[string, Child][]} pairs */
export function facts(pairs) {
  return pairs.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
}

/** @param {number} ms */
function at(ms) {
  return time(ms, moment(ms));
}

/** @param {Letter} letter */
function content(letter) {
  const pieces = letter.original_message.content.map(unpacked);
  if (!pieces.length) return [];
  if (!/^https?:/.test(letter.original_message.recipient)) {
    const sizes = pieces.map((piece) => bytes(piece.length)).join(", ");
    return [h("h3", {}, "Content"), h("p", { class: "note" }, `Sealed: ${sizes}. This server cannot open it.`)];
  }
  const text = new TextDecoder().decode(pieces[0]);
  const cut = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} …` : text;
  return [h("h3", {}, "What the webhook was to be told"), h("pre", {}, cut)];
}

/** @param {string} base64 */
function unpacked(base64) {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
