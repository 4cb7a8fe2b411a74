// A number that records what is done with it.
//
// The reference evaluator over these numbers does not compute values but writes down the
// computation, an instruction per scalar operation. So code is compiled from a declaration without
// a second reading of what declarations mean (field_program.h).
#ifndef ISOMER_PCG_EVALUATION_TRACED_NUMBER_H_
#define ISOMER_PCG_EVALUATION_TRACED_NUMBER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pcg/evaluation/number.h"
#include "pcg/evaluation/prime_field.h"
#include "pcg/ir/declaration.h"

namespace isomer {

// What was recorded: slots hold constants, inputs, and results of instructions.
struct Trace {
  static constexpr int32_t kNone = -1;
  struct Step {
    ScalarOp op;
    int32_t a = kNone, b = kNone;  // slots
    int32_t result = kNone;
  };
  std::vector<PrimeField> constants;  // of slots 0, 1, ..; slot 0 is zero
  std::vector<int32_t> constant_slots;
  std::vector<Step> steps;
  int32_t num_slots = 0;
  // Set if the computation depends on values (a look-up, a Where): then it was not recorded.
  bool depends_on_values = false;

  int32_t NewSlot() {
    constant_of_slot_.push_back(kNone);
    return num_slots++;
  }
  int32_t Constant(PrimeField number);
  int32_t Apply(ScalarOp op, int32_t a, int32_t b = kNone);

 private:
  // Null: the slot holds no constant.
  const PrimeField* ConstantIn(int32_t slot) const;

  absl::flat_hash_map<uint64_t, int32_t> constant_ids_;
  std::vector<int32_t> constant_of_slot_;  // which of `constants`; kNone: another slot
  // Equal steps of one function are one: (op, a), b -> result.
  absl::flat_hash_map<std::pair<uint64_t, int32_t>, int32_t> known_;
};

// Where the numbers of this thread are recorded. REQUIRES: set while a Traced is computed with.
inline thread_local Trace* current_trace = nullptr;

// Default: zero, which is slot 0.
struct Traced {
  int32_t slot = 0;
  friend Traced operator+(Traced a, Traced b) {
    return {current_trace->Apply(ScalarOp::kAdd, a.slot, b.slot)};
  }
  friend Traced operator-(Traced a, Traced b) {
    return {current_trace->Apply(ScalarOp::kSub, a.slot, b.slot)};
  }
  friend Traced operator*(Traced a, Traced b) {
    return {current_trace->Apply(ScalarOp::kMul, a.slot, b.slot)};
  }
  friend Traced operator/(Traced a, Traced b) {
    return {current_trace->Apply(ScalarOp::kDiv, a.slot, b.slot)};
  }
  friend bool operator==(Traced, Traced) {
    current_trace->depends_on_values = true;
    return false;
  }
};

template <>
struct Number<Traced> {
  static Traced Of(ScalarOp op, Traced a, int32_t b = Trace::kNone) {
    return {current_trace->Apply(op, a.slot, b)};
  }
  static Traced FromDouble(double value) {
    return {current_trace->Constant(PrimeField::FromDouble(value))};
  }
  static int64_t ToIndex(Traced) {
    current_trace->depends_on_values = true;
    return 0;
  }
  static Traced Max(Traced a, Traced b) { return Of(ScalarOp::kMax, a, b.slot); }
  static bool Less(Traced a, Traced b) { return a == b; }
  static Traced Exp(Traced x) { return Of(ScalarOp::kExp, x); }
  static Traced Log(Traced x) { return Of(ScalarOp::kLog, x); }
  static Traced Sqrt(Traced x) { return Of(ScalarOp::kSqrt, x); }
  static Traced Tanh(Traced x) { return Of(ScalarOp::kTanh, x); }
  static Traced Erf(Traced x) { return Of(ScalarOp::kErf, x); }
  static Traced Sin(Traced x) { return Of(ScalarOp::kSin, x); }
  static Traced Cos(Traced x) { return Of(ScalarOp::kCos, x); }
  static Traced Atan(Traced x) { return Of(ScalarOp::kAtan, x); }
  static Traced Floor(Traced x) { return Of(ScalarOp::kFloor, x); }
  static Traced Round(Traced x) { return Of(ScalarOp::kRound, x); }
  static Traced Pow(Traced a, Traced b) { return Of(ScalarOp::kPow, a, b.slot); }
  static Traced Random(Traced a, Traced b) { return Of(ScalarOp::kRandom, a, b.slot); }
};

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_TRACED_NUMBER_H_
