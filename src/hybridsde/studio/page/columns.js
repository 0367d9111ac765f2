// What the columns of a table mean, and what is true of the states.
import { field, h } from "./parts.js";

const ROLES = [["", "not used"], ["id", "names the recording"], ["time", "time"], ["state", "state, to be forecast"],
  ["input", "input, drives the system"]];

function roleOf(name, data) {
  if (name === data.id) return "id";
  if (name === (data.time ?? "t")) return "time";
  if (data.states.includes(name)) return "state";
  return (data.inputs ?? []).includes(name) ? "input" : "";
}

const without = (list, name) => (list ?? []).filter((one) => one !== name);

function assign({ name, column }, role, settings) {
  const { data, physics } = settings;
  if (name !== column) {
    data.columns = { ...data.columns, [name]: column };
    if (!role) delete data.columns[name];
  }
  data.states = without(data.states, name);
  data.inputs = without(data.inputs, name);
  if (data.id === name) delete data.id;
  if (role === "state") data.states.push(name); else {
    data.positive = without(data.positive, name);
    if (data.bounds) delete data.bounds[name];
    physics.exact = without(physics.exact, name);
  }
  if (role === "input") data.inputs.push(name);
  if (role === "id") data.id = name;
  if (role === "time") data.time = name;
}

// What cannot happen to a state: values of zero or less, or beyond limits.
function limits(name, settings, changed) {
  const { data } = settings;
  const positive = h("input", { type: "checkbox", checked: (data.positive ?? []).includes(name),
    "aria-label": `${name} is always positive`, onchange: (event) => {
      data.positive = without(data.positive, name);
      if (event.target.checked) data.positive.push(name);
      changed();
    } });
  const end = (k, words, shown) => h("input", { type: "number", step: "any", placeholder: shown, "aria-label": `${name}: ${words}`,
    value: String(data.bounds?.[name]?.[k] ?? ""), onchange: (event) => {
      const ends = [...(data.bounds?.[name] ?? [null, null])];
      ends[k] = event.target.value === "" ? null : Number(event.target.value);
      data.bounds = { ...data.bounds, [name]: ends };
      if (ends[0] === null && ends[1] === null) delete data.bounds[name];
      changed();
    } });
  return [positive, end(0, "lowest possible", "−∞"), end(1, "highest possible", "∞")];
}

function roles(columns, settings, changed) {
  const body = h("tbody", {});
  const fill = () => body.replaceChildren(...columns.map((one) => {
    const { name, column, sample } = one;
    const role = roleOf(name, settings.data);
    const pick = h("select", { "aria-label": `${name} is`, onchange: (event) => {
      assign(one, event.target.value, settings);
      fill();
      changed(true);
    } }, ROLES.map(([value, text]) => h("option", { value, selected: value === role }, text)));
    const more = role === "state" ? limits(name, settings, changed) : ["", "", ""];
    return h("tr", {}, h("td", {}, h("b", {}, name), name === column ? null : h("span", { class: "soft" }, ` ${column}`)), h("td", { class: "sample" }, sample.join(", ")), h("td", {}, pick),
      ...more.map((cell) => h("td", {}, cell)));
  }));
  fill();
  return h("div", { class: "scroll", tabindex: "0" }, h("table", { class: "form" }, h("thead", {}, h("tr", {},
    h("th", { scope: "col" }, "column"), h("th", { scope: "col", class: "sample" }, "first rows"), h("th", { scope: "col" }, "is"),
    ...["always positive", "lowest possible", "highest possible"].map((one) => h("th", { scope: "col" }, one)))), body));
}

// "3", "0 to 10", a column, or "infer".
function startOf(text) {
  const words = text.trim(), ends = words.match(/^(-?[\d.eE+-]+)\s*to\s*(-?[\d.eE+-]+)$/);
  if (ends) return [Number(ends[1]), Number(ends[2])];
  return words !== "" && Number.isFinite(Number(words)) ? Number(words) : words || "infer";
}
const startText = (start) => (Array.isArray(start) ? start.join(" to ") : String(start ?? "infer"));

function hidden(settings, changed) {
  const { data } = settings, list = h("div", {});
  const fill = () => list.replaceChildren(...(data.hidden_states ?? []).map((name) => h("div", { class: "row" }, h("b", {}, name),
    field("begins at", h("input", { value: startText(settings.start?.[name]), onchange: (event) => {
      settings.start = { ...settings.start, [name]: startOf(event.target.value) };
      changed();
    } })),
    h("button", { class: "quiet", onclick: () => {
      data.hidden_states = without(data.hidden_states, name);
      if (settings.start) delete settings.start[name];
      if (settings.start && !Object.keys(settings.start).length) delete settings.start;
      fill();
      changed();
    } }, `Remove ${name}`))));
  const name = h("input", { type: "text", placeholder: "name", "aria-label": "Name of a state that nobody measured" });
  const add = h("button", { onclick: () => {
    const word = name.value.trim();
    if (!word || (data.hidden_states ?? []).includes(word)) return;
    data.hidden_states = [...(data.hidden_states ?? []), word];
    settings.start = { ...settings.start, [word]: "infer" };
    name.value = "";
    fill();
    changed();
  } }, "Add a hidden state");
  fill();
  return h("details", { open: Boolean(data.hidden_states?.length) }, h("summary", {}, "States that exist but nobody measured"),
    h("p", { class: "soft" }, "They take part in equations. Where one begins: a number, a range as “0 to 10”, a column, or “infer”."),
    list, h("div", { class: "row" }, name, add));
}

export function columns(found, settings, changed) {
  const { data } = settings;
  const unit = field("one unit of time is", h("input", { type: "text", value: data.unit ?? "", placeholder: "day",
    onchange: (event) => {
      if (event.target.value.trim()) data.unit = event.target.value.trim(); else delete data.unit;
      changed(true);
    } }));
  const missing = field("cells that mean missing", h("input", { type: "text", value: (data.missing ?? []).join(" | "), placeholder: "Bad Input | -",
    onchange: (event) => {
      data.missing = event.target.value.split("|").map((word) => word.trim()).filter(Boolean);
      changed(true);
    } }), "beside empty ones, with | between");
  const what = data.quantity
    ? h("p", {}, `A long table: ${data.quantity} names what a row measures, ${data.value} holds it. States: ${data.states.join(", ")}.`)
    : roles(found, settings, changed);
  return [h("p", { class: "soft" }, "Guessed from names and values; correct what is wrong. States are forecast, inputs are given."),
    what, h("div", { class: "fields" }, unit, missing), hidden(settings, changed)];
}
