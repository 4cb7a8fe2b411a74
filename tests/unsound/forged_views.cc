// Devices and moments that cannot be, and activations that are not there.
#include <algorithm>
#include <limits>

#include "tests/unsound/false_plans.h"

namespace isomer {
namespace {

// Of the bases "data" and "pipeline".
constexpr int kRows = 5, kProduct = 7, kLast = 18, kLoss = 21;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

ClaimChange OfView(int node, std::function<void(MachineView*)> change) {
  return [=](PlanClaim* claim) { change(&claim->plan.views[node]); };
}
ClaimChange OfViews(std::function<void(MachineView*)> change) {
  return [=](PlanClaim* claim) {
    for (MachineView& view : claim->plan.views) change(&view);
  };
}
ClaimChange Recomputing(std::vector<NodeId> nodes) {
  return [=](PlanClaim* claim) { claim->plan.recomputed = nodes; };
}
ClaimChange Offloading(std::vector<NodeId> nodes) {
  return [=](PlanClaim* claim) { claim->plan.offloaded = nodes; };
}
ClaimChange OnDevices(int64_t devices) {
  return [=](PlanClaim* claim) { claim->plan.num_devices = devices; };
}

}  // namespace

std::vector<Forgery> ForgedViews() {
  using View = MachineView;
  return {
      {"views", "two tasks on a device", "data",
       OfView(kProduct, [](View* v) { v->strides[0] = 0; }), "%7 matmul"},
      {"views", "beyond the last device", "data", OfView(kProduct, [](View* v) { v->start = 1; }),
       "%7 matmul"},
      {"views", "before the first device", "data", OfView(kProduct, [](View* v) { v->start = -1; }),
       "%7 matmul"},
      {"views", "backwards from the first device", "data",
       OfView(kProduct, [](View* v) { v->strides[0] = -1; }), "%7 matmul"},
      {"views", "every other device of four", "data",
       OfView(kProduct, [](View* v) { v->strides[0] = 2; }), "%7 matmul"},
      {"views", "so far that it is near again", "data",
       OfView(kProduct, [](View* v) { v->strides[0] = int64_t{1} << 62; }), "%7 matmul"},
      {"views", "as far as can be said", "data",
       OfView(kProduct, [](View* v) { v->start = kMost; }), "%7 matmul"},
      {"views", "a stride less", "data", OfView(kProduct, [](View* v) { v->strides.pop_back(); }),
       "needs 4 strides"},
      {"views", "a stride more", "data", OfView(kProduct, [](View* v) { v->strides.push_back(0); }),
       "needs 4 strides"},
      {"views", "no strides", "data", OfView(kProduct, [](View* v) { v->strides.clear(); }),
       "needs 4 strides"},
      {"views", "a view less", "data",
       [](proto::PlanProto* p) { p->mutable_views()->RemoveLast(); },
       "16 machine views for 17 nodes"},
      {"views", "no views", "data", [](proto::PlanProto* p) { p->clear_views(); },
       "0 machine views for 17 nodes"},
      {"views", "half of the devices", "data", OnDevices(2), "4 tasks on 2 devices"},
      {"views", "no devices", "data", OnDevices(0), "a plan for 0 devices"},
      {"views", "fewer devices than none", "data", OnDevices(-4), "a plan for -4 devices"},
      {"views", "more devices than there are", "data", OnDevices(kMost),
       "a plan for 9223372036854"},
      {"views", "devices in another order", "data",
       OfView(kProduct,
              [](View* v) {
                v->start = 3;
                v->strides[0] = -1;
              }),
       ""},
      {"views", "devices that have nothing to do", "data", OnDevices(9), ""},

      {"micro_batches", "half of them at one call", "pipeline",
       OfView(kLast,
              [](View* v) {
                v->moments[0] = 2;
                v->start = 0;
              }),
       "micro-batches"},
      {"micro_batches", "none at one call", "pipeline",
       OfView(kLast, [](View* v) { v->moments.clear(); }), "%18 tanh"},
      {"micro_batches", "of another axis", "pipeline",
       OfView(kLast, [](View* v) { std::swap(v->moments[0], v->moments[1]); }),
       "4 moments of an axis of 1"},
      {"micro_batches", "of copies instead of rows", "pipeline",
       OfView(kLast, [](View* v) { std::swap(v->moments[0], v->moments[2]); }),
       "4 moments of an axis of 1"},
      {"micro_batches", "three", "pipeline", OfViews([](View* v) {
         for (int64_t& moments : v->moments) moments = moments == 4 ? 3 : moments;
       }),
       "3 moments of an axis of 8"},
      {"micro_batches", "sixteen of eight pieces", "pipeline", OfViews([](View* v) {
         for (int64_t& moments : v->moments) moments *= moments == 4 ? 4 : 1;
       }),
       "16 moments of an axis of 8"},
      {"micro_batches", "none of an axis", "pipeline",
       OfView(kLast, [](View* v) { v->moments[0] = 0; }), "0 moments of an axis of 8"},
      {"micro_batches", "fewer than none", "pipeline",
       OfView(kLast, [](View* v) { v->moments[0] = -4; }), "-4 moments of an axis of 8"},
      {"micro_batches", "of no axis", "pipeline",
       OfView(kLast, [](View* v) { v->moments.pop_back(); }), "needs 4 moments or none"},
      {"micro_batches", "of an axis more", "pipeline",
       OfView(kLast, [](View* v) { v->moments.push_back(1); }), "needs 4 moments or none"},
      {"micro_batches", "so many that there are none", "pipeline",
       OfView(kLast,
              [](View* v) {
                v->moments = {kMost, kMost, 4, 4};
              }),
       "moments of an axis of 8"},
      {"micro_batches", "a loss of the last one alone", "pipeline",
       OfView(kLoss, [](View* v) { v->moments.clear(); }), "%21 mse"},
      {"micro_batches", "a weight of the first one alone", "pipeline",
       OfView(kProduct, [](View* v) { v->moments.clear(); }), "%7 replicate"},
      {"micro_batches", "one at a device", "data",
       OfView(kRows,
              [](View* v) {
                v->moments = {4, 1, 1, 1};
                v->strides[0] = 0;
              }),
       ""},
      {"micro_batches", "eight, on one device a stage", "pipeline", OfViews([](View* v) {
         for (int64_t& moments : v->moments) moments *= moments == 4 ? 2 : 1;
       }),
       ""},

      {"offloaded", "a node that there is not", "recomputed", Offloading({{99}}),
       "offloaded: node %99"},
      {"offloaded", "a node twice", "recomputed", Offloading({{10}, {10}}),
       "offloaded: node %10 is not of the graph, or out of order"},
      {"offloaded", "where nothing is differentiated", "inference", Offloading({{10}}),
       "no backward pass"},
      {"offloaded", "all that there is, or computed again", "recomputed",
       [](PlanClaim* c) {
         for (int id = 0; id < c->plan.graph.num_nodes(); ++id) {
           const auto& again = c->plan.recomputed;
           if (std::find(again.begin(), again.end(), NodeId{id}) == again.end()) {
             c->plan.offloaded.push_back({id});
           }
         }
       },
       ""},
      {"offloaded", "what is computed again, too", "recomputed",
       [](PlanClaim* c) { c->plan.offloaded = c->plan.recomputed; }, "is computed again, too"},
      {"recomputed", "a node that there is not", "recomputed", Recomputing({{99}}),
       "recomputed: node %99"},
      {"recomputed", "a node before the first", "recomputed", Recomputing({{-1}}),
       "recomputed: node %-1"},
      {"recomputed", "a node twice", "recomputed", Recomputing({{10}, {10}}),
       "recomputed: node %10 is not of the graph, or out of order"},
      {"recomputed", "backwards", "recomputed", Recomputing({{10}, {9}}),
       "recomputed: node %9 is not of the graph, or out of order"},
      {"recomputed", "where nothing is differentiated", "inference", Recomputing({{10}}),
       "no backward pass in inference"},
      {"recomputed", "all that there is", "recomputed",
       [](PlanClaim* c) {
         c->plan.recomputed.clear();
         for (int id = 0; id < c->plan.graph.num_nodes(); ++id) c->plan.recomputed.push_back({id});
       },
       ""},
  };
}

}  // namespace isomer
