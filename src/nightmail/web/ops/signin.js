/**
 * The token is asked for, tried, and kept for this tab.
 */

import { Api, Problem, session } from "./api.js";
import { h } from "./dom.js";

/** @param {string} why shown above the field @param {() => void} done */
export function signIn(why, done) {
  const field = h("input", {
    type: "password", id: "token", autocomplete: "off", spellcheck: "false", maxlength: 400, required: true,
  });
  const said = h("p", { class: "said", role: "alert" }, why);
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");
  const form = h(
    "form", {
      class: "signin panel",
      onsubmit: async (event) => {
        event.preventDefault();
        button.disabled = true;
        said.textContent = await tried(field.value.trim());
        button.disabled = false;
        if (said.textContent) field.select();
        else done();
      },
    },
    h("img", { src: "ops/icon.svg", alt: "", width: 40, height: 40 }),
    h("h1", {}, "Nightmail operations"),
    h("label", { for: "token" }, "Operator's token"), field, said, button,
    h("p", { class: "note" }, "It is in the file ", h("code", {}, "operator.token"),
      " of the data folder, or in the setting operator.token. It stays in this tab, until the tab is closed."),
  );
  return { element: h("main", { class: "door" }, form), focus: () => field.focus() };
}

/** @param {string} token @returns {Promise<string>} what is wrong; empty: it is the operator's */
async function tried(token) {
  if (!/^[\x21-\x7e]+$/.test(token)) return "A token has no spaces, and only ASCII characters.";
  try {
    await new Api(token, () => {}).get("/v1/clock");
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return "This is not the operator's token.";
    return /** @type {Error} */ (error).message;
  }
  session.keep(token);
  return "";
}
