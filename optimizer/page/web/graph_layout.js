"use strict";
// Where nodes and edges of a graph are drawn.
page.sizeOfNode = function(node) {
  if (node.kind === "call") return {width: 252, height: node.parts ? 66 : 48};
  return {width: node.kind === "move" ? 210 : 160, height: node.kind === "move" ? 46 : 32};
};

page.layout = function(graph) {
  const dag = new dagre.graphlib.Graph();
  dag.setGraph({rankdir: "TB", nodesep: 24, ranksep: 30, marginx: 16, marginy: 16});
  dag.setDefaultEdgeLabel(() => ({}));
  graph.nodes.forEach((node, i) => dag.setNode(i, page.sizeOfNode(node)));
  // Edges from one layer to the next run back where layers are folded.
  for (const edge of graph.edges) {
    if (!edge.returns) dag.setEdge(edge.from, edge.to);
  }
  dagre.layout(dag);
  const {width, height} = dag.graph();
  const nodes = graph.nodes.map((node, i) => dag.node(i));
  let right = width;
  const edges = graph.edges.map((edge) => {
    if (!edge.returns) return {...edge, points: dag.edge(edge.from, edge.to).points};
    right += 12;
    return {...edge, points: page.returning(nodes[edge.from], nodes[edge.to], right)};
  });
  return {nodes, edges, width: right + 12, height};
};

// Around the right of everything.
page.returning = function(from, to, right) {
  // Above and below the middle, where edges of one node would meet.
  const below = {x: from.x + from.width / 2, y: from.y + 6};
  const above = {x: to.x + to.width / 2, y: to.y - 6};
  return [below, {x: right, y: below.y}, {x: right, y: above.y}, above];
};

// d3's zoom, with buttons and keys.
page.zoomable = function(svg, inner, layout, canvas) {
  const selection = d3.select(svg);
  const size = () => ({width: canvas.clientWidth || 600, height: canvas.clientHeight || 560});
  const zoom = d3.zoom()
                   .scaleExtent([0.1, 3])
                   .extent(() => [[0, 0], [size().width, size().height]])
                   .filter(
                       () => !d3.event.button &&
                           (d3.event.type !== "wheel" || d3.event.ctrlKey || d3.event.metaKey))
                   .on("zoom", () => inner.setAttribute("transform", d3.event.transform));
  selection.call(zoom).on("dblclick.zoom", null);
  const show = (scale, x, y) =>
      selection.call(zoom.transform, d3.zoomIdentity.translate(x, y).scale(scale));
  // Letters of 10 px and more, from the first node on; of a graph that is wider than the pane a
  // part.
  const readable = () => {
    const {width} = size();
    const scale = Math.min(1, Math.max(0.8, width / layout.width));
    const spare = width - scale * layout.width;
    const first = layout.nodes.length > 0 ? layout.nodes[0].x : 0;
    show(
        scale, spare >= 0 ? spare / 2 : Math.min(0, Math.max(spare, width / 2 - scale * first)), 0);
  };
  const whole = () => {
    const {width, height} = size();
    const scale = Math.min(1, width / layout.width, height / layout.height);
    show(scale, (width - scale * layout.width) / 2, (height - scale * layout.height) / 2);
  };
  const by = (factor) => selection.call(zoom.scaleBy, factor);
  const button = (text, label, act) => {
    const element = page.element("button", {type: "button", "aria-label": label}, text);
    element.addEventListener("click", act);
    return element;
  };
  svg.addEventListener("keydown", (event) => {
    const act =
        {"+": () => by(1.25), "=": () => by(1.25), "-": () => by(0.8), "0": readable}[event.key];
    if (act) act();
  });
  // Nodes reached by key are brought into view.
  svg.addEventListener("focusin", (event) => {
    const node = event.target.closest(".node");
    if (!node || !event.target.matches(":focus-visible")) return;
    const {x, y} = layout.nodes[node.dataset.index];
    selection.call(zoom.translateTo, x, y);
  });
  requestAnimationFrame(readable);
  return {
    buttons: page.element(
        "span", {class: "zoom"}, button("+", "Zoom in", () => by(1.25)),
        button("−", "Zoom out", () => by(0.8)), button("Fit", "Show the whole graph", whole),
        button("1:1", "Readable size", readable))
  };
};
