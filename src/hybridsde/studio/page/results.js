// What a run is good for: forecasts, scores, equations, promises, files.
import { ask, byId, chart, drawing, field, h, inSpreads, last, later, link, marked, number, overall, section, select, table, tried, typeset } from "./parts.js";

// Charts of forecasts with sliders; every beginning along a recording comes with one answer.
function forecastSection(name, model, alive) {
  const c = charts(model.clock);
  const now = { series: model.series[0].id, state: 0, origin: 0, changes: { inputs: {}, parameters: {} } };
  let base = null, found = null, asking = 0;
  const said = h("p", { class: "soft", id: "forecast-said", "aria-live": "polite" }, "Compiling the forecast, some seconds …");
  const origin = h("input", { type: "range", min: "0", step: "1", value: "0", id: "origin", "aria-label": "rows given", oninput: () => { now.origin = Number(origin.value); show(); } });
  const given = h("output", { for: "origin" });
  const changed = () => Object.values(now.changes).some((group) => Object.keys(group).length);

  function show() {
    if (!found || !byId("chart-forecast")) return;
    const k = Math.min(now.origin, found.origins.length - 1), at = found.origins[k];
    origin.max = String(found.origins.length - 1);
    given.textContent = `${at.given} of ${found.times.length}`;
    origin.setAttribute("aria-valuetext", given.textContent);
    const traces = [];
    if (changed() && base) traces.push(...c.fan(base.origins[k].forecast, now.state, "#8a94a0", "as it was", true));
    traces.push(...c.fan(at.forecast, now.state, c.colour(changed() ? "--learned" : "--known"), changed() ? "changed" : "median"),
      c.recorded(found, now.state, at.given));
    c.draw("chart-forecast", traces, model.observations[now.state]);
    const part = { test: "Training never saw this recording.", validation: "This recording chose the epoch.", train: "Training saw this recording." };
    said.textContent = `${found.id}: ${at.given} ${at.given === 1 ? "row" : "rows"} given (filled). Bands hold half and nine tenths of the futures. ${part[found.part]}${found.held ? " After the end of the recording its last inputs are kept." : ""}`;
  }

  async function load() {
    const mine = ++asking;
    byId("chart-forecast")?.classList.add("faded");
    const answer = await tried(() => ask("forecast", { name, series: now.series, changes: now.changes }));
    if (!alive.still || mine !== asking || !answer) return;
    byId("chart-forecast").classList.remove("faded");
    found = answer;
    if (!changed()) base = answer;
    show();
  }
  const soon = later(60, load);

  const sliders = model.sliders.map((one) => {
    const value = h("output", {}), group = one.kind === "input" ? "inputs" : "parameters";
    const slider = h("input", { type: "range", min: String(one.low), max: String(one.high), step: String((one.high - one.low) / 100),
      "aria-label": one.kind === "input" ? `input ${one.name}` : one.name, value: String(one.now), oninput: () => {
        const moved = Math.abs(slider.value - one.now) > (one.high - one.low) / 190;
        if (moved) now.changes[group][one.name] = Number(slider.value); else delete now.changes[group][one.name];
        tell();
        soon();
      } });
    const tell = () => {
      value.textContent = one.kind === "input" ? `× ${number(slider.value)}` : number(slider.value);
      slider.setAttribute("aria-valuetext", value.textContent);
    };
    tell();
    return { node: h("label", {}, h("span", {}, one.kind === "input" ? `input ${one.name}: ` : `${one.name}: `, value), slider), reset: () => { slider.value = one.now; tell(); } };
  });
  const reset = h("button", { onclick: () => {
    now.changes = { inputs: {}, parameters: {} };
    sliders.forEach((one) => one.reset());
    load();
  } }, "As it was");
  const parts = { test: "held out", validation: "validation", train: "training" };
  const node = section("Forecast",
    h("div", { class: "fields" },
      field("recording", select(model.series.map((one) => [one.id, `${one.id} (${parts[one.part]})`]), now.series, (value) => { now.series = value; base = null; load(); }, { id: "series" })),
      field("state", select(model.observations.map((one, k) => [String(k), one]), "0", (value) => { now.state = Number(value); show(); })),
      h("label", { class: "field" }, h("span", {}, "rows given: ", given), origin)),
    chart("chart-forecast", "Forecast and recording"), said,
    sliders.length ? h("div", {}, h("h3", {}, "What if?"), h("div", { class: "levers" }, sliders.map((one) => one.node), reset)) : null);
  return { node, load: () => { load(); drawing(show); } };
}

const SIMPLE = { persistence: "stays where it is", climatology: "the usual values", analogues: "what followed similar moments",
  "mean-curve": "recordings that began alike", var: "autoregression on the rows before", "linear-gaussian": "linear dynamics" };

function scores(facts) {
  if (!facts.scores) return section("Scores", h("p", {}, "No recordings were held out, so nothing can be said about new ones."));
  const own = facts.scores.overall, rows = [["this run", own, true], ...Object.entries(facts.alternatives).map(([n, s]) => [n, s, false])];
  const several = Object.keys(facts.scores.states).length > 1;
  // Scores of an older version hold no errors in spreads; of several states they have no meaning together.
  const error = (s, name) => (several && !inSpreads(s) ? null : overall(s, name));
  rows.sort((a, b) => (error(a[1], "crps") ?? Infinity) - (error(b[1], "crps") ?? Infinity));
  const worst = Math.max(...rows.map(([, s]) => error(s, "crps") ?? 0));
  const meter = (s, mine) => { const bar = h("span", { class: mine ? "meter" : "meter other" }); bar.style.width = `${Math.round(90 * (error(s, "crps") ?? 0) / (worst || 1))}px`; return bar; };
  const others = Object.keys(facts.alternatives).length;
  return section("Scores",
    h("p", {}, `Forecasts of recordings that training never saw, from their first rows. ${others ? "Beside it: simple forecasters that it should beat. " : ""}CRPS is the error of the whole forecast, RMSE that of its mean, ${several ? "both in spreads of the data, each state counting alike" : "both in the units of the state"}: lower is better. NLL is minus the log-likelihood of a value. The 90 % interval should hold 90 %.`),
    table(["forecaster", "CRPS", "shorter is better", "RMSE", "NLL", "in the 90 % interval"], rows.map(([label, s, mine]) => ({ own: mine, cells: [
      SIMPLE[label] ? [label, h("small", { class: "soft" }, ` ${SIMPLE[label]}`)] : label, number(error(s, "crps")), meter(s, mine), number(error(s, "rmse")), number(s.nll), s.coverage90 === null ? "–" : `${Math.round(100 * s.coverage90)} %`] }))),
    facts.job && ["running"].includes(facts.job.state) ? h("p", { class: "soft spin" }, "Simple forecasters are being scored …") : null,
    h("details", {}, h("summary", {}, "By state, in its own units"), table(["state", "CRPS", "RMSE", "in the 90 % interval"],
      Object.entries(facts.scores.states).map(([label, s]) => [label, number(s.crps), number(s.rmse), s.coverage90 === null ? "–" : `${Math.round(100 * s.coverage90)} %`]))));
}

function learned(name, facts, model) {
  const shown = h("div", {});
  const take = h("button", { class: "main", hidden: true, onclick: () => tried(async () => {
    location.hash = link("project", (await ask("take-over", { name })).project);
  }, take) }, "Take them over as known physics");
  const show = h("button", { id: "discover", onclick: () => tried(async () => {
    const found = await ask("discover", { name });
    shown.replaceChildren(h("pre", { tabindex: "0", class: "wrap" }, found.lines.join("\n")),
      h("p", { class: "soft" }, `These terms explain ${Math.round(100 * found.explained)} % of the learned drift.` +
        (found.corrections.length ? ` Corrected: ${found.corrections.join("; ")}.` : "")),
      table(["in the drift of", "term", "coefficient", "probability"], found.terms.map((one) => [one.state, typeset(one.term),
        one.error ? `${number(one.value, 4)} ± ${number(one.error, 2)}` : "–", `${Math.round(100 * one.probability)} %`])));
    take.hidden = !found.writable;
  }, show) }, "Discover equations");
  const parameters = Object.entries(facts.parameters);
  return section("What was learned",
    model.equations.length ? h("div", { class: "equations", tabindex: "0" }, model.equations.map((one) => typeset(one))) : null,
    h("p", { class: "soft" }, h("span", { class: "known" }, "Known"), " terms stand as they were given, ", h("span", { class: "learned" }, "learned"), " ones beside them."),
    facts.choice ? h("p", {}, `Chosen by the fit: ${facts.choice}`) : null,
    parameters.length ? table(["parameter", "value", "± standard error"], parameters.map(([label, one]) => [label, number(one.value, 4), number(one.error, 2)])) : null,
    h("div", { class: "row" }, show, take), shown);
}

function promises(found) {
  return found.map((one, n) => {
    const id = `chart-promise-${n}`, parts = Object.entries(one.parts);
    if (parts.length) queueMicrotask(() => drawing(() => byId(id) && charts("").bound(id, one.parts)));
    return h("div", { class: one.vacuous ? "certificate vacuous" : "certificate" }, h("h3", {}, one.title, one.vacuous ? " — vacuous" : ""), h("p", {}, one.statement),
      parts.length ? h("figure", { class: "bound", id, role: "group", "aria-label": "Parts of the bound" }) : null,
      h("details", {}, h("summary", {}, "Every term, and what was not checked"), table(["term", "value"], one.rows.map((row) => [row.name, row.value])),
        h("ul", {}, one.assumptions.map((line) => h("li", {}, line)))));
  });
}

function trust(name, facts) {
  const shown = h("div", {}, promises(facts.certificates)), asked = { loss: "error", bound: "auto" };
  const go = h("button", { id: "certify", onclick: () => tried(async () => shown.replaceChildren(...promises(await ask("certify", { name, ...asked, delta: 0.05 }))), go) }, "Certify");
  return section("How far to trust it",
    h("p", {}, "A certificate is a promise about new recordings from the same source, false in at most 5 % of cases. It needs recordings that the fit has not used; where it cannot be given, it is refused."),
    h("div", { class: "fields" }, field("loss", select([["error", "squared error"], ["interval", "values outside the 90 % interval"], ["band", "any value outside a band"], ["crps", "CRPS"]], "error", (v) => { asked.loss = v; })),
      field("promise", select([["auto", "a bound on the loss"], ["conformal", "a band around forecasts"]], "auto", (v) => { asked.bound = v; })), go), shown);
}

function takeAway(name) {
  const frame = h("div", {}), query = `?name=${encodeURIComponent(name)}`;
  const open = h("button", { id: "report", onclick: () => tried(async () => {
    await ask("report", { name });
    frame.replaceChildren(h("iframe", { class: "report", src: `report${query}`, title: "Report" }));
  }, open) }, "Show the report");
  const files = [["report.html", "Report", "one page, needs no network"], ["settings.toml", "Settings", "for hybridsde fit"],
    ["run.zip", "Run folder", "for every command"], ["fit.py", "Python", "that does the same"]];
  return section("Take it away", h("div", { class: "take" }, files.map(([what, label, words]) =>
    h("a", { class: "button", href: `export/${what}${query}`, download: "" }, label, h("span", {}, words)))),
  h("div", { class: "row" }, open, h("span", { class: "soft" }, "It takes some twenty seconds to compute.")), frame);
}

export async function results(main, name, facts, alive) {
  const head = [h("h1", {}, last(name), " ", h("span", { class: "chip good" }, "fitted")),
    facts.diverged ? h("p", { class: "warning" }, "The fit diverged and was stopped; the best state before that was kept.") : null,
    ...(facts.job?.notes ?? []).map((line) => h("p", { class: "warning" }, marked(line)))];
  if (facts.python) {
    main.replaceChildren(...head.filter(Boolean), h("p", { class: "warning" }, "The known physics of this run is Python code. The studio shows such runs and does not run them; the command line does, with --trust."),
      h("div", { class: "sections" }, scores(facts), section("Settings", h("pre", { tabindex: "0" }, facts.settings))));
    return;
  }
  main.replaceChildren(...head.filter(Boolean), h("p", { class: "soft spin" }, "Reading the run …"));
  const model = await ask("model", { name });
  if (!alive.still) return;
  const forecast = forecastSection(name, model, alive), scored = h("div", {}, scores(facts));
  main.replaceChildren(h("div", { class: "sections" }, ...head.filter(Boolean), forecast.node, scored, learned(name, facts, model), trust(name, facts),
    takeAway(name), h("details", {}, h("summary", {}, "Settings of this run"), h("pre", { tabindex: "0" }, facts.settings))));
  forecast.load();
  while (alive.still && facts.job?.state === "running") {
    await new Promise((done) => setTimeout(done, 1500));
    facts = await ask("run", { name });
    if (alive.still && facts.job?.state !== "running") scored.replaceChildren(scores(facts));
  }
}
