// A run: watched while it is fitted, asked when it is there.
import { ask, byId, drawing, h, last, link, number, seconds, tried } from "./parts.js";
import { results } from "./results.js";

const ACTIVE = ["waiting", "running"];

function lossChart(job) {
  const c = charts("epoch"), x = job.curve.map((one) => one.epoch);
  const line = (key, name, colour) => ({ x, y: job.curve.map((one) => one[key] ?? null), name, mode: "lines",
    line: { color: colour, width: 2 }, hovertemplate: "%{y:.4g}" });
  const traces = [line("loss", "training loss", c.colour("--known"))];
  if (job.curve.some((one) => "validation_loss" in one)) traces.push(line("validation_loss", "validation", c.colour("--learned")));
  byId("chart-loss").hidden = false;
  byId("loss-said").hidden = true;
  c.draw("chart-loss", traces, "loss", "epoch", { showlegend: traces.length > 1 });
}

function progress(job) {
  const share = job.fitted ? 1 : job.epochs ? job.epoch / job.epochs : null;
  const bar = h("progress", { max: "1", "aria-label": "How far the fit is" });
  if (share !== null) bar.setAttribute("value", String(share));
  const left = job.left ? `, about ${seconds(job.left)} left` : "";
  const count = job.epochs && !job.fitted ? `, step ${job.epoch} of ${job.epochs}` : "";
  return [bar, h("p", { id: "fit-stage" }, `${job.stage}${count}${left}. ${seconds(job.elapsed)} so far.`)];
}

// Parameters and a forecast as the fit has them by now.
function seenNow(seen, clock) {
  const names = Object.keys(seen.parameters);
  const facts = names.length ? h("dl", { class: "facts" }, names.flatMap((name) =>
    [h("dt", {}, name), h("dd", {}, number(seen.parameters[name], 4))])) : null;
  const { forecast } = seen, c = charts(clock);
  byId("glimpse-said").textContent = `After epoch ${seen.epoch}: ${forecast.id} from its first rows.`;
  byId("glimpse-facts").replaceChildren(...(facts ? [facts] : []));
  byId("chart-glimpse").hidden = false;
  c.draw("chart-glimpse", [...c.fan(forecast.forecast, 0, c.colour("--known"), "median"), c.recorded(forecast, 0, forecast.given)], "", clock);
}

function watching(main, name, job) {
  const stop = h("button", { id: "stop", onclick: () => tried(() => ask("stop", { name }), stop) }, "Stop");
  main.replaceChildren(h("h1", {}, last(name), " ", h("span", { class: "chip busy" }, job.state)),
    h("div", { id: "progress", role: "status" }), h("div", { class: "row" }, stop),
    h("p", { class: "soft" }, "It goes on when you close this page. Stopped fits can be resumed, here or by the command line."),
    h("ul", { class: "plain", id: "notes" }),
    h("div", { class: "two" }, h("div", {}, h("h2", {}, "Loss"), h("p", { class: "soft", id: "loss-said" }, "A curve appears with the first steps; programs are compiled before them, which takes some seconds."),
        h("figure", { class: "chart low", id: "chart-loss", hidden: true, role: "group", "aria-label": "Loss along the steps of the fit" })),
      h("div", {}, h("h2", {}, "By now"), h("p", { class: "soft", id: "glimpse-said" },
        "Networks show their parameters and a forecast here after some seconds. A library of terms is found too fast for that."),
        h("div", { id: "glimpse-facts" }), h("figure", { class: "chart low", id: "chart-glimpse", hidden: true, role: "group", "aria-label": "A forecast by now" }))));
}

async function watch(main, name, alive) {
  let shown = null, glimpsed = Date.now(), asking = false;
  for (;;) {
    const { job } = await ask("run", { name });
    if (!alive.still) return null;
    if (!job || !ACTIVE.includes(job.state) || job.fitted) return job;
    if (shown !== job.state) { watching(main, name, job); shown = job.state; }
    byId("progress").replaceChildren(...progress(job));
    byId("notes").replaceChildren(...job.notes.map((line) => h("li", {}, line)));
    if (job.curve.length > 1) lossChart(job);
    if (job.stage === "Fitting" && job.epochs > 40 && !asking && Date.now() - glimpsed > 6000) {
      asking = true;
      ask("glimpse", { name }).then(({ seen }) => { if (alive.still && seen && byId("chart-glimpse")) seenNow(seen, "time"); })
        .catch(() => {}).finally(() => { asking = false; glimpsed = Date.now(); });
    }
    await new Promise((done) => setTimeout(done, 700));
    if (!alive.still) return null;
  }
}

function unfinished(main, name, job) {
  const again = h("button", { class: "main", id: "resume", onclick: () => tried(async () => {
    await ask("resume", { name });
    dispatchEvent(new HashChangeEvent("hashchange"));
  }, again) }, "Resume");
  main.replaceChildren(h("h1", {}, last(name), " ", h("span", { class: "chip bad" }, job ? job.state : "not finished")),
    job?.error ? h("p", { class: "bad" }, job.error) : h("p", {}, "This fit is not finished. It can go on where it was, and ends with the same numbers."),
    h("div", { class: "row" }, again, h("a", { class: "button", href: "#/" }, "Home")));
}

export async function run(main, name, alive) {
  const job = await watch(main, name, alive);
  if (!alive.still) return;
  const facts = await ask("run", { name });
  if (!alive.still) return;
  if (!facts.finished) { unfinished(main, name, job); return; }
  await results(main, name, facts, alive);
}
