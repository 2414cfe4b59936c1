/**
 * The page: sign-in, tabs by address, keys, and one beat every two seconds while somebody looks.
 */

import { Api, session } from "./api.js";
import { showKeys } from "./dialogs.js";
import { h, pill, refill } from "./dom.js";
import { LettersView } from "./letters.js";
import { Live } from "./live.js";
import { OverviewView } from "./overview.js";
import { SchedulesView } from "./schedules.js";
import { signIn } from "./signin.js";
import { StorageView } from "./storage.js";
import { applyTheme, onColours, theme, turnTheme } from "./theme.js";
import { TraceView } from "./trace.js";

/** @import { View } from "./types.js" */

const BEAT_MS = 2_000;
const SAID_MS = 8_000;

class Page {
  /** @param {Api} api */
  constructor(api) {
    this.live = new Live(api);
    /** @param {string} text */
    const report = (text) => this.report(text);
    this.overview = new OverviewView(api, this.live, report);
    /** @type {View[]} */
    this.views = [
      this.overview, new LettersView(api, report), new SchedulesView(api, report), new TraceView(api),
      new StorageView(api, report),
    ];
    /** @type {View} */
    this.view = this.overview;
    this.ended = false;
    this.asking = false;
    this.status = h("span", { class: "status", "aria-live": "polite" });
    this.letters = h("b", { class: "badge", hidden: true });
    this.said = h("div", { class: "toast", role: "status" });
    this.saidUntil = 0;
    this.themed = h("button", { type: "button", class: "plain", onclick: () => this.turn() });
    this.tabs = h("nav", { class: "tabs", "aria-label": "Views" }, ...this.views.map((view, at) => h(
      "a", { href: `#/${view.name}`, "aria-keyshortcuts": String(at + 1) }, view.title, view.name === "letters" && this.letters)));
    this.main = h("main", { tabindex: -1 });
    this.nameTheme();
  }

  open() {
    refill(
      document.body,
      h("header", { class: "top" },
        h("span", { class: "brand" }, h("img", { src: "ops/icon.svg", alt: "", width: 22, height: 22 }), "Nightmail"),
        this.tabs, this.status,
        h("span", { class: "tools" }, this.themed,
          h("button", { type: "button", class: "plain", title: "Keys (?)", "aria-label": "Keys", onclick: showKeys }, "?"),
          h("button", { type: "button", class: "plain", onclick: () => leave("") }, "Sign out"))),
      this.main, this.said,
    );
    addEventListener("hashchange", this.onAddress);
    addEventListener("keydown", this.onKey);
    document.addEventListener("visibilitychange", this.onVisible);
    onColours(() => this.overview.redraw());
    this.timer = setInterval(() => this.beat(), BEAT_MS);
    this.route();
    this.beat();
  }

  close() {
    this.ended = true;
    clearInterval(this.timer);
    removeEventListener("hashchange", this.onAddress);
    removeEventListener("keydown", this.onKey);
    document.removeEventListener("visibilitychange", this.onVisible);
  }

  onAddress = () => this.route();

  onVisible = () => {
    if (!document.hidden) this.beat();
  };

  route() {
    const [name, ...rest] = address();
    this.view = this.views.find((view) => view.name === name) ?? this.overview;
    [...this.tabs.children].forEach((tab, at) => {
      if (this.views[at] === this.view) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    });
    document.title = `${this.view.title} · Nightmail`;
    if (this.main.firstChild !== this.view.element) refill(this.main, this.view.element);
    this.view.show(rest);
  }

  async beat() {
    if (document.hidden || this.asking || this.ended) return;
    this.asking = true;
    try {
      const overview = await this.live.poll();
      refill(this.status, pill(overview.ready ? "good" : "bad", overview.ready ? "ready" : overview.not_ready.join("; ")),
        h("span", { class: "node" }, `${overview.node} · ${overview.version}`));
      this.letters.hidden = !overview.dead_letters;
      this.letters.textContent = String(overview.dead_letters);
    } catch (error) {
      refill(this.status, pill("bad", /** @type {Error} */ (error).message));
    } finally {
      this.asking = false;
    }
    if (!this.ended) this.view.tick();
    if (Date.now() > this.saidUntil) this.said.replaceChildren();
  }

  /** @param {string} text */
  report(text) {
    if (this.ended) return;
    refill(this.said, h("p", {}, text));
    this.saidUntil = Date.now() + SAID_MS;
  }

  turn() {
    turnTheme();
    this.nameTheme();
    this.overview.redraw();
  }

  nameTheme() {
    const names = /** @type {Record<string, string>} */ ({ auto: "◐", light: "☀", dark: "☾" });
    refill(this.themed, names[theme()] ?? "");
    this.themed.setAttribute("aria-label", `Colours: ${theme()}`);
    this.themed.title = `Colours: ${theme()} (t)`;
  }

  /** @param {KeyboardEvent} event */
  onKey = (event) => {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (target instanceof HTMLInputElement) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (this.means(event)) event.preventDefault();
  };

  /** @param {KeyboardEvent} event */
  means(event) {
    const view = this.views[Number(event.key) - 1];
    if (view) location.hash = `#/${view.name}`;
    else if (event.key === "?") showKeys();
    else if (event.key === "t") this.turn();
    else if (event.key === "/") (this.view.field ?? this.main).focus();
    else return this.view.key(event);
    return true;
  }
}

function address() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return [""];
  }
}

/** @type {Page | null} */
let page = null;

/** The token is forgotten. @param {string} why */
function leave(why) {
  session.end();
  page?.close();
  page = null;
  start(why);
}

/** @param {string} [why] */
function start(why = "") {
  const token = session.token();
  if (token) {
    page = new Page(new Api(token, () => leave("The token is no longer the operator's: sign in again.")));
    page.open();
    return;
  }
  document.title = "Nightmail operations";
  const door = signIn(why, start);
  refill(document.body, door.element);
  door.focus();
}

applyTheme();
start();
