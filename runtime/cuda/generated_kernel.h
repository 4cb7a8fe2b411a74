// Kernels generated from declarations: CUDA C++ text that computes what the evaluator does.
//
// An operator's declaration says all that a kernel must know, so that every operator has one, with
// no line of code of its own: each statement becomes a kernel with a thread for every element that
// it defines, which goes over what the statement reduces; where that is much, several threads of a
// block share it, so that they read what lies side by side. Statements that all belong to rows (of
// a softmax, a norm) are one kernel, with a block for each row; so are those that read nothing of
// each other, and gradients of operands. For pointwise operators, and for
// all that move elements, that is what one would write by hand: each element is read once and
// written once, by neighbouring threads. For others (norms, losses, look-ups, cells) it is right,
// and slower than a kernel made for the purpose. Shapes are constants of the text, so that the
// compiler sees them.
//
// Gradients are gathered: a thread for every element of an operand finds the points of the
// iteration space that load it, by solving the indices of its accesses, and sums the adjoints of
// the loads: no atomics, so that a sum is the same in every run. Where indices cannot be solved (of
// a look-up, modulo) threads go over the points and add to the elements.
//
// What is computed is in float, in integers for what is made of coordinates and indices. What a
// call saves for its gradient is not written: generated gradients do not read it.
#ifndef ISOMER_RUNTIME_CUDA_GENERATED_KERNEL_H_
#define ISOMER_RUNTIME_CUDA_GENERATED_KERNEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/device/backend.h"

namespace isomer {

struct GeneratedKernel {
  static constexpr int kBlock = 256;
  // One after the other, with the same arguments.
  struct Launch {
    std::string name;
    int64_t elements;  // that it defines
    // A block of kBlock threads does so many at a time, with as many threads for each as that
    // leaves.
    int elements_per_block = kBlock;
    int64_t blocks() const { return (elements + elements_per_block - 1) / elements_per_block; }
  };
  std::string text;  // of all kernels; to be compiled behind KernelPrelude()
  std::vector<Launch> launches;
  // Of Arguments (prelude.cuh); at least one each there.
  int reads = 0, writes = 0;
  int64_t workspace_bytes = 0;
};

// None of them measured yet.
struct SharingLimits {
  // Reductions over so many points are shared by the threads of a block: two for each lane of a
  // warp.
  int64_t shortest_reduction = 64;
  // Of so many rows each has a block: one for each multiprocessor of a large GPU.
  int64_t fewest_rows = 128;
};

// `name` begins the names of its kernels, and is an identifier. Absent: the gradient of an operator
// that has its result instead of its operands (NeedsOfGradient), and whose statements cannot be
// undone from it. None is such: softmaxes, which would be, are written out.
std::optional<GeneratedKernel> GenerateKernel(const KernelCall& call, absl::string_view name,
                                              const SharingLimits& limits = {});

// The struct Arguments that its kernels take.
std::vector<char> PackArguments(const GeneratedKernel& kernel, absl::Span<const void* const> reads,
                                absl::Span<void* const> writes, void* workspace, void* error,
                                int64_t number);

// The texts of prelude.cuh, and of operations.cuh.
absl::string_view KernelPrelude();
absl::string_view OperationKernels();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_GENERATED_KERNEL_H_
