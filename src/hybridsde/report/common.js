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
      legend: { orientation: "h", x: 0, y: 1.13 },
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

  document.documentElement.classList.remove("dead");
  return { at, colour, short, range, words, clear, draw, fill };
}
