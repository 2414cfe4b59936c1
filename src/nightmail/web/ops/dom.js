/**
 * Elements. Every text from the server becomes a text node: nothing here parses markup.
 */

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes] functions become listeners; false, null and undefined are left out
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  dress(element, attributes, children);
  return element;
}

/**
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  dress(element, attributes, children);
  return element;
}

/** @param {Element} element @param {Attributes} attributes @param {Child[]} children */
function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  fill(element, ...children);
}

/** Append what is there. @param {Element} element @param {...Child} children */
export function fill(element, ...children) {
  for (const child of children) {
    if (child === false || child == null) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replace what an element holds. @param {Element} element @param {...Child} children */
export function refill(element, ...children) {
  element.replaceChildren();
  fill(element, ...children);
}

/** A word with a colour, and a shape beside it: colour alone tells nobody who cannot see it.
 * @param {string} kind good, warn, bad or calm @param {string} text */
export function pill(kind, text) {
  return h("span", { class: `pill ${kind}` }, text);
}

/** A time as people say it; the exact one on hover. @param {number} ms @param {string} text */
export function time(ms, text) {
  const exact = new Date(ms).toISOString();
  return h("time", { datetime: exact, title: exact }, text);
}
