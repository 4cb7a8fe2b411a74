"use strict";
// How the plan was found.
page.drawSearch = function(data, section) {
  const {search, proposers, lower_bound: bound, report} = {...data.report, report: data.report};
  const facts = [
    ["plan from", report.plan === "search" ? "the search" : report.plan],
    [
      "bound by",
      bound ? `${bound.by}: ${page.timeText(bound.step_us)}, at most ${
                  page.percentText(bound.gap)} could be saved` :
              ""
    ]
  ];
  if (search) {
    facts.push(
        ["seconds", page.digits(search.seconds)], ["candidates", page.countText(search.candidates)],
        ["stopped", search.stop_reason],
        ["pieces", `${search.pieces}, ${search.distinct_pieces} of them distinct`],
        ["proof of optimality", search.proof]);
  }
  section.append(page.facts(facts));
  const rows = Object.entries(proposers).filter(([, row]) => row.plans > 0 || row.best > 0);
  if (rows.length > 0) {
    section.append(page.table(
        "Who proposed plans, and what each gained",
        [
          {title: "proposer"}, {title: "plans", number: true},
          {title: "became the best", number: true}, {title: "gain", number: true},
          {title: "seconds", number: true}
        ],
        rows.map(
            ([name, row]) =>
                [name, page.countText(row.plans), page.countText(row.best),
                 page.percentText(row.gain), row.seconds.toFixed(2)])));
  }
};
