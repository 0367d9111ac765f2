// Equations as they are typed: typeset below, errors under the place, parameters as they appear.
import { ask, h, later, typeset } from "./parts.js";

const asObject = (given) => (typeof given === "object" && given !== null ? given : { value: given, learn: false });

// A number that is held has only its value in the settings.
function plain(one) {
  return one.learn ? one : one.value;
}

function parameterRow(name, settings, changed) {
  const now = { ...asObject(settings.physics.parameters[name]) };
  const put = () => { settings.physics.parameters[name] = plain(now); changed(); };
  const number = (key, words) => h("input", { type: "number", step: "any", "aria-label": `${name}: ${words}`, placeholder: words,
    value: String(now[key] ?? ""), disabled: key !== "value" && !now.learn, onchange: (event) => {
      if (event.target.value === "") delete now[key]; else now[key] = Number(event.target.value);
      put();
    } });
  const ends = [number("low", "lowest"), number("high", "highest")];
  const learn = h("input", { type: "checkbox", checked: Boolean(now.learn), "aria-label": `learn ${name}`, onchange: (event) => {
    now.learn = event.target.checked;
    ends.forEach((one) => { one.disabled = !now.learn; });
    put();
  } });
  return h("tr", {}, h("td", {}, h("b", {}, name)), h("td", {}, number("value", "value")), h("td", {}, learn),
    ...ends.map((one) => h("td", {}, one)));
}

export function equations(settings, changed) {
  const { physics, data } = settings;
  let lines = [...(physics.equations ?? [])], told = [];
  const list = h("div", {}), more = h("div", { class: "row" }), rows = h("tbody", {}), exact = h("div", { class: "row" });
  const numbers = h("div", { class: "scroll", tabindex: "0", hidden: true }, h("h3", {}, "Parameters"),
    h("table", { class: "form" }, h("thead", {}, h("tr", {},
      ["name", "value", "learn it", "lowest", "highest"].map((one) => h("th", { scope: "col" }, one)))), rows));
  const states = () => [...data.states, ...(data.hidden_states ?? [])];

  function store() {
    physics.equations = lines.filter((one) => one.trim());
    if (!physics.equations.length) { delete physics.parameters; delete physics.exact; }
  }

  function parameters(named) {
    const before = physics.parameters ?? {};
    physics.parameters = Object.fromEntries(named.map((name) => [name, before[name] ?? { value: 1, learn: true }]));
    if (!named.length) delete physics.parameters;
    numbers.hidden = !named.length;
    const shown = [...rows.children].map((row) => row.firstChild.textContent).join();
    if (shown !== named.join()) rows.replaceChildren(...named.map((name) => parameterRow(name, settings, changed)));
  }

  function exactness(known) {
    physics.exact = (physics.exact ?? []).filter((one) => known.includes(one));
    exact.replaceChildren(...known.map((name) => h("label", { class: "tick" }, h("input", { type: "checkbox",
      checked: physics.exact.includes(name), onchange: (event) => {
        physics.exact = physics.exact.filter((one) => one !== name);
        if (event.target.checked) physics.exact.push(name);
        changed();
      } }), `the equation of ${name} is complete: learn nothing for it`)));
  }

  const read = later(200, async (quiet) => {
    const found = await ask("equations", { lines, states: states(), inputs: data.inputs ?? [] });
    told = found.lines;
    told.forEach((one, k) => show(k, one));
    const known = told.map((one) => one.state).filter(Boolean);
    more.replaceChildren(...states().filter((name) => !known.includes(name)).map((name) =>
      h("button", { onclick: () => add(`d${name} = `) }, `+ d${name}/dt`)));
    const wrong = told.some((one) => one.error);
    if (!wrong) { parameters(found.parameters); exactness(known); }
    store();
    if (!quiet) changed();
  });

  function show(k, one) {
    const card = list.children[k], input = card?.querySelector("input");
    if (!card || input.value !== one.text) return;
    input.setAttribute("aria-invalid", String(Boolean(one.error)));
    const [caret, wrong, maths] = card.querySelectorAll(".caret, .wrong, .maths");
    caret.textContent = one.error ? `${" ".repeat(Math.max(0, one.error.column - 1))}^` : "";
    wrong.textContent = one.error?.message ?? "";
    if (one.mathml) maths.replaceChildren(typeset(one.mathml)); else if (!one.error) maths.replaceChildren();
    maths.classList.toggle("faded", Boolean(one.error));
  }

  function card(text, k) {
    const input = h("input", { type: "text", value: text, spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      "aria-label": `Equation ${k + 1}`, "aria-describedby": `wrong-${k}`, maxlength: "2000",
      oninput: (event) => { lines[k] = event.target.value; read(); } });
    const remove = h("button", { class: "quiet", "aria-label": `Remove equation ${k + 1}`,
      onclick: () => { lines.splice(k, 1); fill(); read(); } }, "✕");
    return h("div", { class: "equation" }, h("div", { class: "line" }, input, remove),
      h("div", { class: "caret", "aria-hidden": "true" }), h("div", { class: "wrong", id: `wrong-${k}` }), h("div", { class: "maths" }));
  }

  function fill() { list.replaceChildren(...lines.map(card)); }
  function add(text) {
    lines.push(text);
    fill();
    const input = list.lastChild.querySelector("input");
    input.focus();
    input.setSelectionRange(text.length, text.length);
    read();
  }

  fill();
  read(true);
  return { refresh: () => read(true), nodes: [
    h("p", { class: "soft" }, "Write the equations that you know, and only those; what they lack is learned. For example ",
      h("code", {}, `d${data.states[0]} = -rate*${data.states[0]}`), ". Allowed are + - * / ^, brackets, t, pi and sin cos tan exp log sqrt abs tanh min max sign."),
    list, more, numbers, exact] };
}
