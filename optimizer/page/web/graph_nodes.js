"use strict";
// Nodes and edges as SVG, their colours and their keys.
page.picture = function(title, graph, layout, paint, data) {
  const line = (edge) => d3.line()
                             .x((p) => p.x)
                             .y((p) => p.y)
                             .curve(edge.returns ? d3.curveLinear : d3.curveBasis)(edge.points);
  const inner = page.svg("g");
  for (const edge of layout.edges) {
    const width = 1 + Math.min(2, Math.log10(edge.count));
    inner.append(page.svg(
        "path", {
          class: edge.returns ? "edge returns" : "edge",
          d: line(edge),
          "stroke-width": width,
          "marker-end": "url(#arrow)"
        },
        page.svg(
            "title", {},
            `${edge.type}, ${page.countText(edge.count)} times` +
                (edge.returns ? ", to the next layer" : ""))));
  }
  const nodes =
      graph.nodes.map((node, i) => page.nodePicture(node, i, layout.nodes[i], paint(node)));
  inner.append(...nodes);
  const svg =
      page.svg("svg", {class: "graph", role: "group", "aria-label": `${title}, as a graph`}, inner);
  page.walkable(svg, graph, nodes, data);
  return {svg, inner};
};

page.degreesText = function(node) {
  const parts =
      (node.parts || [])
          .map(
              (part) =>
                  (part.devices === 1 ? `${part.dim} in ${part.micro_batches} micro-batches` :
                                        `${part.role || part.dim} ÷${part.devices}`));
  if (node.copies > 1) parts.push(`${node.copies} copies`);
  return parts.length > 0 ? parts.join(" · ") : "whole";
};

page.exchangeText = function(node) {
  const kinds = (node.exchanges || []).map((exchange) => exchange.what.replace(/ \w+,/, ","));
  return [...new Set(kinds)].join("; ");
};

page.timeOfNode = (node) => node.count * ((node.forward_us || 0) + (node.backward_us || 0));

page.labelOfNode = function(node) {
  const parts = [node.label, node.name, node.count > 1 ? `${node.count} times` : ""];
  if (node.split) parts.push(node.split);
  if (page.exchangeText(node)) parts.push(page.exchangeText(node));
  if (page.timeOfNode(node) > 0) parts.push(`${page.timeText(page.timeOfNode(node))} a step`);
  return parts.filter((part) => part !== "").join(", ");
};

page.nodePicture = function(node, index, box, colour) {
  const {width, height} = page.sizeOfNode(node);
  const text = page.labelOfNode(node);
  const group = page.svg(
      "g", {
        class: `node ${node.kind}`,
        transform: `translate(${box.x - width / 2},${box.y - height / 2})`,
        role: "button",
        tabindex: index === 0 ? 0 : -1,
        "aria-label": text,
        "data-index": index,
        "data-text": `${text} ${node.operator}`.toLowerCase()
      },
      page.svg("rect", {class: "box", width, height, rx: node.kind === "call" ? 6 : height / 2}));
  if (colour.colour) {
    group.append(
        page.svg("rect", {width: 8, height: height - 12, x: 4, y: 6, rx: 2, fill: colour.colour}));
  }
  const times = node.count > 1 ? ` ×${page.countText(node.count)}` : "";
  const letters = Math.floor((width - 26) / 7.1);
  const lines = [[page.shortened(node.label, letters - times.length) + times, "title"]];
  if (node.kind === "call" && node.name) lines.push([page.shortened(node.name, letters), "name"]);
  if (node.kind === "input")
    lines[0][0] = page.shortened(`${node.name || node.label}`, letters) + times;
  if (node.kind === "move")
    lines.push([page.shortened(page.exchangeText(node) || "no communication", letters), "name"]);
  if (node.parts) lines.push([page.shortened(page.degreesText(node), letters), "degrees"]);
  lines.forEach(([content, className], i) => {
    group.append(page.svg(
        "text", {
          class: className,
          x: node.kind === "call" ? 18 : 14,
          y: height / 2 + 4 + 18 * (i - (lines.length - 1) / 2)
        },
        content));
  });
  group.append(page.svg("title", {}, text));
  return group;
};

page.walkable = function(svg, graph, nodes, data) {
  const next = {
    ArrowDown: (i) => graph.edges.find((e) => e.from === i && !e.returns)?.to,
    ArrowUp: (i) => graph.edges.find((e) => e.to === i && !e.returns)?.from,
    ArrowRight: (i) => i + 1,
    ArrowLeft: (i) => i - 1,
    Home: () => 0,
    End: () => nodes.length - 1
  };
  const focus = (i) => {
    if (i === undefined || !nodes[i]) return;
    for (const node of nodes) node.setAttribute("tabindex", -1);
    nodes[i].setAttribute("tabindex", 0);
    nodes[i].focus();
  };
  const open = (element) => page.showNode(graph, Number(element.dataset.index), data, element);
  svg.addEventListener("keydown", (event) => {
    const element = event.target.closest(".node");
    if (!element) return;
    const i = Number(element.dataset.index);
    if (next[event.key])
      focus(next[event.key](i) ?? i);
    else if (event.key === "Enter" || event.key === " ")
      open(element);
    else
      return;
    event.preventDefault();
  });
  svg.addEventListener("click", (event) => {
    const element = event.target.closest(".node");
    if (element) open(element);
  });
};

// Colours of nodes, and what they mean.
page.painter = function(by, nodes) {
  const calls = nodes.filter((node) => node.kind === "call");
  if (by === "time") {
    const most = Math.max(...calls.map(page.timeOfNode), 1e-9);
    const steps = [0, 0.01, 0.1, 0.3, 0.6];
    const step = (node) => steps.filter((least) => page.timeOfNode(node) >= least * most).length;
    return {
      of: (node) => (node.kind === "call" ? {colour: `var(--heat-${step(node)})`} : {}),
      legend: steps.map(
          (least, i) =>
              ({colour: `var(--heat-${i + 1})`, name: `from ${page.timeText(least * most)}`}))
    };
  }
  const nameOf = by === "devices" ?
      (node) => `devices ${node.devices}` :
      (node) => (node.parts || []).map((part) => part.dim).join(" + ") || "whole";
  const names = [...new Set(calls.map(nameOf))];
  const colour = (i) => (i < 8 ? `var(--kind-${i + 1})` : "var(--kind-8)");
  return {
    of: (node) => (node.kind === "call" ? {colour: colour(names.indexOf(nameOf(node)))} : {}),
    legend: names.slice(0, 8).map(
        (name, i) => ({colour: colour(i), name: i === 7 && names.length > 8 ? "others" : name}))
  };
};
