// States (pcg/ir/states.h) that are written where the next step reads them.
//
// At the end of a step the next value of a state goes to the input that it is the state of: its
// carry, a move. The carry is a view, and moves nothing, where the next value can lie in the
// input's place from the moment that it is made: nobody reads the state as it was any more by then,
// or nobody but the call that makes it, which can write over its operand (a row of a cache). So
// what a step costs does not grow with a cache but by reading it.
#ifndef ISOMER_PCG_SCHEDULE_MEMORY_CARRIES_H_
#define ISOMER_PCG_SCHEDULE_MEMORY_CARRIES_H_

#include <string>
#include <vector>

#include "pcg/ir/graph.h"
#include "pcg/ir/operator.h"
#include "pcg/schedule/carry.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// The operand that a call may write its result over, element by element or in part; -1: none.
int OperandInPlace(const Operator& op);

// Makes views of carries, of tasks in their final order with their layouts and views.
void MarkCarries(const Graph& graph, Schedule* schedule);

// Why a carry that is a view cannot be one, by its buffers; empty: it can. Whether bytes are
// written over while somebody still reads them is for CheckViews.
std::string WhyNotCarriedInPlace(const Schedule& schedule, const Task& task);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_MEMORY_CARRIES_H_
