"use strict";
// Two graphs side by side: the model's and the plan's. Nodes are laid out by dagre, panned and
// zoomed by d3, and one stop of the tab key for each graph: arrow keys go on from there.
page.drawGraphs = function(data, section) {
  const state = {colourBy: "split", unfolded: false, search: ""};
  const panes = page.element("div", {class: "panes"});
  const status = page.element("output", {class: "note"});
  const legend = page.element("div");
  const draw = () => {
    const chosen = (graph) => (state.unfolded && graph.unfolded ? graph.unfolded : graph);
    const paint = page.painter(state.colourBy, chosen(data.graphs.plan).nodes);
    legend.replaceChildren(page.legend(paint.legend));
    panes.replaceChildren(
        page.graphPane("Before: the model", chosen(data.graphs.model), () => ({}), data),
        page.graphPane("After: the plan", chosen(data.graphs.plan), paint.of, data));
    search(state.search);
  };
  const search = (text) => {
    state.search = text;
    const found = page.searchGraphs(panes, text);
    status.textContent = text === "" ? "" : `${page.plural(found, "operator")} found`;
  };
  section.append(
      page.graphTools(data, state, draw, search, panes), legend, status, panes,
      page.element(
          "p", {class: "note"},
          "Drag to pan; Ctrl and the wheel, or + and −, to zoom; arrow keys go from operator to " +
              "operator, Enter opens what is known of one. Repeated layers are one: differing numbers in " +
              "names are *. A type f32[64:2,256] c4 p2 has its first dim in 2 shards, 4 copies, 2 partial sums."),
      page.element(
          "details", {}, page.element("summary", {}, "The plan's operators as a table"),
          page.operatorTable(data.graphs.plan)));
  draw();
};

page.graphTools = function(data, state, draw, search, panes) {
  const find = page.element(
      "input", {type: "search", id: "find", placeholder: "matmul, layer*/query, all_gather"});
  find.addEventListener("input", () => search(find.value.trim()));
  find.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const found = panes.querySelector(".pane:last-child .found") || panes.querySelector(".found");
    if (found) found.focus();
  });
  const colour = page.element(
      "select", {id: "colour-by"}, page.element("option", {value: "split"}, "what is split"),
      page.element("option", {value: "devices"}, "devices"),
      page.element("option", {value: "time"}, "time"));
  colour.addEventListener("change", () => {
    state.colourBy = colour.value;
    draw();
  });
  const tools = page.element("div", {class: "tools"}, page.element("label", {for: "find"
  }, "Find ", find), page.element("label", {for: "colour-by"
  }, "Colour by ", colour));
  if (data.graphs.plan.unfolded || data.graphs.model.unfolded) {
    const fold = page.element("input", {type: "checkbox", id: "fold", checked: true});
    fold.addEventListener("change", () => {
      state.unfolded = !fold.checked;
      draw();
    });
    tools.append(page.element("label", {for: "fold"
    }, fold, " Fold repeated layers"));
  }
  return tools;
};

// Marks what matches; how many do.
page.searchGraphs = function(panes, text) {
  const wanted = text.toLowerCase();
  let found = 0;
  for (const node of panes.querySelectorAll(".node")) {
    const matches = wanted !== "" && node.dataset.text.includes(wanted);
    node.classList.toggle("found", matches);
    node.classList.toggle("dimmed", wanted !== "" && !matches);
    found += matches ? 1 : 0;
  }
  return found;
};

page.graphPane = function(title, graph, paint, data) {
  const pane = page.element("figure", {class: "pane"});
  const count = graph.nodes.filter((node) => node.kind === "call").length;
  const canvas = page.element("div", {class: "canvas"});
  const layout = page.layout(graph);
  const picture = page.picture(title, graph, layout, paint, data);
  const zoom = page.zoomable(picture.svg, picture.inner, layout, canvas);
  pane.append(
      page.element(
          "figcaption", {}, page.element("strong", {}, title),
          ` ${page.plural(count, "operator")} drawn`, zoom.buttons),
      canvas);
  canvas.append(picture.svg);
  return pane;
};
