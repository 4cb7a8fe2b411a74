// Calls whose gradients are computed in two tasks. Internal to pcg/schedule.
//
// What comes before a contraction waits for the gradient of its data, not for that of its weights.
// Where the way back leads to other devices before it comes to the next contraction, the gradient
// of the data is computed first, and that of the weights while the other is on its way:
//
//   data -exchange- call before        in place of        data, weights -exchange- call before
//        weights
//
// as Megatron-LM does with the all-reduce behind a column-parallel product. In a micro-batch a few
// contractions without an exchange behind them wait for one that has, and where several exchanges
// follow each other, each hides behind some of what waits.
//
// Where backward passes are two halves (pcg/ir/zero_bubble.h) all are split that can be, and the
// gradients of weights come behind all others of their micro-batch.
//
// Split are contractions of which a computed operand and a weight have gradients. The weight is
// read where it is kept (or cast there), and by contractions alone: what else there is to add to
// its gradient comes in order. In two halves it may also be read by calls that have no other
// gradient, such as a look-up in a table that is the last product's weight, too.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_SPLIT_GRADIENTS_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_SPLIT_GRADIENTS_H_

#include <cstddef>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "pcg/schedule/lowering/builder.h"

namespace isomer {

class SplitGradients {
 public:
  // `order`: of the forward tasks, as they are reversed. `wanted`: by forward buffer, whether it
  // depends on a parameter. `seeds`: by buffer, the gradient of the loss (loss_seeds.h). All
  // outlive this.
  SplitGradients(const ScheduleBuilder& builder, const std::vector<bool>& wanted,
                 const std::map<BufferId, double>& seeds, absl::Span<const size_t> order);

  // From place `at` of the order on there is an exchange before the next contraction.
  bool ExchangesFollow(size_t at) const { return exchanges_follow_[at]; }
  // Of a forward task: a contraction that has gradients.
  bool IsContraction(const Task& task) const;
  bool IsSplit(const Task& task) const { return split_[task.node.value]; }
  // In two halves: the task has gradients of weights alone, in the second.
  bool IsOfSecondHalf(const Task& task) const;
  // Of a forward buffer: what a split call computes the gradient of in its second task.
  bool IsWeight(BufferId id) const { return weight_[id]; }
  // A cast of a weight, whose gradient comes behind that of its user.
  bool IsOfWeight(const Task& task) const {
    return task.kind == TaskKind::kCompute && weight_[task.writes[0]];
  }

 private:
  void FindReached(const std::map<BufferId, double>& seeds);
  void FindWeights();
  bool Reaches(const Task& task) const;
  bool CanSplit(const Task& task) const;
  void FindSplit(absl::Span<const size_t> order);
  // Whether a weight that the task reads may wait for the second half.
  bool MayWait(const Task& task) const;

  const ScheduleBuilder& builder_;
  const std::vector<bool>& wanted_;
  // By forward buffer: the loss depends on it; it is a weight, wherever it was sent, or a cast of
  // it.
  std::vector<bool> reached_, of_weights_, weight_;
  std::vector<bool> split_;             // by node
  std::vector<bool> exchanges_follow_;  // by place in the order
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_SPLIT_GRADIENTS_H_
