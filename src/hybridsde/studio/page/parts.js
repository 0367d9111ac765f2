// Small things that all views share: elements, requests, charts that follow the theme.
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list" && name !== "form" && typeof value !== "string") node[name] = value;
    else node.setAttribute(name === "className" ? "class" : name, value === true ? "" : value);
  }
  node.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

export const byId = (id) => document.getElementById(id);

// Mathematics comes from our own server, which escapes every name in it.
export function typeset(mathml, props = {}) {
  const node = h("div", props);
  node.innerHTML = mathml;
  return node;
}

// Words between backticks are code.
export const marked = (text) => String(text).split("`").map((part, k) => (k % 2 ? h("code", {}, part) : part));

export function complain(message) {
  const close = h("button", { class: "quiet", onclick: () => byId("said").replaceChildren() }, "Close");
  byId("said").replaceChildren(...(message ? [h("span", {}, marked(message)), close] : []));
}

async function answered(response) {
  let found;
  try { found = await response.json(); } catch { found = { error: await response.text() }; }
  if (!response.ok) throw new Error(found.error || `The studio answered ${response.status}.`);
  return found;
}

// Ask the studio; an Error says in one line what is wrong.
export async function ask(action, asked = {}) {
  let response;
  try {
    response = await fetch(`api/${action}`, { method: "POST", body: JSON.stringify(asked) });
  } catch {
    throw new Error("The studio does not answer. Start it again: hybridsde studio");
  }
  return answered(response);
}

export async function upload(file) {
  return answered(await fetch(`api/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file }));
}

// Do something that may fail, and say so.
export async function tried(work, button) {
  complain("");
  if (button) { button.disabled = true; button.classList.add("spin"); }
  try {
    return await work();
  } catch (error) {
    complain(error.message);
    return undefined;
  } finally {
    if (button) { button.disabled = false; button.classList.remove("spin"); }
  }
}

export function later(milliseconds, work) {
  let waiting;
  return (...given) => { clearTimeout(waiting); waiting = setTimeout(() => work(...given), milliseconds); };
}

export const link = (kind, name) => `#/${kind}/${encodeURIComponent(name)}`;
export const last = (name) => name.split("/").pop();
export const folderOf = (name) => name.split("/").slice(0, -1).join("/") || "this folder";

export function number(x, digits = 3) {
  return x === null || x === undefined ? "–" : Number(Number(x).toPrecision(digits)).toString();
}

// An overall error: in spreads of the data where several states would mix their units.
export const inSpreads = (s) => s?.crps_scaled !== undefined;
export const overall = (s, name) => s?.[`${name}_scaled`] ?? (inSpreads(s) ? null : s?.[name]);

export function seconds(x) {
  if (x === null || x === undefined) return "";
  if (x < 90) return `${Math.max(1, Math.round(x))} s`;
  return x < 5400 ? `${Math.round(x / 60)} min` : `${(x / 3600).toFixed(1)} h`;
}

export function field(label, control, hint) {
  return h("label", { class: "field" }, label, control, hint ? h("span", { class: "soft" }, hint) : null);
}

export function select(options, chosen, onchange, props = {}) {
  const node = h("select", { ...props, onchange: (event) => onchange(event.target.value) },
    options.map(([value, text]) => h("option", { value }, text)));
  node.value = chosen;
  return node;
}

export function table(head, rows, props = {}) {
  return h("div", { class: "scroll", tabindex: "0" }, h("table", props,
    h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, rows.map((cells) => h("tr", { class: cells.own ? "own" : undefined },
      (cells.cells || cells).map((cell) => h("td", {}, cell)))))));
}

export function chart(id, label, low = false) {
  return h("figure", { class: low ? "chart low" : "chart", id, role: "group", "aria-label": label });
}

export function section(title, ...children) {
  const id = `section-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h("section", { "aria-labelledby": id }, h("h2", { id, class: "numbered" }, title), ...children);
}

let drawn = [];
export const forgetCharts = () => { drawn = []; };
// Draw now, and again when the theme changes.
export function drawing(show) { drawn.push(show); show(); return show; }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((show) => show()));
