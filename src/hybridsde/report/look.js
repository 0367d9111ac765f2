// Draws recordings before any fit.
"use strict";
(() => {
  const live = JSON.parse(document.getElementById("live").textContent);
  const { at, colour, draw, fill, short, words } = charts(live.clock);
  const palette = ["#3b8fd1", "#e08a1e", "#20a486", "#cc79a7", "#8a6fd1", "#b04a4a"];

  fill("pick-column", live.columns);
  fill("pick-series", ["all", ...live.series.map((one) => one.id)]);

  function show() {
    const k = Number(at("pick-column").value), only = Number(at("pick-series").value) - 1;
    const chosen = only < 0 ? live.series : [live.series[only]];
    const held = k >= live.columns.length - live.inputs, many = chosen.length > 6 || (innerWidth < 640 && chosen.length > 3);
    const traces = chosen.map((one, n) => ({ x: one.times, y: one.values[k], name: words(one.id),
      mode: chosen.length > 1 ? "lines" : "lines+markers", connectgaps: false,
      opacity: many ? 0.5 : 1,
      line: { color: many ? colour("--known") : palette[n % palette.length], width: 1.3, shape: held ? "hv" : "linear" },
      marker: { size: 4 }, hovertemplate: "%{y:.5g}" }));
    const odd = (live.outliers[k] || []).filter(([row]) => only < 0 || row === only);
    if (odd.length) {
      traces.push({ x: odd.map((one) => one[1]), y: odd.map((one) => one[2]), mode: "markers",
        name: "sticks out", marker: { size: 11, color: "rgba(0,0,0,0)",
          line: { color: "#d55e00", width: 2 } }, hovertemplate: "%{y:.5g}" });
    }
    for (const [row, begin, end, value] of live.still[k] || []) {
      if (only < 0 || row === only) traces.push({ x: [begin, end], y: [value, value], mode: "lines", name: "stands still",
        opacity: 0.5, line: { width: 8, color: "#d55e00" }, hoverinfo: "skip" });
    }
    draw("chart-look", traces, live.columns[k], live.clock,
      { showlegend: !many, hovermode: many ? "closest" : "x unified" });
    at("chart-look").setAttribute("aria-label", `${live.columns[k]} along time, ` +
      (only < 0 ? `${chosen.length} recordings` : chosen[0].id));
  }

  function intervals() {
    const { places, width, counts } = live.intervals, half = width / 2;
    draw("chart-intervals", [{ x: places, y: counts, width: 0.94 * width, type: "bar", name: "intervals",
      marker: { color: colour("--known") }, hovertemplate: "about %{x:.4g}: %{y}" }], "how often",
      `interval between rows${live.unit}`, { hovermode: "closest" });
    at("chart-intervals").setAttribute("aria-label",
      `Intervals between rows, from ${short(places[0] - half)} to ${short(places.at(-1) + half)}`);
  }

  for (const id of ["pick-column", "pick-series"]) at(id).addEventListener("change", show);
  const all = () => { show(); if (live.intervals) intervals(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  all();
})();
