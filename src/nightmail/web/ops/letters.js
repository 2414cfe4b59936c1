/**
 * Dead letters: grouped by error, listed by page, looked at, replayed and discarded.
 */

import { confirm } from "./dialogs.js";
import { h, pill, refill, time } from "./dom.js";
import { ago, count, plural } from "./format.js";
import { letterDetail, STATUS } from "./letter_detail.js";
import { markRow, pager, table, walk } from "./rows.js";

/** @import { Api } from "./api.js" */
/** @import { Letter, LetterClass, View } from "./types.js" */

const CLASS_TICKS = 5;

/** @implements {View} */
export class LettersView {
  name = "letters";
  title = "Dead letters";

  /** @param {Api} api @param {(text: string) => void} report */
  constructor(api, report) {
    this.api = api;
    this.report = report;
    this.error = "";
    /** The pages up to the present one, as the server names them. */
    this.pages = [""];
    this.next = "";
    /** @type {Letter[]} */
    this.letters = [];
    /** @type {Letter | null} */
    this.open = null;
    this.ticks = 0;
    this.classes = h("nav", { class: "classes panel", "aria-label": "Errors" });
    this.list = h("div", { class: "list panel" });
    this.detail = h("aside", { class: "detail panel", "aria-label": "Letter", hidden: true });
    this.pager = pager(() => this.turn(-1), () => this.turn(1));
    this.element = h("div", { class: "letters" }, this.classes, this.list, this.detail);
  }

  /** @param {string[]} rest the error, if one is chosen */
  show(rest) {
    this.ticks = 0;
    if (rest[0] !== this.error || !rest[0]) this.close();
    this.error = rest[0] ?? "";
    this.pages = [""];
    this.fetch();
  }

  tick() {
    this.ticks += 1;
    if (this.ticks % CLASS_TICKS === 0) this.fetchClasses();
  }

  async fetch() {
    await this.fetchClasses();
    await this.fetchPage();
  }

  async fetchClasses() {
    await this.attempt(async () => {
      const { classes, total } = await this.api.get("/v1/dead-letters/classes");
      if (!this.error && classes.length) this.error = classes[0].error;
      this.showClasses(classes, total);
    });
  }

  /** @param {LetterClass[]} classes @param {number} total */
  showClasses(classes, total) {
    const most = Math.max(1, ...classes.map((each) => each.count));
    refill(
      this.classes, h("h2", {}, "By error"),
      h("p", { class: "note" }, total ? `${plural(total, "letter")} kept, settled ones included` : "There are none."),
      ...classes.map((each) => {
        const bar = h("span", { class: "share" });
        bar.style.setProperty("--part", String(each.count / most));
        return h("a", {
          href: `#/letters/${encodeURIComponent(each.error)}`, "aria-current": each.error === this.error && "true",
        }, h("span", { class: "what" }, each.error), h("b", {}, count(each.count)), bar);
      }),
    );
  }

  async fetchPage() {
    if (!this.error) {
      refill(this.list, h("p", { class: "empty" }, "No dead letters. What cannot be delivered is set aside here."));
      return;
    }
    const error = this.error, page = this.pages.at(-1) ?? "";
    await this.attempt(async () => {
      const found = await this.api.get("/v1/dead-letters", { error, page, content: "no" });
      if (error !== this.error || page !== this.pages.at(-1)) return;
      this.letters = found.letters;
      this.next = found.next_page ?? "";
      this.showPage();
    });
  }

  showPage() {
    const now = Date.now();
    this.pager.set(this.pages.length - 1, Boolean(this.next));
    refill(
      this.list,
      h("header", {}, h("h2", {}, this.error), h("div", { class: "actions" },
        h("button", { type: "button", onclick: () => this.settleAll("replay") }, "Replay all"),
        h("button", { type: "button", class: "danger", onclick: () => this.settleAll("discard") }, "Discard all"))),
      h("div", { class: "scroll" }, this.letters.length ? table(
        ["Status", "Letter", "From", "To", "Retries", "Died"], this.letters,
        (letter) => [
          pill(STATUS[letter.status] ?? "calm", letter.status), h("code", {}, letter.id),
          h("code", {}, letter.original_message.sender || "–"),
          h("span", { class: "to" }, letter.original_message.recipient || "–"),
          count(letter.retry_count), time(letter.dlq_timestamp, ago(letter.dlq_timestamp, now)),
        ],
        (letter) => this.look(letter.id),
      ) : h("p", { class: "empty" }, "None on this page.")),
      this.pager.element,
    );
    this.mark();
  }

  mark() {
    markRow(this.list, this.letters.findIndex((letter) => letter.id === this.open?.id));
  }

  /** @param {number} step */
  turn(step) {
    if (step > 0 && this.next) this.pages.push(this.next);
    else if (step < 0 && this.pages.length > 1) this.pages.pop();
    else return;
    this.fetchPage();
  }

  /** @param {string} id */
  async look(id) {
    await this.attempt(async () => this.showLetter(await this.api.get(`/v1/dead-letters/${id}`)));
  }

  /** @param {Letter} letter */
  showLetter(letter) {
    this.open = letter;
    this.detail.hidden = false;
    refill(this.detail, letterDetail(letter, {
      close: () => this.close(), replay: () => this.settle("replay"), discard: () => this.settle("discard"),
    }));
    this.letters = this.letters.map((each) => (each.id === letter.id ? letter : each));
    this.mark();
  }

  close() {
    this.open = null;
    this.detail.hidden = true;
    this.mark();
  }

  /** @param {"replay" | "discard"} what */
  async settle(what) {
    const letter = this.open;
    if (!letter || letter.status !== "waiting" || (what === "replay" && !letter.replayable)) return;
    const sure = await confirm(what === "replay"
      ? { title: `Replay ${letter.id}?`, text: "It is delivered, or called, once more. It cannot be delivered twice.", does: "Replay" }
      : { title: `Discard ${letter.id}?`, text: "It is given up for good: its content goes, and its sender is told that it failed.", does: "Discard", danger: true });
    if (!sure) return;
    await this.attempt(async () => {
      this.showLetter(await this.api.post(`/v1/dead-letters/${letter.id}/${what}`));
      this.report(`${letter.id} is ${what === "replay" ? "replayed" : "discarded"}.`);
      this.showPage();
    });
  }

  /** @param {"replay" | "discard"} what */
  async settleAll(what) {
    const error = this.error, does = what === "replay" ? "Replay all" : "Discard all";
    const sure = await confirm({
      title: `${does} of “${error}”?`, does, danger: what === "discard",
      text: what === "replay"
        ? "Every letter of this error that waits and can be replayed is delivered, or called, once more."
        : "Every letter of this error that waits is given up for good, and its sender is told that it failed.",
    });
    if (!sure) return;
    await this.attempt(async () => {
      const { settled } = await this.api.post(`/v1/dead-letters/${what}`, { error });
      this.report(`${plural(settled, "letter")} ${what === "replay" ? "replayed" : "discarded"}.`);
      this.close();
      await this.fetch();
    });
  }

  /** @param {() => Promise<void>} work */
  async attempt(work) {
    try {
      await work();
    } catch (error) {
      this.report(/** @type {Error} */ (error).message);
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    switch (event.key) {
      case "j": return walk(this.list, 1);
      case "k": return walk(this.list, -1);
      case "n": this.turn(1); return true;
      case "p": this.turn(-1); return true;
      case "r": this.settle("replay"); return Boolean(this.open);
      case "x": this.settle("discard"); return Boolean(this.open);
      case "Escape": this.close(); return true;
      default: return false;
    }
  }
}
