// Runs side by side: scores, what was learned, what their settings say, forecasts of one recording.
import { ask, byId, chart, drawing, field, h, link, number, overall, section, select, table, tried, typeset } from "./parts.js";

const COLOURS = ["#3b8fd1", "#e08a1e", "#20a486", "#cc79a7"];

// Settings in which they differ, a row each.
function differences(runs) {
  const keys = [...new Set(runs.flatMap(({ facts }) => Object.keys(facts.declared)))].sort();
  const rows = keys.map((key) => [key, ...runs.map(({ facts }) => facts.declared[key] ?? "–")]);
  return rows.filter(([, first, ...rest]) => rest.some((one) => one !== first));
}

function overlay(runs, alive) {
  const common = runs[0].model.series.map((one) => one.id).filter((id) => runs.every(({ model }) => model.series.some((one) => one.id === id)));
  const names = runs[0].model.observations.filter((one) => runs.every(({ model }) => model.observations.includes(one)));
  if (!common.length || !names.length) return [h("p", {}, "These runs have no recording and state in common, so their forecasts cannot be shown together.")];
  const now = { series: common[0], state: names[0] }, c = charts(runs[0].model.clock);
  let found = [];
  const show = () => {
    if (!found.length || !byId("chart-compare")) return;
    const traces = found.flatMap((one, k) => c.fan(one.origins[0].forecast, runs[k].model.observations.indexOf(now.state), COLOURS[k % COLOURS.length], runs[k].name)
      .map((trace) => ({ ...trace, showlegend: trace.name === runs[k].name })));
    traces.push(c.recorded(found[0], runs[0].model.observations.indexOf(now.state), found[0].origins[0].given));
    c.draw("chart-compare", traces, now.state);
  };
  const load = () => tried(async () => {
    byId("chart-compare").classList.add("faded");
    const asked = [];
    for (const { name } of runs) asked.push(await ask("forecast", { name, series: now.series, changes: {} }));
    if (!alive.still) return;
    found = asked;
    byId("chart-compare").classList.remove("faded");
    show();
  });
  queueMicrotask(() => { load(); drawing(show); });
  return [h("div", { class: "fields" }, field("recording", select(common.map((one) => [one, one]), now.series, (v) => { now.series = v; load(); })),
    field("state", select(names.map((one) => [one, one]), now.state, (v) => { now.state = v; show(); }))),
  chart("chart-compare", "Forecasts of all runs from the first rows"), h("p", { class: "soft" }, "From the first rows. Bands hold half and nine tenths of the futures.")];
}

export async function compare(main, given, alive) {
  const runs = [];
  for (const name of given.split("\n").slice(0, 4)) {
    const facts = await ask("run", { name });
    const model = facts.python ? null : await ask("model", { name });
    if (!alive.still) return;
    runs.push({ name, facts, model });
  }
  const different = differences(runs);
  const shown = runs.filter(({ model }) => model), best = Math.min(...runs.map(({ facts }) => overall(facts.scores?.overall, "crps") ?? Infinity));
  main.replaceChildren(h("div", { class: "sections" }, h("h1", {}, "Runs side by side"),
    section("Scores of held-out recordings", table(["run", "CRPS", "RMSE", "NLL", "in the 90 % interval"], runs.map(({ name, facts }) => {
      const s = facts.scores?.overall ?? {};
      return { own: overall(s, "crps") === best, cells: [h("a", { href: link("run", name) }, name), number(overall(s, "crps")), number(overall(s, "rmse")), number(s.nll), s.coverage90 === undefined ? "–" : `${Math.round(100 * s.coverage90)} %`] };
    })), h("p", { class: "soft" }, "CRPS is the error of the whole forecast, RMSE that of its mean: lower is better. Of several states together they are in spreads of the data. Comparable where the same recordings were held out.")),
    shown.length ? section("Forecasts", ...overlay(shown, alive)) : null,
    section("What was learned", h("div", { class: "two" }, shown.map(({ name, model, facts }) => h("div", {}, h("h3", {}, name),
      h("div", { class: "equations", tabindex: "0" }, model.equations.map((one) => typeset(one))), facts.choice ? h("p", { class: "soft" }, facts.choice) : null)))),
    section("Where their settings differ", different.length ? table(["setting", ...runs.map(({ name }) => name)], different, { class: "form" })
      : h("p", {}, "Nowhere: these runs were fitted by the same settings."))));
}
