/**
 * Questions to the server. The token is a header of each of them, and is never in an address.
 */

const BASE = new URL("../", import.meta.url);
const KEPT = "nightmail.operator";

/** What the server refused, or could not do. */
export class Problem extends Error {
  /** @param {number} status 0: nobody answered @param {string} code @param {string} detail */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** The token lives as long as this tab. */
export const session = {
  token: () => sessionStorage.getItem(KEPT) ?? "",
  /** @param {string} token */
  keep: (token) => sessionStorage.setItem(KEPT, token),
  end: () => sessionStorage.removeItem(KEPT),
};

export class Api {
  /** @param {string} token @param {() => void} onRefused called when the token is not, or no longer, the operator's */
  constructor(token, onRefused) {
    this.token = token;
    this.onRefused = onRefused;
  }

  /**
   * @param {string} path
   * @param {Record<string, string | number>} [query] empty values are left out
   * @returns {Promise<any>}
   */
  get(path, query = {}) {
    return this.ask("GET", path, query);
  }

  /** @param {string} path @param {object} [body] @returns {Promise<any>} */
  post(path, body) {
    return this.ask("POST", path, {}, body);
  }

  /** @param {string} path @param {Record<string, string | number>} query @returns {Promise<any>} */
  remove(path, query) {
    return this.ask("DELETE", path, query);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Record<string, string | number>} query
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async ask(method, path, query, body) {
    const url = new URL(path.replace(/^\//, ""), BASE);
    for (const [name, value] of Object.entries(query)) if (value !== "") url.searchParams.set(name, String(value));
    /** @type {Record<string, string>} */
    const headers = { Authorization: `Bearer operator.${this.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(url, {
        method, headers, body: body === undefined ? null : JSON.stringify(body),
        cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
      });
    } catch {
      throw new Problem(0, "unreachable", "The server does not answer.");
    }
    if (response.ok) return response.status === 204 ? null : await read(response);
    const problem = await explain(response);
    if (problem.status === 401) this.onRefused();
    throw problem;
  }
}

/** @param {Response} response */
async function read(response) {
  try {
    return await response.json();
  } catch {
    throw new Problem(0, "unreachable", "The server's answer broke off.");
  }
}

/** @param {Response} response @returns {Promise<Problem>} */
async function explain(response) {
  const wait = response.headers.get("Retry-After");
  const later = wait ? ` Try again in ${wait} s.` : "";
  try {
    const said = await response.json();
    return new Problem(response.status, String(said.code), `${said.title}: ${said.detail}.${later}`);
  } catch {
    const what = response.status === 429 ? "Too many requests from this address." : `HTTP ${response.status}.`;
    return new Problem(response.status, "http", what + later);
  }
}
