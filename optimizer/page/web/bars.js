"use strict";
// The step of the plan, of each baseline, of the user's own configuration, and the bound.
page.parts = [
  {key: "compute", name: "compute", colour: "var(--compute)"},
  {
    key: "exposed_communication",
    name: "exposed communication",
    colour: "var(--exposed)",
    pattern: "hatched"
  },
  {key: "bubble", name: "bubble", colour: "var(--bubble)", pattern: "dotted"},
  {key: "idle", name: "other idle", colour: "var(--idle)"},
];

page.drawBars = function(data, section) {
  const bars = data.bars;
  // A baseline that takes a hundred times as long would leave nothing of the others to see.
  const longest = Math.min(Math.max(...bars.map((bar) => bar.step_us)), 4 * bars[0].step_us);
  const rows = bars.map(
      (bar) =>
          [page.barName(bar, data.report.plan),
           page.bar(bar, longest),
           page.timeText(bar.step_us),
           page.againstPlan(bar, bars),
           ...page.parts.map(({key}) => (bar.parts ? page.percentText(bar.parts[key]) : "–")),
           bar.peak_bytes === undefined ? "–" : page.bytesText(bar.peak_bytes),
  ]);
  section.append(
      page.legend(page.parts.map(({name, colour, pattern}) => ({name, colour, pattern}))),
      page.cards(page.table(
          "Step of the plan and of what it is held against, on the average device",
          [
            {title: "plan"}, {title: "step"}, {title: "time", number: true},
            {title: "against the plan", number: true},
            ...page.parts.map(({name}) => ({title: name, number: true})),
            {title: `memory of ${page.bytesText(data.memory_bytes)}`, number: true}
          ],
          rows, "bars")),
      page.element(
          "p", {class: "note"},
          "Exposed communication is the time in which a device communicates and computes nothing. " +
              "The bubble is what a pipeline of equal stages waits; other idle time is the rest."));
};

page.barName = function(bar, origin) {
  const words = {baseline: "baseline", own: "your configuration", bound: ""};
  const more = [words[bar.kind], bar.fits === false ? "does not fit" : ""].filter((x) => x !== "");
  if (bar.kind === "plan") {
    const from = {search: "from the search", file: "from a file"}[origin] ||
        `the baseline ${origin}`;
    return page.element(
        "span", {}, page.element("strong", {}, "this plan"),
        page.element("small", {}, ` (${from})`));
  }
  return page.element(
      "span", {}, bar.name,
      more.length > 0 ? page.element("small", {}, ` (${more.join(", ")})`) : "");
};

page.againstPlan = function(bar, bars) {
  if (bar.kind === "plan") return "–";
  const change = bar.step_us / bars[0].step_us - 1;
  if (Math.abs(change) < 0.0005) return "as long";
  return `${change > 0 ? "+" : "−"}${(100 * Math.abs(change)).toFixed(1)} %`;
};

page.bar = function(bar, longest) {
  const width = 100 * Math.min(1, bar.step_us / longest);
  const cut = bar.step_us > longest ? " cut" : "";
  const parts = bar.parts ?
      page.parts.map(
          ({key, colour, pattern}) => page.element(
              "span",
              {class: pattern || "", style: `--swatch:${colour};flex:${bar.parts[key]} 0 0`})) :
      [page.element("span", {class: "unknown", style: "flex:1 0 0"})];
  return page.element(
      "div", {class: `step-bar ${bar.kind}${cut}`, style: `width:${width}%`, "aria-hidden": "true"},
      parts);
};
