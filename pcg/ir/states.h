// States: what a step leaves for the next, such as the keys and values of earlier tokens.
//
// An output that has the name of an input is the value of that input in the next step. In inference
// it stays on the devices: the lowering carries it to where the input lies (pcg/schedule/lowering),
// at no cost where its call can write it there (pcg/schedule/memory/carries.h), and the host sets
// it before the first step alone.
#ifndef ISOMER_PCG_IR_STATES_H_
#define ISOMER_PCG_IR_STATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/graph.h"

namespace isomer {

struct State {
  std::string name;
  NodeId input;
  TensorRef next;  // the output
};

// In order of the outputs. An output that is the input itself is none: nothing changes it. Nor is
// one whose input nobody reads.
std::vector<State> StatesOf(const Graph& graph);

// What the host gets of a step: in inference, all outputs but the states.
std::vector<Graph::NamedOutput> OutputsForHost(const Graph& graph, bool training);

// Ok if each state has one next value, of the type of its input, and no output for the host is one
// as it was before the step: that is written over by the end. The error names it.
absl::Status CheckStates(const Graph& graph);

// Of all states, whole.
int64_t BytesOfStates(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_STATES_H_
