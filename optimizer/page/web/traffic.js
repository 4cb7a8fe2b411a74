"use strict";
// Who sends how much to whom: a table whose cells are the darker the more is sent.
page.drawTraffic = function(data, section) {
  const traffic = data.traffic;
  const most = Math.max(1, ...traffic.rows.flatMap((row) => row.bytes));
  const cell = (bytes) => {
    const share = bytes > 0 ? Math.max(0.06, Math.sqrt(bytes / most)) : 0;
    const element = page.element(
        "span", {class: "cell", style: `--share:${share.toFixed(2)}`},
        bytes > 0 ? page.bytesText(bytes) : "–");
    return element;
  };
  const hasUnits = traffic.unit !== "device";
  section.append(
      page.element(
          "p", {class: "note"},
          `What each device${hasUnits ? ` of a ${traffic.unit}` : ""} sends in a step, by the ` +
              "messages of the collectives' algorithms. Rows send, columns receive."),
      page.table(
          "Bytes of a step, from the rows to the columns",
          [
            {title: "from"}, {title: "within its node", number: true},
            {title: "to other nodes", number: true},
            ...traffic.columns.map((title) => ({title, number: true}))
          ],
          traffic.rows.map(
              (row) =>
                  [row.name, page.bytesText(row.within_node), page.bytesText(row.between_nodes),
                   ...row.bytes.map(cell)]),
          "matrix"));
  const links = data.report.step.links.slice(0, 12);
  if (links.length === 0) return;
  section.append(page.element(
      "details", {}, page.element("summary", {}, "The busiest links"),
      page.table(
          "Links by the time that they transfer",
          [
            {title: "link"}, {title: "bytes", number: true}, {title: "busy", number: true},
            {title: "of the step", number: true}
          ],
          links.map(
              (link) =>
                  [link.name, page.bytesText(link.bytes), page.timeText(link.busy_us),
                   page.percentText(link.busy_us / data.report.predicted_step_us)]))));
};
