/**
 * The life of one message, drawn as a timeline: a lane for the server and for each device.
 */

import { h, pill, refill, svg, time } from "./dom.js";
import { clock, duration, moment, plural } from "./format.js";

/** @import { Api } from "./api.js" */
/** @import { Trace, TraceEvent, View } from "./types.js" */

const ROW = 44, LANE = 22, LANES_MAX = 8, EVENTS_MAX = 300, LONG_MS = 60_000;
const COLOURS = ["server", "blue", "green", "violet", "amber", "red"];
/** @type {Record<string, [string, string]>} */
const WORDS = {
  accepted: ["good", "accepted, and on stable storage"],
  copied: ["calm", "copied to the sender's other devices"],
  blocked: ["calm", "withheld: the recipient blocks the sender"],
  queued: ["calm", "filed for a device that was away"],
  online: ["calm", "filed for a device that was connected"],
  delivered: ["good", "stored on the device, and acknowledged"],
  read: ["good", "its reader has seen it"],
  failed: ["bad", "will not be shown on this device"],
  deleted: ["calm", "the ciphertext is gone from the mailbox"],
};
/** @type {Record<string, string>} */
const STATES = { sent: "calm", delivered: "good", read: "good", failed: "bad" };

/** @implements {View} */
export class TraceView {
  name = "trace";
  title = "Trace";

  /** @param {Api} api */
  constructor(api) {
    this.api = api;
    this.field = h("input", {
      type: "search", id: "trace-id", autocomplete: "off", spellcheck: "false", maxlength: 120,
      placeholder: "d7f3a2b1:1706745600000:00042:x9k2", "aria-label": "Message id",
    });
    this.result = h("div", { class: "result", "aria-live": "polite" });
    this.element = h(
      "div", { class: "trace" },
      h("form", {
        class: "panel ask", onsubmit: (event) => {
          event.preventDefault();
          location.hash = `#/trace/${encodeURIComponent(this.field.value.trim())}`;
        },
      }, h("label", { for: "trace-id" }, "Message"), this.field, h("button", { type: "submit", class: "primary" }, "Trace")),
      this.result,
    );
  }

  /** @param {string[]} rest the message's id */
  show(rest) {
    const wanted = rest[0] ?? "";
    this.field.value = wanted;
    if (wanted) this.fetch(wanted);
    else {
      refill(this.result, h("p", { class: "empty" }, "Which message? Its id is in receipts, in `nightmail history --json`, and in dead letters."));
      this.field.focus();
    }
  }

  /** @param {string} wanted */
  async fetch(wanted) {
    refill(this.result, h("p", { class: "empty" }, "Looking …"));
    try {
      const trace = await this.api.get(`/v1/trace/${encodeURIComponent(wanted)}`);
      if (this.field.value.trim() === wanted) refill(this.result, summary(trace), timeline(trace, EVENTS_MAX));
    } catch (error) {
      refill(this.result, h("p", { class: "empty bad", role: "alert" }, /** @type {Error} */ (error).message));
    }
  }

  tick() {}

  key() {
    return false;
  }
}

/** @param {Trace} trace */
function summary(trace) {
  const first = trace.events[0], last = trace.events.at(-1), devices = Object.entries(trace.states);
  return h(
    "section", { class: "panel summary" },
    h("h2", {}, trace.message_id),
    h("p", { class: "note" }, first && last
      ? `Accepted ${moment(first.at)}; ${plural(trace.events.length, "event")} on ${plural(devices.length, "device")} within ${duration(last.at - first.at)}.`
      : "Nothing is known of it."),
    h("ul", { class: "states" }, ...devices.slice(0, 50).map(([device, state]) =>
      h("li", {}, h("code", {}, device), " ", pill(STATES[state] ?? "calm", state)))),
  );
}

/** @param {Trace} trace @param {number} most @returns {HTMLElement} */
function timeline(trace, most) {
  const events = trace.events.slice(0, most), lanes = laneOf(events);
  const whole = h(
    "section", { class: "panel timeline", "aria-label": "Timeline" },
    h("div", { class: "lanes" }, graph(events, lanes), h("ol", {}, ...events.map((event, at) => entry(event, events[at - 1])))),
  );
  if (trace.events.length > most) {
    whole.append(h("button", {
      type: "button", onclick: () => whole.replaceWith(timeline(trace, most * 10)),
    }, `Show more of ${trace.events.length}`));
  }
  return whole;
}

/** Which lane each device has; those beyond the last one share it. @param {TraceEvent[]} events */
function laneOf(events) {
  /** @type {Map<string, number>} */
  const lanes = new Map([["", 0]]);
  for (const { device } of events) if (!lanes.has(device)) lanes.set(device, Math.min(lanes.size, LANES_MAX - 1));
  return lanes;
}

/** @param {TraceEvent} event @param {TraceEvent | undefined} before */
function entry(event, before) {
  const [word = "", detail = ""] = event.what.split(":");
  const [kind, means] = WORDS[word] ?? ["calm", ""];
  const wait = before ? event.at - before.at : 0;
  return h(
    "li", { class: wait >= LONG_MS && "late" },
    h("div", {}, pill(kind, word), detail && h("span", { class: "of" }, word === "failed" ? detail : `number ${detail}`),
      h("code", {}, event.device || "server")),
    h("div", { class: "note" }, time(event.at, clock(event.at)), before ? ` +${duration(wait)}` : "", means && ` · ${means}`),
  );
}

/** @param {TraceEvent[]} events @param {Map<string, number>} lanes */
function graph(events, lanes) {
  const used = Math.max(0, ...lanes.values()) + 1, width = used * LANE + 6;
  const lines = [], dots = [];
  for (let lane = 0; lane < used; lane += 1) {
    const rows = events.flatMap((event, at) => (lanes.get(event.device) === lane ? [at] : []));
    const first = rows[0], last = rows.at(-1);
    if (first === undefined || last === undefined) continue;
    const [x, top, name] = [place(lane), middle(first), colourOf(lane)];
    if (lane) {
      const from = Math.max(0, first - 1);
      lines.push(svg("path", {
        class: `branch ${name}`, d: `M ${place(0)} ${middle(0)} V ${middle(from)} C ${place(0)} ${top}, ${x} ${middle(from)}, ${x} ${top}`,
      }));
    }
    lines.push(svg("path", { class: name, d: `M ${x} ${top} V ${middle(last)}` }));
    for (const row of rows) dots.push(svg("circle", { class: name, cx: x, cy: middle(row), r: 4.5 }));
  }
  const height = events.length * ROW;
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...lines, ...dots);
}

/** @param {number} lane */
function place(lane) {
  return lane * LANE + 12;
}

/** @param {number} row */
function middle(row) {
  return row * ROW + 15;
}

/** @param {number} lane */
function colourOf(lane) {
  return lane ? String(COLOURS[1 + ((lane - 1) % (COLOURS.length - 1))]) : "server";
}
