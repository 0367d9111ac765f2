// Where the page is, and what waits in the queue.
import { ask, byId, complain, folderOf, forgetCharts, h, last, link, seconds } from "./parts.js";
import { compare } from "./compare.js";
import { home } from "./home.js";
import { project } from "./project.js";
import { run } from "./run.js";

const VIEWS = { project, run, compare };
let leave = () => {};

async function show() {
  leave();
  forgetCharts();
  complain("");
  const [, kind, ...rest] = location.hash.split("/");
  const name = decodeURIComponent(rest.join("/"));
  const alive = { still: true };
  leave = () => { alive.still = false; };
  byId("trail").replaceChildren(...trail(kind, name));
  const main = byId("main");
  main.replaceChildren(h("p", { class: "soft spin" }, "Loading …"));
  try {
    await (VIEWS[kind] || home)(main, name, alive);
  } catch (error) {
    main.replaceChildren(h("h1", {}, "This did not work"), h("p", { class: "bad" }, error.message),
      h("p", {}, h("a", { href: "#/" }, "Back to the beginning")));
  }
  document.title = `${name ? last(name) : "Home"} · hybridsde studio`;
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function trail(kind, name) {
  if (!VIEWS[kind]) return [];
  const words = kind === "compare" ? ["Compare"] : [folderOf(name), " / ", last(name)];
  return [h("a", { href: "#/" }, "Home"), " / ", ...words];
}

// The queue in the header; other views ask for what they show themselves.
async function watch() {
  if (document.visibilityState === "visible") {
    try {
      const { queue } = await ask("state");
      const busy = queue.filter((job) => ["waiting", "running"].includes(job.state));
      byId("queue").replaceChildren(...busy.slice(0, 1).map((job) => h("span", { class: "spin" },
        h("a", { href: link("run", job.run) }, last(job.run)), ` ${job.stage.toLowerCase()}`,
        job.left ? `, ${seconds(job.left)} left` : "",
        busy.length > 1 ? `; ${busy.length - 1} waiting` : "")));
    } catch { byId("queue").replaceChildren(h("span", { class: "bad" }, "The studio is not running")); }
  }
  setTimeout(watch, 3000);
}

addEventListener("hashchange", show);
show();
watch();
