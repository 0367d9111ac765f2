// The first page: bring a table, take the example, or go on with what is here.
import { ask, byId, h, last, folderOf, inSpreads, link, number, overall, tried, upload } from "./parts.js";

const STEPS = [
  ["Recordings", "A table with one row per time. Gaps, missing values and irregular times are fine."],
  ["What you know", "Some equations, or none. What they lack is learned from the recordings."],
  ["Fit", "Seconds to minutes. Watch it, stop it, go on later."],
  ["Forecast", "With honest uncertainty, sliders for “what if”, and a report to mail."],
];

const go = (name) => { location.hash = link("project", name); };

function dropZone() {
  const take = (file) => file && tried(async () => go((await upload(file)).project));
  const file = h("input", { type: "file", accept: ".csv,.tsv,.txt,.parquet,.pq", hidden: true, id: "file",
    "aria-label": "A table from this machine", onchange: (event) => take(event.target.files[0]) });
  const pick = h("button", { class: "main", onclick: () => file.click() }, "Choose a table");
  const example = h("button", { id: "example",
    onclick: () => tried(async () => go((await ask("example")).project), example) }, "Try the example");
  const zone = h("div", { class: "drop" },
    h("p", {}, h("b", {}, "Drop a table here")),
    h("div", { class: "row" }, pick, example, file),
    h("p", { class: "soft" }, "CSV or Parquet, up to 64 MB. It stays on this machine. " +
      "The example: predators and prey, of which one equation is known."));
  for (const [event, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    zone.addEventListener(event, (found) => {
      found.preventDefault();
      zone.classList.toggle("over", over);
      if (event === "drop") take(found.dataTransfer.files[0]);
    });
  }
  return zone;
}

function runRow(run, chosen) {
  const tick = h("input", { type: "checkbox", "aria-label": `Compare ${run.name}`, disabled: !run.finished,
    onchange: (event) => chosen(run.name, event.target.checked) });
  const crps = overall(run.scores, "crps");
  return h("li", {}, tick, h("a", { href: link("run", run.name) }, last(run.name)),
    run.finished ? null : h("span", { class: "chip busy" }, "not finished"),
    run.damaged ? h("span", { class: "chip bad" }, "damaged") : null,
    crps === undefined || crps === null ? null : h("span", {}, `CRPS ${number(crps)}${inSpreads(run.scores) ? " spreads" : ""}`),
    h("span", {}, new Date(1000 * run.moment).toLocaleString()));
}

// Projects by folder, and the runs beside them.
function grouped(state) {
  const folders = new Map();
  const at = (name) => {
    const key = folderOf(name);
    if (!folders.has(key)) folders.set(key, { projects: [], runs: [] });
    return folders.get(key);
  };
  state.projects.forEach((name) => at(name).projects.push(name));
  state.runs.forEach((run) => at(run.name).runs.push(run));
  return folders;
}

function listing(state) {
  const wanted = new Set();
  const button = h("button", { disabled: true, id: "compare",
    onclick: () => { location.hash = link("compare", [...wanted].join("\n")); } }, "Compare the chosen runs");
  const chosen = (name, on) => {
    if (on) wanted.add(name); else wanted.delete(name);
    button.disabled = wanted.size < 2;
  };
  const cards = [...grouped(state)].map(([folder, { projects, runs }]) => h("div", { class: "project" },
    h("h3", {}, folder),
    h("p", {}, projects.length ? h("span", { class: "soft" }, "Settings: ") : null, projects.map((name, k) => [k ? ", " : "", h("a", { href: link("project", name) }, last(name))])),
    h("ul", {}, runs.map((run) => runRow(run, chosen)))));
  const row = h("div", { class: "row", hidden: state.runs.length < 2 }, button);
  return [h("h1", {}, state.folder), ...cards, row];
}

export async function home(main) {
  const state = await ask("state");
  const empty = !state.projects.length && !state.runs.length;
  const steps = h("ol", { class: "steps" }, STEPS.map(([name, text]) => h("li", {}, h("b", {}, name), h("span", {}, text))));
  main.replaceChildren(...(empty
    ? [h("div", { class: "hero" }, h("h1", {}, "What do your recordings know?"),
      h("p", { class: "soft" }, "Keep the equations that you know, learn what they lack, and forecast with " +
        "an uncertainty that you can check."), dropZone()), steps]
    : [...listing(state), h("h2", {}, "Begin with another table"), dropZone()]));
  if (empty) byId("example").focus({ preventScroll: true });
}
