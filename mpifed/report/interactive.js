"use strict";

const study = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const hidden = new Set(); // groups that are switched off in the legend
const GRID = 300; // most points of a mean

for (const run of study.runs) {
  for (const [name, text] of Object.entries(run.data)) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    run.data[name] = new Float32Array(bytes.buffer);
  }
}

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/%/g, "&#37;");

/* Text folded into lines of at most 90 signs, as plotly does not fold it. */
function folded(text) {
  const lines = [""];
  for (const word of text.split(/(?<=[ ,/])/)) {
    if (lines.at(-1).length + word.length > 90) lines.push("    ");
    lines[lines.length - 1] += word;
  }
  return lines.map(escaped).join("<br>");
}

/* The points of a run that have both numbers. */
function points(run, x, y) {
  const [xs, ys] = [run.data[x], run.data[y]];
  const found = { x: [], y: [] };
  for (let k = 0; xs && ys && k < xs.length; k++) {
    if (Number.isFinite(xs[k]) && Number.isFinite(ys[k])) {
      found.x.push(xs[k]);
      found.y.push(ys[k]);
    }
  }
  return found;
}

/* y at x on a curve: a straight line between points; after the end its last value, or nothing. */
function at(curve, x, hold, from) {
  const last = curve.x.length - 1;
  if (x > curve.x[last]) return [hold ? curve.y[last] : NaN, last];
  let k = from;
  while (k < last && curve.x[k + 1] < x) k++;
  if (k === last || curve.x[k] >= x) return [curve.y[k], k];
  const share = (x - curve.x[k]) / (curve.x[k + 1] - curve.x[k]);
  return [curve.y[k] + share * (curve.y[k + 1] - curve.y[k]), k];
}

/* Whether x never goes back: only then has a curve one height at each x. */
function ordered(curve) {
  return curve.x.every((x, k) => k === 0 || x >= curve.x[k - 1]);
}

/* The mean of curves over a common grid, geometric on a logarithmic axis. */
function mean(curves, holds, geometric) {
  const start = Math.max(...curves.map((curve) => curve.x[0]));
  let grid = [...new Set(curves.flatMap((curve) => curve.x))].filter((x) => x >= start).sort((a, b) => a - b);
  if (grid.length > GRID) {
    grid = [...new Set(Array.from({ length: GRID }, (_, k) => grid[Math.round((k * (grid.length - 1)) / (GRID - 1))]))];
  }
  const from = curves.map(() => 0);
  const found = { x: [], y: [] };
  for (const x of grid) {
    let [sum, count] = [0, 0];
    curves.forEach((curve, k) => {
      const [y, next] = at(curve, x, holds[k], from[k]);
      from[k] = next;
      if (!Number.isFinite(y)) return;
      sum += geometric ? Math.log(y) : y;
      count += 1;
    });
    if (count) {
      found.x.push(x);
      found.y.push(geometric ? Math.exp(sum / count) : sum / count);
    }
  }
  return found;
}

/* Where numbers stand that a logarithmic axis cannot show: below the least positive one. */
function floor(curves, axis, decades) {
  const all = curves.flatMap((curve) => curve[axis]);
  const positive = all.filter((value) => value > 0);
  if (!positive.length || positive.length === all.length) return null;
  return positive.reduce((a, b) => Math.min(a, b)) / 10 ** decades;
}

function raised(curves, axis, level) {
  for (const curve of curves) curve[axis] = curve[axis].map((value) => (value > 0 ? value : level));
}

function on(run) {
  return study.settings.every(({ key }) => {
    const box = key in run.settings && element(`${key}=${run.settings[key]}`);
    return !box || box.checked;
  });
}

function hover(title, lines, x, y) {
  const text = lines.map((line) => folded(line)).join("<br>");
  const numbers = [[x, "x"], [y, "customdata"]].map(([name, part]) => `${escaped(study.axes[name].title)}: %{${part}:.6~g}`);
  return `<b>${escaped(title)}</b><br>${numbers.join("<br>")}<br>${text}<extra></extra>`;
}

/* One trace for each run, or for each group where means are shown. */
function traces(x, y, logX, logY) {
  const runs = study.runs.filter(on).map((run) => ({ run, ...points(run, x, y) })).filter((curve) => curve.x.length);
  const level = logY ? floor(runs, "y", 0.5) : null;
  const start = logX ? floor(runs, "x", 0.4) : null;
  for (const curve of runs) curve.real = curve.y;
  if (level !== null) raised(runs, "y", level);
  if (start !== null) raised(runs, "x", start);
  const drawn = [];
  study.groups.forEach((group, number) => {
    const own = runs.filter((curve) => curve.run.group === number);
    const look = { legendgroup: String(number), visible: hidden.has(number) ? "legendonly" : true, zorder: group.below, mode: "lines", name: escaped(group.label) };
    const line = { color: group.colour, dash: group.dash, width: 1.8 };
    if (element("mean").checked && own.length > 1 && own.every(ordered)) {
      const found = mean(own, own.map((curve) => curve.run.hold.includes(y)), logY);
      const lines = [`mean of ${own.length} runs`, ...own[0].run.about.slice(1).filter((text) => !text.startsWith("seed"))];
      drawn.push({ ...look, ...found, customdata: found.y, line, hovertemplate: hover(group.label, lines, x, y), group: number });
      return;
    }
    own.forEach((curve, k) => {
      drawn.push({
        ...look, x: curve.x, y: curve.y, customdata: curve.real, showlegend: k === 0, group: number,
        line: own.length > 1 ? { ...line, width: 1 } : line, opacity: own.length > 1 ? 0.6 : 1,
        hovertemplate: hover(group.label, curve.run.about, x, y),
      });
    });
  });
  return { drawn, level, start, count: runs.length };
}

function draw() {
  const [x, y] = [element("x").value, element("y").value];
  const [logX, logY] = [element("log-x").checked, element("log-y").checked];
  const { drawn, level, start, count } = traces(x, y, logX, logY);
  const [shapes, annotations] = [[], []];
  if (level !== null) {
    shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: level, y1: level, line: { color: "#777", width: 1, dash: "dot" } });
    annotations.push({ xref: "paper", x: 0, y: Math.log10(level), text: "≤ 0", showarrow: false, xanchor: "left", yanchor: "bottom" });
  }
  if (start !== null) {
    annotations.push({ yref: "paper", y: 0, x: Math.log10(start), text: "0", showarrow: false, yanchor: "top" });
  }
  const decades = (name, curves) => {
    const all = curves.flatMap((curve) => curve[name === x ? "x" : "y"]).filter((value) => value > 0);
    return Math.log10(all.reduce((a, b) => Math.max(a, b), 1e-300) / all.reduce((a, b) => Math.min(a, b), 1e300));
  };
  const axis = (name, log) => ({
    title: { text: escaped(study.axes[name].title) }, type: log ? "log" : "linear", exponentformat: "power", gridcolor: "#e5e5e5", zeroline: false,
    ...(log && decades(name, drawn) > 2 ? { dtick: 1 } : {}),
  });
  const layout = {
    title: { text: escaped(study.title) }, xaxis: axis(x, logX), yaxis: axis(y, logY), shapes, annotations, hovermode: "closest",
    hoverlabel: { align: "left", font: { size: 11 }, namelength: -1, bgcolor: "white" }, plot_bgcolor: "white", showlegend: true,
    margin: { l: 70, r: 20, t: study.title ? 50 : 20, b: 55 }, uirevision: [x, y, logX, logY].join(),
  };
  Plotly.react("picture", drawn, layout, { responsive: true, displaylogo: false, showSendToCloud: false, toImageButtonOptions: { format: "svg" } });
  element("count").textContent = `${count} of ${study.runs.length} runs`;
}

function choose(id, names, chosen) {
  for (const name of names) element(id).add(new Option(study.axes[name].title, name, false, name === chosen));
}

function switchesOf({ key, name, values, shown }) {
  const field = document.createElement("fieldset");
  const title = field.appendChild(document.createElement("legend"));
  title.textContent = name;
  const list = document.createElement("div");
  for (const [text, state] of [["all", true], ["none", false]]) {
    const button = field.appendChild(document.createElement("button"));
    button.textContent = text;
    button.onclick = () => {
      for (const box of list.querySelectorAll("input")) box.checked = state;
      draw();
    };
    field.append(" ");
  }
  values.forEach((value, k) => {
    const row = list.appendChild(document.createElement("label"));
    const box = row.appendChild(document.createElement("input"));
    Object.assign(box, { type: "checkbox", id: `${key}=${value}`, checked: true, onchange: draw });
    row.append(` ${shown[k]}`);
  });
  field.append(list);
  element("switches").append(field);
}

choose("x", study.x, study.x[0]);
choose("y", study.y, study.y[0]);
element("log-x").checked = study.log ? study.log.x : false;
element("log-y").checked = study.log ? study.log.y : study.axes[study.y[0]].log;
element("mean").checked = study.runs.length > study.groups.length;
element("mean").parentElement.hidden = study.runs.length === study.groups.length;
study.settings.forEach(switchesOf);
for (const id of ["x", "log-x", "log-y", "mean"]) element(id).onchange = draw;
element("y").onchange = () => {
  element("log-y").checked = study.axes[element("y").value].log;
  draw();
};
draw();

element("picture").on("plotly_legendclick", (event) => {
  const group = event.data[event.curveNumber].group;
  if (!hidden.delete(group)) hidden.add(group);
  draw();
  return false;
});
element("picture").on("plotly_legenddoubleclick", (event) => {
  const group = event.data[event.curveNumber].group;
  const alone = hidden.size === study.groups.length - 1 && !hidden.has(group);
  hidden.clear();
  if (!alone) study.groups.forEach((_, number) => number !== group && hidden.add(number));
  draw();
  return false;
});
