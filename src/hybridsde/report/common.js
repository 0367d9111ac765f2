// What the charts of all pages share: theme, axes, lists to choose from.
"use strict";
function charts(clock) {
  const at = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Four digits of a number, or of the range that it is part of.
  function short(x, span = 0) {
    if (x === null || x === undefined) return "–";
    if (!(span > 0)) return Number(x.toPrecision(4)).toString();
    const places = Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(span))));
    return Number(x.toFixed(places)).toString();
  }
  const range = (numbers) => {
    const told = numbers.filter((x) => x !== null);
    return Math.max(...told) - Math.min(...told);
  };
  // Names are words, not markup: the charts would read them as such.
  const words = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;")
    .replace(/>/g, "&gt;");

  function clear(hex, share) {
    const n = parseInt(hex.slice(1), 16);
    return `rgba(${n >> 16},${(n >> 8) & 255},${n & 255},${share})`;
  }

  function layout(yTitle, xTitle) {
    const ink = colour("--ink"), line = colour("--line");
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line,
      automargin: true, title: { standoff: 8 } };
    return {
      font: { family: "system-ui, sans-serif", size: 13, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 56, r: 14, t: 34, b: 48 }, hovermode: "x unified",
      hoverlabel: { bgcolor: colour("--ground"), bordercolor: line, font: { color: ink } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: ink },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      xaxis: { ...axis, title: { text: words(xTitle), standoff: 8 } },
      yaxis: { ...axis, title: { text: words(yTitle), standoff: 8 } },
    };
  }

  const config = { responsive: true, displaylogo: false, scrollZoom: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]] };

  function draw(id, traces, yTitle, xTitle = clock, more = {}) {
    return Plotly.react(at(id), traces, { ...layout(yTitle, xTitle), ...more }, config);
  }

  function fill(id, names) {
    at(id).replaceChildren(...names.map((name, k) => new Option(name, k)));
    at(id).closest("label").hidden = names.length < 2;
  }

  // Quantiles 5, 25, 50, 75, 95 % as two bands and a line.
  function fan(forecast, state, hex, name, quiet = false) {
    const q = forecast.quantiles[state], x = forecast.times, edge = { width: 0 };
    const part = (k, more) => ({ x, y: q[k], mode: "lines", line: edge, showlegend: false,
      hoverinfo: "skip", ...more });
    const hover = `%{y:.4g} <i>(%{customdata[0]:.4g} to %{customdata[1]:.4g})</i>`;
    return [
      part(0), part(4, { fill: "tonexty", fillcolor: clear(hex, quiet ? 0.1 : 0.18),
        name: "90 %", showlegend: !quiet }),
      part(1), part(3, { fill: "tonexty", fillcolor: clear(hex, quiet ? 0.12 : 0.32),
        name: "50 %", showlegend: !quiet }),
      { x, y: q[2], mode: "lines", name, line: { color: hex, width: 2, dash: quiet ? "dot" : "solid" },
        customdata: q[0].map((low, n) => [low, q[4][n]]), hovertemplate: hover },
    ];
  }

  function recorded(one, state, given) {
    const ink = colour("--ink"), n = one.times.length;
    const open = one.times.map((_, row) => (row < given ? ink : "rgba(0,0,0,0)"));
    return { x: one.times, y: one.values[state], mode: "markers", name: "recorded",
      marker: { size: n > 150 ? 4 : 6, color: open, line: { color: ink, width: 1.3 } },
      hovertemplate: "%{y:.4g}" };
  }

  // The parts of a bound side by side; at one it says nothing.
  function bound(id, parts) {
    const shades = ["#3b8fd1", "#e08a1e", "#20a486", "#cc79a7", "#7fb8e6", "#f3c58a"];
    const told = Object.entries(parts).filter(([, x]) => Math.abs(x) >= 1e-4);
    const bars = told.map(([name, x], k) => ({ type: "bar", orientation: "h", y: [""],
      x: [x], name, marker: { color: shades[k % shades.length] }, hovertemplate: "%{x:.3f}" }));
    return draw(id, bars, "", "bound, by its parts", { barmode: "stack", hovermode: "closest",
      margin: { l: 14, r: 14, t: 34, b: 48 },
      legend: { orientation: "h", x: 0, y: 1.06, yanchor: "bottom", traceorder: "normal" },
      shapes: [{ type: "line", x0: 1, x1: 1, y0: 0, y1: 1, yref: "paper",
        line: { dash: "dash", color: "#8a94a0" } }] });
  }

  document.documentElement.classList.remove("dead");
  return { at, colour, short, range, words, clear, draw, fill, fan, recorded, bound };
}
