"use strict";
// Draws the page of its data.
page.drawHeader = function(data) {
  const report = data.report;
  document.getElementById("headline").textContent = report.headline;
  document.getElementById("bound").textContent = report.step.bound;
  document.getElementById("subject").textContent =
      `${report.model} on ${data.machine}: ${report.mode}, ${report.precision}`;
};

page.themes = ["auto", "light", "dark"];

page.setTheme = function(theme) {
  if (theme === "auto")
    delete document.documentElement.dataset.theme;
  else
    document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = `Colours: ${theme}`;
  button.setAttribute(
      "aria-label", theme === "auto" ? "Colours: as the system has them" : `Colours: ${theme}`);
  for (const redraw of page.redraws) redraw();
};

page.draw = function() {
  const data = JSON.parse(document.getElementById("data").textContent);
  page.drawHeader(data);
  const sections = {
    step: page.drawBars,
    graph: page.drawGraphs,
    timeline: page.drawTimeline,
    memory: page.drawMemory,
    traffic: page.drawTraffic,
    derivation: page.drawDerivation,
    rules: page.drawRules,
    search: page.drawSearch
  };
  for (const [id, draw] of Object.entries(sections)) draw(data, document.getElementById(id));
  document.getElementById("panel-close").addEventListener("click", page.closePanel);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") page.closePanel();
  });
  document.getElementById("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || "auto";
    page.setTheme(page.themes[(page.themes.indexOf(now) + 1) % page.themes.length]);
  });
  matchMedia("(prefers-color-scheme: dark)")
      .addEventListener("change", () => page.redraws.forEach((redraw) => redraw()));
  // F.html#theme=dark&node=3 opens with another theme than the system's, and with an operator.
  const theme = /theme=(light|dark)/.exec(location.hash);
  if (theme) page.setTheme(theme[1]);
  const node = /node=(\d+)/.exec(location.hash);
  if (node) {
    const element = document.querySelector(`.pane:last-child .node[data-index="${node[1]}"]`);
    if (element) page.showNode(data.graphs.plan, Number(node[1]), data, element);
  }
  // With everything in its place, which asking for a height takes.
  document.documentElement.dataset.drawnMs =
      document.body.offsetHeight > 0 ? Math.round(performance.now()) : "no";
  // By a timer, as browsers without a screen need not draw frames.
  if (location.hash.includes("selftest")) setTimeout(() => page.selfTest(data), 0);
};

page.draw();
