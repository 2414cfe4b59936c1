/**
 * Charts over time, by uPlot, in the colours of the page.
 */

import uPlot from "./vendor/uPlot.esm.js";
import { h, refill } from "./dom.js";
import { clock, moment } from "./format.js";

/** @import { History } from "./types.js" */

/**
 * @typedef {object} Line
 * @property {string} column
 * @property {string} label
 * @property {string} colour a custom property of the page's style
 * @property {boolean} [area] filled below
 */

const HEIGHT = 168;
const DAY_S = 24 * 60 * 60;
const SHORTEST_S = 120;
const SYNC = uPlot.sync("ops");

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @param {number} seconds @param {number} span */
function tick(seconds, span) {
  const at = new Date(seconds * 1000);
  if (span > 2 * DAY_S) return at.toLocaleDateString("en-GB", { weekday: "short", day: "numeric" });
  return at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(span < 300 && { second: "2-digit" }) });
}

export class Chart {
  /** @param {string} title @param {Line[]} lines @param {(value: number | null | undefined) => string} format */
  constructor(title, lines, format) {
    this.title = title;
    this.lines = lines;
    this.format = format;
    this.legend = h("div", { class: "legend" });
    this.place = h("div", { class: "plot" });
    this.element = h(
      "section", { class: "panel chart", "aria-label": title },
      h("header", {}, h("h2", {}, title), this.legend), this.place,
    );
    /** @type {uPlot.AlignedData} */
    this.data = [[]];
    /** @type {uPlot | null} */
    this.plot = null;
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.place);
  }

  /** @param {History} history */
  set(history) {
    const columns = this.lines.map((line) => history.columns[line.column] ?? []);
    this.data = [history.times.map((at) => at / 1000), ...columns];
    if (this.plot) this.plot.setData(this.data);
    else this.draw();
    this.tell(null);
  }

  /** Draw it from the beginning: its size or the colours of the page have changed. */
  draw() {
    const width = this.place.clientWidth;
    this.plot?.destroy();
    this.plot = null;
    if (!width || !this.data[0].length) return;
    const axis = { stroke: colour("--muted"), font: "11px system-ui", ticks: { show: false } };
    const grid = { stroke: colour("--grid"), width: 1 };
    this.plot = new uPlot({
      width, height: HEIGHT, padding: [10, 8, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: SYNC.key }, y: false, points: { size: 6 }, drag: { x: false, y: false } },
      scales: { x: { time: true, range: window }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.12 : 1] } },
      series: [{}, ...this.lines.map((line) => ({
        stroke: colour(line.colour), width: 1.5, points: { show: false }, spanGaps: true,
        ...(line.area && { fill: `${colour(line.colour)}22` }),
      }))],
      axes: [
        { ...axis, grid: { show: false }, size: 24, space: 64, values: (u, at) => at.map((each) => tick(each, span(u))) },
        { ...axis, grid, size: 58, space: 34, values: (_, at) => at.map((each) => this.format(each)) },
      ],
      hooks: { setCursor: [(u) => this.tell(u.cursor.idx ?? null)] },
    }, this.data, this.place);
  }

  fit() {
    const width = this.place.clientWidth;
    if (!width) return;
    if (this.plot) this.plot.setSize({ width, height: HEIGHT });
    else this.draw();
  }

  /** Say the values at a place in time; null: the newest. @param {number | null} index */
  tell(index) {
    const times = this.data[0], at = index ?? times.length - 1;
    refill(this.legend, ...this.lines.map((line, number) => {
      const value = /** @type {(number | null)[]} */ (this.data[number + 1])[at];
      return h("span", { class: `key ${line.colour.slice(2)}` }, line.label, " ", h("b", {}, this.format(value)));
    }));
    if (index != null) this.legend.append(h("span", { class: "when" }, when(times[at] ?? 0, times)));
  }
}

/** @param {number} seconds @param {ArrayLike<number>} times */
function when(seconds, times) {
  const long = (times[times.length - 1] ?? 0) - (times[0] ?? 0) > DAY_S / 2;
  return long ? moment(seconds * 1000) : clock(seconds * 1000);
}

/** What is shown: from the first sample to the last, and never less than two minutes.
 * @param {uPlot} _ @param {number} first @param {number} last @returns {[number, number]} */
function window(_, first, last) {
  return [Math.min(first, last - SHORTEST_S), last];
}

/** @param {uPlot} plot */
function span(plot) {
  return (plot.scales.x?.max ?? 0) - (plot.scales.x?.min ?? 0);
}
