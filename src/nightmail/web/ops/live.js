/**
 * The node's figures of the last 15 minutes, kept up to date by asking for what is new.
 */

/** @import { Api } from "./api.js" */
/** @import { History, Overview } from "./types.js" */

const KEPT = 15 * 60;

export class Live {
  /** @param {Api} api */
  constructor(api) {
    this.api = api;
    /** @type {Overview | null} */
    this.overview = null;
    /** @type {History} */
    this.history = { last: 0, times: [], columns: {} };
    /** Whether the server has started again since the page was opened. */
    this.restarted = false;
  }

  /** Ask for what is new. Throws a Problem. @returns {Promise<Overview>} */
  async poll() {
    /** @type {Overview} */
    const overview = await this.api.get("/v1/operator/overview", { after: this.history.last });
    if (this.overview && overview.started_at !== this.overview.started_at) {
      this.restarted = true;
      this.history = { last: 0, times: [], columns: {} };
      this.overview = null;
      return this.poll();
    }
    this.overview = overview;
    this.take(overview.recent);
    return overview;
  }

  /** @param {History} recent */
  take(recent) {
    const kept = this.history;
    // Two questions may have been under way at once, and both have brought the same.
    if (recent.last - recent.times.length < kept.last && kept.times.length) return;
    kept.last = recent.last;
    kept.times = [...kept.times, ...recent.times].slice(-KEPT);
    for (const [name, values] of Object.entries(recent.columns)) {
      kept.columns[name] = [...(kept.columns[name] ?? []), ...values].slice(-KEPT);
    }
  }

  /** The newest value of a figure. @param {string} name @returns {number | null} */
  now(name) {
    return this.history.columns[name]?.at(-1) ?? null;
  }

  /** The newest value that was measured at all, within some seconds. @param {string} name @param {number} seconds */
  recent(name, seconds) {
    const values = (this.history.columns[name] ?? []).slice(-seconds).filter((value) => value != null);
    return values.at(-1) ?? null;
  }

  /** The mean over some seconds, which is calmer than the newest value. @param {string} name @param {number} seconds */
  mean(name, seconds) {
    const values = (this.history.columns[name] ?? []).slice(-seconds).filter((value) => value != null);
    if (!values.length) return null;
    return values.reduce((sum, value) => sum + Number(value), 0) / values.length;
  }
}
