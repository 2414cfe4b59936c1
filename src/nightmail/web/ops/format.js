/**
 * Numbers, sizes and times as people read them.
 */

const SIZES = ["B", "kB", "MB", "GB", "TB"];
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

/** @param {number | null | undefined} value */
export function count(value) {
  if (value == null || Number.isNaN(value)) return "–";
  return Math.round(value).toLocaleString("en");
}

/** Three digits that matter. @param {number | null | undefined} value */
export function rate(value) {
  if (value == null || Number.isNaN(value)) return "–";
  if (value >= 100) return count(value);
  return value.toLocaleString("en", { maximumFractionDigits: value >= 10 ? 1 : 2 });
}

/** @param {number | null | undefined} value */
export function bytes(value) {
  if (value == null || Number.isNaN(value)) return "–";
  let size = value, step = 0;
  while (size >= 1000 && step < SIZES.length - 1) {
    size /= 1000;
    step += 1;
  }
  return `${step && size < 100 ? size.toFixed(1) : Math.round(size)} ${SIZES[step]}`;
}

/** @param {number | null | undefined} value */
export function percent(value) {
  return value == null || Number.isNaN(value) ? "–" : `${rate(value)} %`;
}

/** A time of a millisecond up to some seconds. @param {number | null | undefined} ms */
export function milliseconds(ms) {
  if (ms == null || Number.isNaN(ms)) return "–";
  return ms < SECOND ? `${rate(ms)} ms` : duration(ms);
}

/** The two largest units. @param {number} ms */
export function duration(ms) {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${(ms / SECOND).toLocaleString("en", { maximumFractionDigits: 1 })} s`;
  if (ms < HOUR) return pair(ms, MINUTE, "min", SECOND, "s");
  if (ms < DAY) return pair(ms, HOUR, "h", MINUTE, "min");
  return pair(ms, DAY, "d", HOUR, "h");
}

/** @param {number} ms @param {number} large @param {string} first @param {number} small @param {string} second */
function pair(ms, large, first, small, second) {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${first}${rest ? ` ${rest} ${second}` : ""}`;
}

/** @param {number} ms @param {number} now */
export function ago(ms, now) {
  const since = now - ms;
  if (Math.abs(since) < SECOND) return "now";
  return since > 0 ? `${duration(since)} ago` : `in ${duration(-since)}`;
}

/** Day and time, in the reader's zone. @param {number} ms */
export function moment(ms) {
  const at = new Date(ms);
  const day = at.toLocaleDateString("en-GB", { day: "2-digit", month: "short" });
  return `${day} ${clock(ms)}`;
}

/** @param {number} ms */
export function clock(ms) {
  return new Date(ms).toLocaleTimeString("en-GB");
}

/** What a click makes of many things: "1 letter", "2 letters". @param {number} many @param {string} noun */
export function plural(many, noun) {
  return `${count(many)} ${noun}${many === 1 ? "" : "s"}`;
}
