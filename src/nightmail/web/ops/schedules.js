/**
 * Scheduled messages of all accounts: how many are in each state, and a list without content.
 */

import { confirm } from "./dialogs.js";
import { h, pill, refill, time } from "./dom.js";
import { ago, count, moment } from "./format.js";
import { pager, table, walk } from "./rows.js";

/** @import { Api } from "./api.js" */
/** @import { AccountSchedule, Schedule, View } from "./types.js" */

const STATES = ["pending", "processing", "delivered", "cancelled", "failed"];
/** @type {Record<string, string>} */
const KINDS = { pending: "calm", processing: "warn", delivered: "good", cancelled: "calm", failed: "bad" };
const COUNT_TICKS = 8;

/** @implements {View} */
export class SchedulesView {
  name = "schedules";
  title = "Schedules";

  /** @param {Api} api @param {(text: string) => void} report */
  constructor(api, report) {
    this.api = api;
    this.report = report;
    this.state = "";
    this.pages = [""];
    this.next = "";
    this.ticks = 0;
    this.states = h("nav", { class: "chips", "aria-label": "States" });
    this.list = h("div", { class: "list panel" });
    this.pager = pager(() => this.turn(-1), () => this.turn(1));
    this.element = h("div", { class: "schedules" }, this.states, this.list);
  }

  /** @param {string[]} rest the state, if one is chosen */
  show(rest) {
    this.state = STATES.includes(rest[0] ?? "") ? String(rest[0]) : "";
    this.pages = [""];
    this.ticks = 0;
    this.fetchCounts();
    this.fetchPage();
  }

  tick() {
    this.ticks += 1;
    if (this.ticks % COUNT_TICKS === 0) this.fetchCounts();
  }

  async fetchCounts() {
    await this.attempt(async () => {
      const { counts, complete } = await this.api.get("/v1/operator/schedules/counts");
      const total = STATES.reduce((sum, state) => sum + counts[state], 0), more = complete ? "" : "+";
      refill(this.states, this.chip("", "all", count(total) + more),
        ...STATES.map((state) => this.chip(state, state, count(counts[state]) + more)));
    });
  }

  /** @param {string} state @param {string} label @param {string} many */
  chip(state, label, many) {
    return h("a", { href: `#/schedules/${state}`, "aria-current": state === this.state && "true" },
      label, " ", h("b", {}, many));
  }

  async fetchPage() {
    const { state } = this, page = this.pages.at(-1) ?? "";
    await this.attempt(async () => {
      const found = await this.api.get("/v1/operator/schedules", { state, page });
      if (state !== this.state || page !== this.pages.at(-1)) return;
      this.next = found.next_page ?? "";
      this.showPage(found.schedules);
    });
  }

  /** @param {AccountSchedule[]} found */
  showPage(found) {
    const now = Date.now();
    this.pager.set(this.pages.length - 1, Boolean(this.next));
    refill(
      this.list,
      h("p", { class: "note" }, "As of the newest checkpoint, by account. What a message says is not shown."),
      h("div", { class: "scroll" }, found.length ? table(
        ["State", "By", "To", "Due", "Retries", "Message", ""], found,
        (each) => [
          h("span", {}, pill(KINDS[each.schedule.state] ?? "calm", each.schedule.state), note(each.schedule)),
          each.handle || h("code", {}, each.account), h("span", { class: "to" }, target(each.schedule)),
          time(each.schedule.deliver_at, `${moment(each.schedule.deliver_at)} (${ago(each.schedule.deliver_at, now)})`),
          count(each.schedule.retry_count ?? 0), h("code", {}, each.schedule.message_id),
          each.schedule.state === "pending" && each.handle ? h("button", {
            type: "button", class: "small",
            onclick: (event) => {
              event.stopPropagation();
              this.cancel(each);
            },
          }, "Cancel") : "",
        ],
        (each) => {
          // What was sent into a conversation can be followed from there.
          if (each.schedule.state === "delivered" && !each.schedule.target.url) {
            location.hash = `#/trace/${encodeURIComponent(each.schedule.message_id)}`;
          }
        },
      ) : h("p", { class: "empty" }, this.next ? "None on this page." : "No scheduled messages in this state.")),
      this.pager.element,
    );
  }

  /** @param {AccountSchedule} each */
  async cancel(each) {
    const sure = await confirm({
      title: "Cancel this message?", does: "Cancel the message", danger: true,
      text: `${each.schedule.message_id} of ${each.handle} will not be sent, and its content goes.`,
    });
    if (!sure) return;
    await this.attempt(async () => {
      await this.api.remove(`/v1/cancel/${encodeURIComponent(each.schedule.message_id)}`, { account: each.handle });
      this.report("Cancelled. The list shows it after the next checkpoint.");
    });
  }

  /** @param {number} step */
  turn(step) {
    if (step > 0 && this.next) this.pages.push(this.next);
    else if (step < 0 && this.pages.length > 1) this.pages.pop();
    else return;
    this.fetchPage();
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
      default: return false;
    }
  }
}

/** @param {Schedule} schedule */
function target(schedule) {
  const { target } = schedule;
  return target.url ?? (target.group ? `group ${target.group}` : `account ${target.account}`);
}

/** @param {Schedule} schedule */
function note(schedule) {
  const text = schedule.needs_sealing ? "must be sealed again" : schedule.error;
  return text ? h("small", {}, text) : "";
}
