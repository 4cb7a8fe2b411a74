#include "runtime/evaluation_main.h"

#include <algorithm>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "runtime/execution/evaluation_calls.h"

ABSL_FLAG(int64_t, eval_every, 0,
          "steps from one test to the next; one at the end, too. 0: at the end of each epoch");
ABSL_FLAG(int64_t, eval_steps, 0, "batches of a test: the first so many; 0: all rows");
ABSL_FLAG(
    std::vector<std::string>, metrics, {},
    "of tests: loss, perplexity, accuracy, top5, auc; else those that fit the model's outputs "
    "and labels (docs/training.md)");
ABSL_FLAG(int64_t, early_stopping, 0,
          "stop after so many tests without a better --monitor; --out then has the weights of the "
          "best test. 0: do not");
ABSL_FLAG(std::string, monitor, "loss", "the metric that --early_stopping goes by");

namespace isomer {
namespace {

absl::StatusOr<std::vector<MetricKind>> MetricsFromFlags(const EvaluationOptions& options) {
  const ScoredOutput* const scored = options.scored.has_value() ? &*options.scored : nullptr;
  const bool has_loss = !options.loss.empty();
  if (!WasGiven("metrics")) return DefaultMetrics(has_loss, scored);
  std::vector<MetricKind> kinds;
  for (const std::string& name : absl::GetFlag(FLAGS_metrics)) {
    const absl::StatusOr<MetricKind> kind = ParseMetric(name);
    if (!kind.ok()) {
      return absl::Status(kind.status().code(),
                          absl::StrCat("--metrics: ", kind.status().message()));
    }
    ISOMER_RETURN_IF_ERROR(CheckMetric(*kind, has_loss, scored));
    if (std::find(kinds.begin(), kinds.end(), *kind) == kinds.end()) kinds.push_back(*kind);
  }
  if (kinds.empty()) return absl::InvalidArgumentError("--metrics: a name is expected");
  return kinds;
}

}  // namespace

absl::Status RefuseEvaluationFlags(absl::string_view why) {
  return RefuseFlags({"eval_every", "eval_steps", "metrics", "early_stopping", "monitor"}, why);
}

absl::StatusOr<Tests> Tests::FromFlags(const Plan& plan, const Feeder& feeder,
                                       const BatchGroups& groups) {
  if (feeder.test_rows() == 0) {
    ISOMER_RETURN_IF_ERROR(RefuseEvaluationFlags(
        feeder.has_rows() ? "needs rows that test: --eval_data or --test_split"
                          : "needs --data with rows that test"));
  }
  for (const auto& [flag, value] :
       {std::pair("eval_every", absl::GetFlag(FLAGS_eval_every)),
        std::pair("eval_steps", absl::GetFlag(FLAGS_eval_steps)),
        std::pair("early_stopping", absl::GetFlag(FLAGS_early_stopping))}) {
    if (value < 0)
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " must not be negative"));
  }
  const int64_t patience = absl::GetFlag(FLAGS_early_stopping);
  if (patience == 0) ISOMER_RETURN_IF_ERROR(RefuseFlags({"monitor"}, "needs --early_stopping"));
  const Graph& graph = plan.model.graph;
  EvaluationOptions options = {.loss = plan.model.loss,
                               .loss_is_mean = LossIsMeanOverRows(graph, plan.model.loss),
                               .most_batches = absl::GetFlag(FLAGS_eval_steps)};
  if (feeder.has_rows()) options.scored = FindScoredOutput(graph, plan.model.loss);
  if (plan.mode == "training") {
    ISOMER_ASSIGN_OR_RETURN(options.metrics, MetricsFromFlags(options));
  }
  if (feeder.test_rows() > 0 && !options.loss_is_mean && feeder.test_rows() < feeder.batch()) {
    std::erase_if(options.metrics, [](MetricKind kind) {
      return kind == MetricKind::kLoss || kind == MetricKind::kPerplexity;
    });
    if (options.metrics.empty()) {
      ISOMER_RETURN_IF_ERROR(RefuseEvaluationFlags(absl::StrCat(
          "needs more rows that test: there are ", feeder.test_rows(), " for batches of ",
          feeder.batch(), ", and the model's own loss may be no mean over rows")));
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const MetricKind monitor, ParseMetric(absl::GetFlag(FLAGS_monitor)));
  const auto& metrics = options.metrics;
  if (patience > 0 && std::find(metrics.begin(), metrics.end(), monitor) == metrics.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--monitor=", absl::GetFlag(FLAGS_monitor), ": tests find ",
        absl::StrJoin(
            metrics, ", ",
            [](std::string* out, MetricKind kind) { absl::StrAppend(out, TraitsOf(kind).name); }),
        "; --metrics says what else"));
  }
  const int64_t every = absl::GetFlag(FLAGS_eval_every);
  // A fifth of all rows may be more than some steps are worth: who says something of tests gets
  // one.
  const bool at_end = every > 0 || patience > 0 || WasGiven("test_split") ||
                      WasGiven("eval_data") || WasGiven("metrics") || WasGiven("eval_steps");
  return Tests(feeder, groups, std::move(options), every, at_end, monitor, patience);
}

std::string Tests::Note(const Graph& graph, const Model& model) const {
  if (!any()) return "";
  const std::vector<std::string> calls = WithoutStatistics(graph, model.statistics);
  if (calls.empty()) return "";
  return absl::StrCat(
      "tests normalise by the statistics of their batches, as the model has no "
      "running ones of ",
      calls.size() == 1 ? "" : absl::StrCat(calls.size(), " calls, such as "), calls[0]);
}

bool Tests::IsDue(int64_t from, int64_t to, int64_t steps) const {
  if (!any()) return false;
  if (at_end_ && to >= steps) return true;
  const int64_t every = every_ > 0 ? every_ : groups_.steps_per_epoch();
  return from / every != to / every;
}

absl::StatusOr<Evaluation> Tests::Run(int64_t step, Job* job, bool* is_best) {
  ISOMER_ASSIGN_OR_RETURN(Evaluation evaluation, Evaluate(options_, *feeder_, job));
  const std::optional<double> monitored = ValueOf(evaluation.metrics, monitor_);
  *is_best = monitored.has_value() && stopping_.Add(step, *monitored);
  done_.push_back({step, evaluation});
  return evaluation;
}

std::string Tests::Text(const Evaluation& evaluation) const {
  std::string text = MetricsText(evaluation.metrics, "test ");
  if (evaluation.rows < feeder_->test_rows()) {
    absl::StrAppend(&text, " (of ", evaluation.rows, " of ", feeder_->test_rows(), " rows)");
  } else if (!options_.loss.empty() && evaluation.rows_of_loss < evaluation.rows) {
    absl::StrAppend(&text, " (the loss of ", evaluation.rows_of_loss, " of ", evaluation.rows,
                    " rows, those of whole batches)");
  }
  return text;
}

std::string Tests::BestText() const {
  const EarlyStopping::State& state = stopping_.state();
  if (state.best_step < 0) return absl::StrCat("no test found a ", monitor());
  return absl::StrFormat("the %s was best after step %d (%.6g)", TraitsOf(monitor_).label,
                         state.best_step, state.best);
}

void Tests::Summarise(Json* summary) const {
  for (const Done& test : done_) {
    Json json;
    json["step"] = test.step;
    json["rows"] = test.evaluation.rows;
    for (const auto& [kind, value] : test.evaluation.metrics) {
      json[std::string(TraitsOf(kind).name)] = value;
      // The last ones.
      (*summary)["metrics"][absl::StrCat("test_", TraitsOf(kind).name)] = value;
    }
    (*summary)["tests"].Append(std::move(json));
  }
  if (!StopsEarly()) return;
  Json& stopping = (*summary)["early_stopping"];
  stopping["monitor"] = monitor();
  stopping["best"] = stopping_.state().best;
  stopping["best_step"] = stopping_.state().best_step;
  stopping["tests_without_better"] = stopping_.state().without_better;
}

}  // namespace isomer
