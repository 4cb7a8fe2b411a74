"use strict";
// The rewrites from the model to the plan, and the rules that they are.
page.rowsShown = 60;

page.drawDerivation = function(data, section) {
  const derivation = data.derivation;
  if (!derivation) {
    section.append(page.element(
        "p", {}, "The plan's rules are not among those given: no derivation is shown."));
    return;
  }
  section.append(page.element(
      "p", {},
      `${page.plural(derivation.steps, "step")} in ${
          page.plural(derivation.rows.length, "row")}: equal steps of ` +
          "repeated layers are one. Each is an instance of a proved rule, or a definition that is shown equal at its " +
          "place; isomer-verify plan replays all of them. Times are of one task of the calls that a step rewrites, " +
          "forward and in training backward, by the cost model: what it gains before exchanges, whose cost is known " +
          "of the whole plan alone."));
  const table = page.element("div");
  const show = (count) => table.replaceChildren(page.derivationTable(derivation, count));
  const all = page.element(
      "button", {type: "button"}, `Show all ${page.countText(derivation.rows.length)} rows`);
  all.addEventListener("click", () => {
    show(derivation.rows.length);
    all.remove();
  });
  show(page.rowsShown);
  section.append(table);
  if (derivation.rows.length > page.rowsShown) section.append(all);
};

page.gainText = function(row) {
  if (!row.has_calls) return "moves data only";
  const {task_us_before: before, task_us_after: after} = row;
  if (Math.abs(before - after) < 1e-9) return `${page.timeText(before)}, as before`;
  return `${page.timeText(before)} → ${page.timeText(after)}`;
};

page.derivationTable = function(derivation, count) {
  const rows = derivation.rows.slice(0, count).map(
      (row) =>
          [page.countText(row.first_step + 1), page.countText(row.times),
           row.rule ? page.ruleLink(row.rule.replace(/\^-1$/, "")) : "definition", row.at || "–",
           page.element("code", {}, row.operators || "x"),
           page.element("code", {}, row.result || "x"), page.gainText(row)]);
  return page.cards(page.table(
      "Steps in their order",
      [
        {title: "step", number: true}, {title: "times", number: true}, {title: "rule"},
        {title: "at"}, {title: "what is there"}, {title: "what takes its place"},
        {title: "time of one task", number: true}
      ],
      rows, "derivation"));
};

page.drawRules = function(data, section) {
  section.append(page.element(
      "p", {},
      `${page.plural(data.rules.length, "rule")} ${
          data.rules.length === 1 ? "was" : "were"} used.`));
  for (const rule of data.rules) {
    const lemmas = (rule.lemmas || []).join(", ");
    section.append(page.element(
        "details", {class: "rule", id: `rule-${rule.id.replace(/\^-1$/, "")}`},
        page.element(
            "summary", {}, page.element("strong", {}, rule.id === "-" ? "definition" : rule.id),
            ` ${rule.kind}, ${page.countText(rule.times)} times, ${
                rule.verdict || "shown equal at its place"}`),
        page.element("pre", {class: "wraps"}, rule.equation), page.facts([
          ["proof", rule.verdict], ["lemmas", lemmas], ["solver", rule.solver], ["note", rule.note],
          ["found by", rule.origin],
          [
            "look closer",
            rule.verdict ? `isomer-generate show rules/default.rules --id=${rule.id}` : ""
          ]
        ])));
  }
  // A link to a rule opens it.
  const open = () => {
    const rule =
        location.hash.startsWith("#rule-") && document.getElementById(location.hash.slice(1));
    if (rule) rule.open = true;
  };
  window.addEventListener("hashchange", open);
  open();
};
