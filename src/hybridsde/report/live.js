// Draws what the page was given; asks nobody.
"use strict";
(() => {
  const live = JSON.parse(document.getElementById("live").textContent);
  const { at, colour, short, range, clear, draw, fill, fan, recorded, bound, words } = charts(live.clock);

  function table(id, head, rows) {
    const row = (cells, tag) => {
      const tr = document.createElement("tr");
      tr.append(...cells.map((cell) => {
        const td = document.createElement(tag);
        td.textContent = cell;
        if (tag === "th") td.scope = "col";
        return td;
      }));
      return tr;
    };
    at(id).replaceChildren(row(head, "th"), ...rows.map((cells) => row(cells, "td")));
  }

  // How many recorded values lie in the 90 % band, in words.
  function said(one, forecast, state, given) {
    let inside = 0, all = 0;
    forecast.times.forEach((_, n) => {
      const y = one.values[state][given + n];
      if (y === null || y === undefined) return;
      all += 1;
      inside += y >= forecast.quantiles[state][0][n] && y <= forecast.quantiles[state][4][n];
    });
    return all ? `${inside} of ${all} recorded values lie in the 90 % band.` : "";
  }

  function forecasts() {
    const modes = [[live.given > 1 ? `from the first ${live.given} rows` : "from the first row", live.series]];
    if (live.rolling.length) modes.push(["from later rows, all before given", live.rolling]);
    fill("pick-mode", modes.map(([name]) => name));
    fill("pick-state", live.observations);
    let list = live.series;
    const show = () => {
      const one = list[at("pick-series").value], state = Number(at("pick-state").value);
      let forecast = one.forecast, given = live.given;
      const rolling = one.origins !== undefined;
      at("origin-label").hidden = !rolling;
      if (rolling) {
        at("pick-origin").max = one.origins.length - 1;
        const origin = one.origins[Math.min(at("pick-origin").value, one.origins.length - 1)];
        forecast = origin.forecast;
        given = origin.row + 1;
        at("origin-value").textContent = `${given} of ${one.times.length}`;
      }
      const name = live.observations[state];
      draw("chart-forecast", [...fan(forecast, state, colour("--known"), "median"),
        recorded(one, state, given)], name);
      const words = `${one.id}, ${name}. ${given} ${given === 1 ? "row" : "rows"} given (filled). ` +
        said(one, forecast, state, given);
      at("forecast-said").textContent = words;
      at("chart-forecast").setAttribute("aria-label", `Forecast of ${words}`);
      const q = forecast.quantiles[state], spans = [range(forecast.times), range(q.flat())];
      table("forecast-table", [live.clock, "5 %", "25 %", "median", "75 %", "95 %"],
        forecast.times.map((t, n) => [short(t, spans[0]),
          ...q.map((each) => short(each[n], spans[1]))]));
    };
    const pick = () => {
      const before = at("pick-series").selectedOptions[0]?.textContent;
      list = modes[at("pick-mode").value][1];
      fill("pick-series", list.map((one) => one.id));
      const same = list.findIndex((one) => one.id === before);
      at("pick-series").value = Math.max(0, same);
      const origins = list[Math.max(0, same)].origins;
      if (origins) {
        at("pick-origin").max = origins.length - 1;
        at("pick-origin").value = Math.floor(origins.length / 2);
      }
      show();
    };
    at("pick-mode").addEventListener("change", pick);
    for (const id of ["pick-series", "pick-state"]) at(id).addEventListener("change", show);
    at("pick-origin").addEventListener("input", show);
    pick();
    return show;
  }

  function whatIf() {
    const what = live.whatif;
    if (!what) return () => {};
    const words = { start: (name) => `start of ${name}`, parameter: (name) => `parameter ${name}`,
      input: (name) => `${name}, times what was recorded` };
    let chosen = 0;
    const sliders = what.levers.map((lever, k) => {
      const label = document.createElement("label"), slider = document.createElement("input");
      const value = document.createElement("output");
      Object.assign(slider, { type: "range", min: 0, max: lever.values.length - 1, step: 1,
        value: lever.now });
      const head = document.createElement("span");
      head.append(`${words[lever.kind](lever.name)}: `, value);
      label.append(head, slider);
      slider.setAttribute("aria-label", words[lever.kind](lever.name));
      slider.addEventListener("input", () => {
        chosen = k;
        sliders.forEach((other, n) => { if (n !== k) other.slider.value = what.levers[n].now; });
        show();
      });
      at("levers").append(label);
      return { slider, value };
    });
    const show = () => {
      what.levers.forEach((lever, k) => {
        const v = short(lever.values[sliders[k].slider.value], range(lever.values));
        sliders[k].value.textContent = v;
        sliders[k].slider.setAttribute("aria-valuetext", v);
      });
      const lever = what.levers[chosen], now = lever.forecasts[lever.now];
      const other = lever.forecasts[sliders[chosen].slider.value];
      const state = Math.max(0, Number(at("pick-state").value));
      const changed = other !== now;
      const traces = changed ? fan(now, state, "#8a94a0", "as it was", true)
        : fan(now, state, colour("--known"), "as it was");
      if (changed) traces.push(...fan(other, state, colour("--learned"), "changed"));
      traces.push(recorded(what, state, live.given));
      draw("chart-whatif", traces, live.observations[state]);
      const last = now.times.length - 1, mid = (f) => f.quantiles[state][2][last];
      const span = range([...now.quantiles[state].flat(), ...other.quantiles[state].flat()]);
      at("whatif-said").textContent = !changed ? "Nothing is changed yet." :
        `At the end the median of ${live.observations[state]} is ${short(mid(other), span)} ` +
        `instead of ${short(mid(now), span)}.`;
    };
    at("pick-state").addEventListener("change", show);
    show();
    return show;
  }

  function driftParts() {
    if (!live.drift.length) return () => {};
    fill("drift-series", live.drift.map((one) => one.id));
    fill("drift-state", live.drift[0].states);
    const show = () => {
      const one = live.drift[at("drift-series").value], k = Number(at("drift-state").value);
      const x = one.times, traces = [], name = one.states[k];
      const edge = { x, mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" };
      if (one.noise) {
        traces.push({ ...edge, y: one.noise[k].map((v) => -v) }, { ...edge, y: one.noise[k],
          fill: "tonexty", fillcolor: "rgba(138,148,160,.18)", name: "noise",
          showlegend: true });
      }
      traces.push({ ...edge, y: one.low[k] }, { ...edge, y: one.high[k], fill: "tonexty",
        fillcolor: clear(colour("--learned"), 0.25) });
      const line = (y, hex, label, width = 2) => ({ x, y, mode: "lines", name: label,
        line: { color: hex, width }, hovertemplate: "%{y:.4g}" });
      traces.push(line(one.known[k], colour("--known"), "known"),
        line(one.learned[k], colour("--learned"), "learned"),
        { ...line(one.known[k].map((v, n) => v + one.learned[k][n]), colour("--ink"), "together", 1.6),
          line: { color: colour("--ink"), width: 1.6, dash: "dot" } });
      draw("chart-drift", traces, `d${name}/dt`);
    };
    for (const id of ["drift-series", "drift-state"]) at(id).addEventListener("change", show);
    show();
    return show;
  }

  function portrait() {
    const plane = live.portrait;
    if (!plane) return () => {};
    const parts = Object.keys(plane.parts), [xs, ys] = plane.places;
    fill("pick-part", parts);
    at("pick-part").value = parts.length - 1;
    const show = () => {
      const name = parts[at("pick-part").value], { ends, rates, shade } = plane.parts[name];
      const hex = colour(shade), x = [], y = [];
      xs.forEach((_, n) => { x.push(xs[n], ends[0][n], null); y.push(ys[n], ends[1][n], null); });
      const paths = plane.paths.map((path) => ({ x: path[0], y: path[1], mode: "lines", hoverinfo: "skip",
        line: { color: "#8a94a0", width: 1 }, opacity: 0.6, showlegend: false }));
      draw("chart-portrait", [...paths,
        { x, y, mode: "lines", line: { color: hex, width: 1.6 }, hoverinfo: "skip", showlegend: false },
        { x: xs, y: ys, mode: "markers", marker: { color: hex, size: 5 }, showlegend: false, name,
          customdata: rates[0].map((rate, n) => [rate, rates[1][n]]),
          hovertemplate: `${words(plane.names[0])} %{x:.4g}, per time %{customdata[0]:.3g}<br>` +
            `${words(plane.names[1])} %{y:.4g}, per time %{customdata[1]:.3g}` }],
        plane.names[1], plane.names[0], { hovermode: "closest" });
    };
    at("pick-part").addEventListener("change", show);
    show();
    return show;
  }

  const bounds = () => live.bounds.forEach((parts, n) => { if (at(`chart-bound-${n}`)) bound(`chart-bound-${n}`, parts); });
  bounds();
  const again = [forecasts(), whatIf(), driftParts(), portrait(), bounds];
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
    () => again.forEach((show) => show()));
})();
