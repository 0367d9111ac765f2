// A project: its recordings, what its columns mean, what is known, and what a fit would do.
import { ask, byId, chart, drawing, field, h, later, last, link, marked, section, select, table, tried } from "./parts.js";
import { columns } from "./columns.js";
import { equations } from "./equations.js";

const PALETTE = ["#3b8fd1", "#e08a1e", "#20a486", "#cc79a7", "#8a6fd1", "#b04a4a"];

function recordings(look, empty) {
  const { live } = look, c = charts(live.clock);
  const which = { column: 0, series: -1 };
  const show = () => {
    const { column: k, series: only } = which;
    const chosen = only < 0 ? live.series : [live.series[only]];
    const held = k >= live.columns.length - live.inputs, many = chosen.length > 6 || (innerWidth < 640 && chosen.length > 3);
    const traces = chosen.map((one, n) => ({ x: one.times, y: one.values[k], name: c.words(one.id),
      mode: chosen.length > 1 ? "lines" : "lines+markers", marker: { size: 4 }, hovertemplate: "%{y:.5g}",
      opacity: many ? 0.5 : 1,
      line: { color: many ? c.colour("--known") : PALETTE[n % PALETTE.length], width: 1.4, shape: held ? "hv" : "linear" } }));
    const odd = (live.outliers[k] || []).filter(([row]) => only < 0 || row === only);
    if (odd.length) traces.push({ x: odd.map((one) => one[1]), y: odd.map((one) => one[2]), mode: "markers",
      name: "sticks out", marker: { size: 11, color: "rgba(0,0,0,0)", line: { color: "#d55e00", width: 2 } } });
    for (const [row, begin, end, value] of live.still[k] || []) {
      if (only < 0 || row === only) traces.push({ x: [begin, end], y: [value, value], mode: "lines", name: "stands still",
        opacity: 0.5, line: { width: 8, color: "#d55e00" }, hoverinfo: "skip" });
    }
    c.draw("chart-look", traces, live.columns[k], live.clock, { showlegend: !many, hovermode: many ? "closest" : "x unified" });
  };
  const pick = (name, options, label) => field(label, select(options.map((one, k) => [k - (name === "series"), one]),
    which[name], (value) => { which[name] = Number(value); show(); }));
  const card = (value, words) => h("div", { class: "card" }, h("b", {}, String(value)), h("span", {}, words));
  return { show, nodes: [
    h("div", { class: "cards" }, card(look.trajectories, look.trajectories === 1 ? "recording" : "recordings"), card(look.rows_in_all, "rows"),
      card(look.states, look.states === 1 ? "state" : "states"), card(look.inputs, look.inputs === 1 ? "input" : "inputs"), card(look.missing, "missing values")),
    h("div", { class: "fields" }, pick("column", live.columns, "column"),
      pick("series", ["all", ...live.series.map((one) => one.id)], "recording")),
    chart("chart-look", "Recordings along time"),
    look.findings.length ? h("ul", { class: "plain" }, look.findings.map((line) => h("li", {}, marked(line), empty(look.doubts[line]))))
      : h("p", {}, "Nothing looks odd."),
    h("details", {}, h("summary", {}, "Numbers of every state"),
      table(["state", "values", "missing", "lowest", "highest", "spread", "noise at most", "outliers", "stuck"],
        look.facts.map((row) => [row.state, row.values, row.missing, row.lowest, row.highest, row.spread,
          row.noise, row.outliers, row.stuck]))),
  ] };
}

// What can be left as it is.
function choices(settings, changed) {
  const put = (group, key, value) => {
    settings[group] = { ...settings[group] };
    if (value === undefined || Number.isNaN(value)) delete settings[group][key]; else settings[group][key] = value;
    changed();
  };
  const whole = (group, key, label, hint) => field(label, h("input", { type: "number", min: "0", step: "1",
    value: String(settings[group]?.[key] ?? ""), placeholder: hint,
    onchange: (event) => put(group, key, event.target.value === "" ? undefined : Math.round(Number(event.target.value))) }));
  const share = settings.data.test ?? 0.2;
  const kinds = [["auto", "whatever forecasts better"], ["library", "a few terms that can be read"],
    ["network", "neural networks"], ["process", "a Gaussian process"]];
  const learned = settings.model?.learned ?? "auto";
  return h("details", {}, h("summary", {}, "More choices"), h("div", { class: "fields" },
    typeof learned === "string" ? field("the learned part is", select(kinds, learned, (value) =>
      put("model", "learned", value === "auto" ? undefined : value))) : null,
    typeof share === "number" ? field("held out for scores", select([["0", "nothing"], ["0.1", "10 %"], ["0.2", "20 %"],
      ["0.3", "30 %"], ["0.5", "50 %"]], String(share), (value) => put("data", "test", Number(value)))) : null,
    whole("forecast", "horizon", "rows ahead that matter", "all"),
    whole("train", "epochs", "epochs of networks", "by the data"),
    whole("train", "seed", "seed", "0")));
}

export async function project(main, name, alive) {
  let current = name, waiting = 0, saved = Promise.resolve(), stale = false;
  const found = await ask("project", { name });
  const settings = found.settings;
  settings.physics ??= {};
  const check = h("div", { class: "check waiting", id: "check", role: "status" }, h("p", { class: "spin" }, "Checking …"));
  const state = h("p", { class: "soft", id: "fit-said" });
  const fit = h("button", { class: "main", id: "fit", disabled: true, onclick: () => tried(async () => {
    await saved;
    location.hash = link("run", (await ask("fit", { name: current })).run);
  }, fit) }, "Fit");
  const looked = h("div", {});

  const tell = (answer) => {
    const wrong = answer.error;
    check.className = wrong ? "check wrong-input" : "check";
    check.replaceChildren(...(wrong ? [h("p", { class: "bad" }, marked(wrong))] : [
      ...answer.sentences.map((line) => h("p", {}, line)),
      ...answer.notices.map((line) => h("p", { class: "learned" }, marked(line)))]));
    fit.disabled = Boolean(wrong);
    state.textContent = wrong ? "Something is to be corrected first." : "All is well. The settings are saved.";
  };
  // Cells that may be a fault of the instrument: emptied here in the studio's own copy, else where the table is.
  const emptied = (own) => (doubt) => {
    if (!doubt || !own) return null;
    const count = doubt.lines.length;
    const button = h("button", { class: "quiet", onclick: () => tried(async () => {
      await ask("blank", { name: current, state: doubt.state, lines: doubt.lines });
      changed(true);
    }, button) }, count === 1 ? "Empty this cell" : `Empty these ${count} cells`);
    return [" ", button];
  };
  const showLook = ({ look, said, spoiled, own }) => {
    if (!look) { looked.replaceChildren(spoiled?.count ? mend(spoiled) : h("p", { class: "bad" }, marked(said))); return; }
    const { nodes, show } = recordings(look, emptied(own));
    looked.replaceChildren(...nodes);
    drawing(() => byId("chart-look") && show());
  };
  // Words among numbers: which they are, and a way on.
  const mend = ({ count, first, words }) => {
    const button = h("button", { class: "main", id: "blank", onclick: () => {
      settings.data.missing = [...new Set([...(settings.data.missing ?? []), ...words])];
      changed(true);
    } }, count === 1 ? "Read it as missing" : `Read all ${count} as missing`);
    return h("div", {}, h("p", { class: "bad" }, count === 1 ? "One cell is no number:" : `${count} cells are no numbers:`),
      table(["line", "column", "it says"], first.map((one) => [one.line, one.column, one.cell]), { class: "form" }),
      count > first.length ? h("p", { class: "soft" }, `And ${count - first.length} more.`) : null,
      h("div", { class: "row" }, button, h("span", { class: "soft" }, `The settings then list ${words.length === 1 ? "this word" : "these words"} as missing; the table stays as it is.`)));
  };
  const save = async () => {
    const mine = ++waiting;
    try {
      const answer = await ask("save", { name: current, settings });
      if (!alive.still || mine !== waiting) return;
      if (answer.project !== current) {
        current = answer.project;
        history.replaceState(null, "", link("project", current));
        byId("project-name").textContent = last(current);
      }
      tell(answer);
      if (stale) {
        stale = false;
        const more = await ask("project", { name: current });
        if (alive.still) showLook(more);
      }
    } catch (error) {
      if (alive.still && mine === waiting) tell({ error: error.message });
    }
  };
  const soon = later(500, () => { saved = save(); });
  // `again`: the recordings are read anew, which a change that follows must not undo.
  const changed = (again = false) => {
    stale ||= again;
    check.className = "check waiting";
    fit.disabled = true;
    state.replaceChildren(h("span", { class: "spin" }, "Checking …"));
    soon();
  };
  const known = equations(settings, changed);
  main.replaceChildren(h("div", { class: "sections" },
    h("h1", {}, name.split("/").slice(0, -1).join("/") || last(name), " ", h("span", { class: "soft", id: "project-name" }, last(name))),
    section("Recordings", looked),
    section("Columns", ...columns(found.columns, settings, (again) => { known.refresh(); changed(again); })),
    section("What you know", ...known.nodes),
    section("What a fit will do", check, choices(settings, changed)),
    h("div", { class: "bar" }, state, fit)));
  showLook(found);
  if (settings.physics.python) {
    tell({ error: `The known physics is Python code (${settings.physics.python}), which the studio shows but does not run.` });
  } else { saved = save(); }
}
