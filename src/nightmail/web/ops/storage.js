/**
 * The health of the data folder: space, log, rows, checkpoints, the last look at all of it.
 */

import { h, pill, refill, time } from "./dom.js";
import { ago, bytes, count, duration, moment } from "./format.js";
import { facts } from "./letter_detail.js";

/** @import { Api } from "./api.js" */
/** @import { Storage, View } from "./types.js" */
/** @typedef {import("./dom.js").Child} Child */

const LATE_MS = 60_000;
/** A checkpoint comes every ten seconds where something changes. */
const LITTLE = 0.1;

/** @implements {View} */
export class StorageView {
  name = "storage";
  title = "Storage";

  /** @param {Api} api @param {(text: string) => void} report */
  constructor(api, report) {
    this.api = api;
    this.report = report;
    this.ticks = 0;
    this.element = h("div", { class: "storage" });
  }

  show() {
    this.fetch();
  }

  tick() {
    this.ticks += 1;
    if (this.ticks % 2 === 0) this.fetch();
  }

  async fetch() {
    try {
      this.tell(await this.api.get("/v1/operator/storage"));
    } catch (error) {
      this.report(/** @type {Error} */ (error).message);
    }
  }

  /** @param {Storage} found */
  tell(found) {
    refill(this.element, disk(found), log(found), rows(found), checkpoint(found), check(found), clock(found));
  }

  key() {
    return false;
  }
}

/** @param {string} title @param {HTMLElement} state @param {[string, Child][]} pairs @param {...Child} more */
function panel(title, state, pairs, ...more) {
  return h("section", { class: "panel", "aria-label": title }, h("header", {}, h("h2", {}, title), state), ...more, h("dl", {}, ...facts(pairs)));
}

/** @param {Storage} found */
function disk(found) {
  const used = 1 - found.disk_free_bytes / Math.max(1, found.disk_total_bytes), bar = h("div", { class: "meter" }, h("span", {}));
  bar.style.setProperty("--part", String(used));
  const state = found.tight ? pill("bad", "full") : used > 1 - LITTLE ? pill("warn", "little is left") : pill("good", "enough");
  return panel("Disk", state, [
    ["Free", `${bytes(found.disk_free_bytes)} of ${bytes(found.disk_total_bytes)}`], ["Why it is full", found.why_tight],
    ["Folder", h("code", {}, found.folder)],
  ], bar);
}

/** @param {Storage} found */
function log(found) {
  return panel("Log", found.commits_failed ? pill("warn", "writes have failed") : pill("good", "writing"), [
    ["Segments", `${count(found.log_segments)}, ${bytes(found.log_bytes)}`], ["Newest record", count(found.offset)],
    ["Failed batches", count(found.commits_failed)], ["Poisoned records", count(found.records_poisoned)],
  ]);
}

/** @param {Storage} found */
function rows(found) {
  return panel("Rows", found.troubles ? pill("warn", "storage has kept failing") : pill("good", "sound"), [
    ["On disk", bytes(found.rows_bytes)], ["In memory", `${count(found.rows_in_memory)} rows`],
    ["Times that storage kept failing", count(found.troubles)], ["Fold", String(found.fold)],
  ]);
}

/** @param {Storage} found */
function checkpoint(found) {
  const now = Date.now(), behind = found.offset - found.pointer;
  const late = behind > 0 && found.checkpoint_at > 0 && now - found.checkpoint_at > LATE_MS;
  return panel("Checkpoint", late ? pill("warn", "late") : pill("good", "in time"), [
    ["Newest", found.checkpoint_at ? time(found.checkpoint_at, ago(found.checkpoint_at, now)) : "none since the start"],
    ["It took", duration(found.checkpoint_ms)], ["Taken", `${count(found.checkpoints)} since the start`],
    ["Only in the log", `${count(behind)} records, ${count(found.unsaved_rows)} rows and lines, ${bytes(found.unsaved_bytes)}`],
  ]);
}

/** @param {Storage} found */
function check(found) {
  return panel("Folder check", pill("good", "passed"), [
    ["Last", time(found.checked_at, `${moment(found.checked_at)}, before this start`)],
    ["It took", duration(found.checked_ms)],
    ["What was looked at", "every page, row and checksum, and the log behind the checkpoint"],
  ]);
}

/** @param {Storage} found */
function clock(found) {
  const { state, ahead_ms: ahead } = found.clock;
  return panel("Clock", state === "believed" ? pill("good", "believed") : pill("bad", state), [
    ["Machine's clock", ahead === 0 ? "is the server's time" : `${duration(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"} the server's time`],
  ]);
}
