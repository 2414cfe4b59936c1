/**
 * The node at a glance: figures of this moment, alerts, and charts over up to a week.
 */

import { Problem } from "./api.js";
import { Chart } from "./charts.js";
import { h, pill, refill, time } from "./dom.js";
import { ago, bytes, count, milliseconds, moment, percent, rate } from "./format.js";

/** @import { Api } from "./api.js" */
/** @import { Live } from "./live.js" */
/** @import { Alert, History, View } from "./types.js" */

const SPANS = [["15m", "15 min"], ["6h", "6 h"], ["24h", "24 h"], ["7d", "7 days"]];
const CALM_S = 5;
/** Seconds over which a tile is averaged. */
const LATENCY_S = 60;
const SPAN_TICKS = 15;
const ALERT_TICKS = 5;

/** @implements {View} */
export class OverviewView {
  name = "overview";
  title = "Overview";

  /** @param {Api} api @param {Live} live @param {(text: string) => void} report */
  constructor(api, live, report) {
    this.api = api;
    this.live = live;
    this.report = report;
    this.span = "15m";
    this.ticks = 0;
    this.tiles = tiles();
    this.charts = charts();
    this.begins = h("p", { class: "note" });
    this.alerts = h("div", { class: "alerts" });
    this.spans = h("div", { class: "spans", role: "group", "aria-label": "Time shown" }, ...SPANS.map(([name, label]) =>
      h("button", { type: "button", "data-span": name, onclick: () => this.choose(String(name)) }, label)));
    this.element = h(
      "div", { class: "overview" },
      this.alerts,
      h("div", { class: "tiles" }, ...this.tiles.map((tile) => tile.element)),
      h("div", { class: "bar" }, this.begins, this.spans),
      h("div", { class: "charts" }, ...this.charts.map((chart) => chart.element)),
    );
    this.mark();
  }

  /** @param {string[]} rest */
  show(rest) {
    if (rest[0] && SPANS.some(([name]) => name === rest[0])) this.choose(String(rest[0]));
    this.ticks = 0;
    this.tick();
  }

  /** @param {string} span */
  choose(span) {
    this.span = span;
    this.mark();
    this.fetchSpan();
  }

  mark() {
    for (const button of this.spans.children) {
      button.setAttribute("aria-pressed", String(button.getAttribute("data-span") === this.span));
    }
  }

  tick() {
    const { live } = this, overview = live.overview;
    if (!overview) return;
    for (const tile of this.tiles) tile.set(live);
    const lead = live.restarted ? "The server started again" : "History since the start";
    refill(this.begins, `${lead}, `, time(overview.started_at, `${moment(overview.started_at)}`),
      ` (${ago(overview.started_at, overview.at)}). It is held in memory.`);
    if (this.span === "15m") this.paint(live.history);
    else if (this.ticks % SPAN_TICKS === 0) this.fetchSpan();
    if (this.ticks % ALERT_TICKS === 0) this.fetchAlerts();
    this.ticks += 1;
  }

  async fetchSpan() {
    const span = this.span;
    if (span === "15m") {
      this.paint(this.live.history);
      return;
    }
    try {
      const history = await this.api.get("/v1/operator/history", { span });
      if (span === this.span) this.paint(history);
    } catch (error) {
      this.report(/** @type {Error} */ (error).message);
    }
  }

  /** @param {History} history */
  paint(history) {
    for (const chart of this.charts) chart.set(history);
  }

  /** The colours of the page have changed. */
  redraw() {
    for (const chart of this.charts) chart.draw();
  }

  async fetchAlerts() {
    try {
      const found = await this.api.get("/v1/operator/alerts");
      this.tell(found.alerts);
    } catch (error) {
      this.report(/** @type {Problem} */ (error).message);
    }
  }

  /** Those that fire, and those that are about to. @param {Alert[]} alerts */
  tell(alerts) {
    const now = this.live.overview?.at ?? Date.now();
    const raised = alerts.filter((alert) => alert.state !== "ok").sort((one, other) => urgency(one) - urgency(other));
    if (!raised.length) {
      refill(this.alerts, h("p", { class: "quiet" }, pill("good", "No alerts"), `${alerts.length} are watched`));
      return;
    }
    refill(this.alerts, h("ul", {}, ...raised.map((alert) => h(
      "li", { class: kind(alert) },
      pill(kind(alert), alert.state === "firing" ? alert.severity : "pending"),
      h("b", {}, alert.name), h("span", { class: "text" }, alert.text),
      h("span", { class: "since" }, `${rate(alert.value)} ${alert.compares} ${rate(alert.threshold)}`,
        alert.since ? h("span", {}, ", since ", time(alert.since, ago(alert.since, now))) : ""),
    ))));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = SPANS.findIndex(([name]) => name === this.span);
    const step = event.key === "[" ? -1 : event.key === "]" ? 1 : 0;
    const [name] = SPANS[at + step] ?? [];
    if (!step || !name) return false;
    this.choose(name);
    return true;
  }
}

/** @param {Alert} alert */
function urgency(alert) {
  return (alert.state === "firing" ? 0 : 3) + ["critical", "warning", "info"].indexOf(alert.severity);
}

/** @param {Alert} alert */
function kind(alert) {
  if (alert.state === "pending" || alert.severity === "info") return "calm";
  return alert.severity === "critical" ? "bad" : "warn";
}

/** @param {string} label @param {(live: Live) => [string, string]} say a value, and what else to know */
function tile(label, say) {
  const value = h("b", {}, "–"), more = h("small", {});
  return {
    element: h("div", { class: "tile panel" }, h("span", {}, label), value, more),
    /** @param {Live} live */
    set(live) {
      const [main, other] = say(live);
      refill(value, main);
      refill(more, other);
    },
  };
}

function tiles() {
  return [
    tile("Messages accepted", (live) => [
      `${rate(live.mean("messages_per_s", CALM_S))} /s`, `${count(live.overview?.totals.accepted)} since the start`]),
    tile("Entries delivered", (live) => [
      `${rate(live.mean("delivered_per_s", CALM_S))} /s`, `${count(live.overview?.totals.failed)} failed`]),
    tile("Accept to device ack", (live) => [
      milliseconds(live.recent("latency_p50_ms", LATENCY_S)),
      `p99 ${milliseconds(live.recent("latency_p99_ms", LATENCY_S))}`]),
    tile("Devices online", (live) => [
      count(live.now("devices_online")), `${count(live.now("connections"))} connections`]),
    tile("Deepest mailbox", (live) => [
      count(live.now("mailbox_depth")), "waiting, of those sampled"]),
    tile("Dead letters", (live) => [count(live.overview?.dead_letters), "that nobody has settled"]),
  ];
}

function charts() {
  return [
    new Chart("Throughput, per second", [
      { column: "messages_per_s", label: "accepted", colour: "--blue", area: true },
      { column: "delivered_per_s", label: "delivered", colour: "--green" },
      { column: "failed_per_s", label: "failed", colour: "--red" },
    ], rate),
    new Chart("Latency, accept to device ack", [
      { column: "latency_p99_ms", label: "p99", colour: "--violet", area: true },
      { column: "latency_p50_ms", label: "p50", colour: "--blue" },
    ], milliseconds),
    new Chart("Connections", [
      { column: "connections", label: "connections", colour: "--amber" },
      { column: "devices_online", label: "devices online", colour: "--green", area: true },
    ], count),
    new Chart("Waiting", [
      { column: "mailbox_depth", label: "deepest mailbox", colour: "--blue", area: true },
      { column: "dead_letters", label: "dead letters", colour: "--red" },
    ], count),
    new Chart("Disk and event loop, p99", [
      { column: "commit_p99_ms", label: "commit", colour: "--amber", area: true },
      { column: "lag_p99_ms", label: "loop lag", colour: "--violet" },
    ], milliseconds),
    new Chart("CPU, of one core", [
      { column: "cpu_percent", label: "process", colour: "--green", area: true },
    ], percent),
    new Chart("Traffic of devices, per second", [
      { column: "bytes_in_per_s", label: "in", colour: "--blue" },
      { column: "bytes_out_per_s", label: "out", colour: "--green", area: true },
    ], bytes),
    new Chart("Memory", [
      { column: "memory_bytes", label: "resident", colour: "--violet", area: true },
    ], bytes),
  ];
}
