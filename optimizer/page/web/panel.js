"use strict";
// What is known of one operator, beside the graph. Escape closes it and goes back.
page.showNode = function(graph, index, data, from) {
  const node = graph.nodes[index];
  const title = document.getElementById("panel-title");
  title.textContent = node.name ? `${node.label} ${node.name}` : node.label;
  document.getElementById("panel-body").replaceChildren(...page.nodeDetails(graph, index, data));
  const panel = document.getElementById("panel");
  panel.hidden = false;
  panel.from = from;
  for (const other of document.querySelectorAll(".node.open")) other.classList.remove("open");
  from.classList.add("open");
  title.focus();
};

page.closePanel = function() {
  const panel = document.getElementById("panel");
  if (panel.hidden) return;
  panel.hidden = true;
  if (panel.from) {
    panel.from.classList.remove("open");
    panel.from.focus();
  }
};

// "bf16[64:2,256] c4": each shard is 32 × 256.
page.shardText = function(type) {
  const match = /^(\w+)\[(.*)\](.*)$/.exec(type);
  if (!match) return type;
  const sizes = match[2] === "" ? [] : match[2].split(",").map((dim) => {
    const [size, degree] = dim.split(":").map(Number);
    return degree ? size / degree : size;
  });
  return `${type}; a shard: ${sizes.length === 0 ? "one number" : sizes.join(" × ")}`;
};

page.nodeDetails = function(graph, index, data) {
  const node = graph.nodes[index];
  const total = page.timeOfNode(node);
  const facts = page.facts([
    ["operator", node.operator], ["times", page.countText(node.count)],
    ["result", node.types.map(page.shardText).join("; ")], ["split", node.split],
    ["devices", node.devices],
    ["forward", node.forward_us ? `${page.timeText(node.forward_us)} each` : ""],
    ["backward", node.backward_us ? `${page.timeText(node.backward_us)} each` : ""],
    ["in a step", total > 0 ? page.timeText(total) + page.shareOfStep(total, data) : ""],
    ["times from", page.originText(node)], ["such as", node.members.join(", ")]
  ]);
  const parts = [facts];
  if (node.operands.length > 0) {
    parts.push(
        page.element("h3", {}, "Operands"),
        page.element(
            "ul", {},
            node.operands.map(
                (operand) => page.element(
                    "li", {},
                    `${operand.from ? `${operand.from}: ` : ""}${page.shardText(operand.type)}`))));
  }
  if ((node.exchanges || []).length > 0) {
    parts.push(
        page.element("h3", {}, "Communication of a step"),
        page.table(
            "Exchanges for this operator, of the simulated devices",
            [
              {title: "exchange"}, {title: "times", number: true},
              {title: "bytes each", number: true}, {title: "time each", number: true}
            ],
            node.exchanges.map(
                (exchange) =>
                    [exchange.what, page.countText(Math.round(exchange.count)),
                     page.bytesText(exchange.bytes_each), page.timeText(exchange.us_each)])));
  }
  parts.push(...page.lineageDetails(node, data), ...page.neighbours(graph, index));
  return parts;
};

// Stages work side by side: what they take together is no share of the step.
page.shareOfStep = function(us, data) {
  const stages = data.devices.stages.length;
  return stages > 1 ? `, in all ${stages} stages together` :
                      ` (${page.percentText(us / data.report.predicted_step_us)})`;
};

page.originText = function(node) {
  const from = Object.entries(node.times_from || {});
  if (from.length === 0) return "";
  return from.map(([origin, share]) => `${origin} (${page.percentText(share)})`).join(", ");
};

// Which steps made it.
page.lineageDetails = function(node, data) {
  if (!node.steps || !data.derivation) return [];
  const heading = page.element("h3", {}, "Made by");
  if (node.steps.length === 0) return [heading, page.element("p", {}, "It is the model's own.")];
  const items = node.steps.map((step) => {
    const row = data.derivation.rows[data.derivation.row_of_step[step]];
    const rule = data.rules.find(({id}) => id === row.rule);
    if (!rule)
      return page.element("li", {}, `step ${step + 1}: a definition, shown equal at its place`);
    return page.element(
        "li", {}, `step ${step + 1}: `, page.ruleLink(rule.id), ` (${rule.verdict}) `,
        page.element("code", {}, rule.equation));
  });
  return [heading, page.element("ol", {}, items)];
};

page.ruleLink = (id) => page.element("a", {href: `#rule-${id}`}, id);

page.neighbours = function(graph, index) {
  const name = (i) => `${graph.nodes[i].label} ${graph.nodes[i].name}`.trim();
  const from = graph.edges.filter((edge) => edge.to === index).map((edge) => name(edge.from));
  const to = graph.edges.filter((edge) => edge.from === index).map((edge) => name(edge.to));
  return [
    page.element("h3", {}, "Neighbours"), page.facts([
      ["from", from.join("; ") || "nothing that depends on data"],
      ["to", to.join("; ") || "an output of the graph"]
    ])
  ];
};

page.operatorTable = function(graph) {
  const rows =
      graph.nodes.filter((node) => node.kind !== "input")
          .map(
              (node) =>
                  [`${node.label} ${node.name}`.trim(), page.countText(node.count),
                   node.split || page.exchangeText(node) || "–", node.types[0] || "–",
                   page.timeText(node.forward_us || 0), page.timeText(node.backward_us || 0),
                   page.timeText(page.timeOfNode(node))]);
  return page.table(
      "Operators of the plan",
      [
        {title: "operator"}, {title: "times", number: true}, {title: "split, or communication"},
        {title: "type"}, {title: "forward each", number: true},
        {title: "backward each", number: true}, {title: "a step", number: true}
      ],
      rows);
};
