#include "runtime/cuda/routes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/program/program.h"
#include "runtime/cuda/generated_kernel.h"
#include "runtime/cuda/products.h"
#include "runtime/device/task_calls.h"

namespace isomer {
namespace {

struct Launches {
  int64_t products = 0, generated = 0;
};

Launches LaunchesOf(const KernelCall& call) {
  const auto generated = [](const KernelCall& of) {
    const std::optional<GeneratedKernel> kernel = GenerateKernel(of, "k");
    return kernel ? static_cast<int64_t>(kernel->launches.size()) : 0;
  };
  const std::optional<GpuSteps> steps = StepsOfProducts(call);
  if (!steps) return {0, generated(call)};
  Launches launches;
  for (const GpuStep& step : steps->steps) {
    if (!std::holds_alternative<GeneratedStep>(step)) {
      ++launches.products;
    } else {
      launches.generated += generated(std::get<GeneratedStep>(step).call);
    }
  }
  return launches;
}

}  // namespace

std::vector<GpuRoute> RoutesOf(const Graph& graph, const Schedule& schedule, int32_t device) {
  std::map<std::pair<std::string, bool>, GpuRoute> by_name;
  std::map<std::string, Launches> known;  // by key of the call
  const MemoryPlan memory = PlanMemory(schedule, kMostQueues);
  for (const Command& command : CompileProgramOf(schedule, memory, kMostQueues, device)) {
    const Task& task = schedule.tasks[command.task];
    if (task.phase == Phase::kLoad) continue;
    const bool is_call = RunsKernel(task);
    const Operator* op = is_call ? &graph.node(task.node).op : nullptr;
    const bool gradient = task.kind == TaskKind::kComputeGradient;
    const std::string name(is_call ? op->name() : TaskKindName(task.kind));
    GpuRoute& route = by_name[{name, gradient}];
    route.name = name;
    route.gradient = gradient;
    ++route.tasks;
    route.flops += task.flops;
    if (!is_call) {
      // An update has a kernel for each weight, a communication one of NCCL's.
      route.others += task.kind == TaskKind::kUpdate ? task.segments : 1;
      continue;
    }
    const KernelCall call = CallOfTask(graph, schedule, command.task);
    const auto [launches, is_new] = known.try_emplace(call.Key());
    if (is_new) launches->second = LaunchesOf(call);
    route.products += launches->second.products;
    route.generated += launches->second.generated;
    if (IsContraction(op->kind()) && launches->second.products == 0) {
      route.fallback_flops += task.flops;
    }
  }
  std::vector<GpuRoute> routes;
  for (auto& [key, route] : by_name) routes.push_back(std::move(route));
  std::stable_sort(routes.begin(), routes.end(),
                   [](const GpuRoute& a, const GpuRoute& b) { return a.flops > b.flops; });
  return routes;
}

std::string RoutesToString(const std::vector<GpuRoute>& routes) {
  std::string text = absl::StrFormat("%-28s %6s %9s %9s %9s %7s %9s\n", "operator", "tasks",
                                     "products", "generated", "others", "GFLOP", "fallback");
  GpuRoute all;
  const auto share = [](const GpuRoute& of) {
    return of.flops > 0 ? 100 * of.fallback_flops / of.flops : 0.0;
  };
  for (const GpuRoute& route : routes) {
    absl::StrAppendFormat(&text, "%-28s %6d %9d %9d %9d %7.1f %8.2f%%\n",
                          absl::StrCat(route.gradient ? "gradient of " : "", route.name),
                          route.tasks, route.products, route.generated, route.others,
                          route.flops / 1e9, share(route));
    all.tasks += route.tasks;
    all.products += route.products;
    all.generated += route.generated;
    all.others += route.others;
    all.flops += route.flops;
    all.fallback_flops += route.fallback_flops;
  }
  absl::StrAppendFormat(&text,
                        "%d launches a step; %.2f %% of its FLOPs are contractions by generated "
                        "kernels alone\n",
                        all.launches(), share(all));
  return text;
}

}  // namespace isomer
