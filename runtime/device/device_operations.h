// What a device does with its memory that is no operator's kernel: fill, add, convert, update, copy
// regions and sum what arrived. Pointers are the device's.
#ifndef ISOMER_RUNTIME_DEVICE_DEVICE_OPERATIONS_H_
#define ISOMER_RUNTIME_DEVICE_DEVICE_OPERATIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pcg/ir/box.h"
#include "pcg/ir/tensor_type.h"
#include "runtime/device/moves.h"
#include "runtime/device/update.h"

namespace isomer {

// Of devices that are cores; others override all of it. To be called from a device's threads.
class DeviceOperations {
 public:
  virtual ~DeviceOperations() = default;

  virtual absl::Status Copy(const void* from, int64_t bytes, void* to);
  virtual absl::Status Fill(double value, int64_t count, DataType dtype, void* to);
  // Of floats, with `value` times what the device's memory has at `factor`.
  virtual absl::Status FillScaled(double value, const double* factor, int64_t count, DataType dtype,
                                  void* to);
  // AddElements, ConvertElements (elements.h).
  virtual absl::Status Add(DataType from_dtype, const void* from, int64_t count, DataType dtype,
                           void* to);
  virtual absl::Status Convert(DataType from_dtype, const void* from, int64_t count, DataType dtype,
                               void* to);
  // UpdateWeights (update.h); `factors` is in the device's memory.
  virtual absl::Status Update(const UpdateRule& rule, const UpdateFactors* factors,
                              const Gradient& gradient, int64_t count, const float* weights,
                              float* updated, absl::Span<float* const> states,
                              const LowWeights& low);
  // CopyRegion, SumPieces (moves.h).
  virtual absl::Status CopyRegion(const Box& region, const Box& from_box, const void* from,
                                  const Box& to_box, void* to, int64_t element_bytes);
  virtual absl::Status SumPieces(absl::Span<const MovedPiece> pieces, const Box& box,
                                 DataType dtype, void* buffer);
  // SumElements (elements.h): `to`, which may be one of the terms, := their sum.
  virtual absl::Status SumTerms(DataType dtype, absl::Span<const void* const> terms, int64_t count,
                                void* to);
  // Whether all numbers are finite; waits for what the device was given before.
  virtual absl::StatusOr<bool> AreFinite(DataType dtype, const void* data, int64_t count);
  // Of floats, in double and in an order that the count alone says, so that it is the same to the
  // bit each time; waits likewise.
  virtual absl::StatusOr<double> SumOfSquares(DataType dtype, const void* data, int64_t count);

  // Between the host's memory and the device's; what is read waits for what was given before.
  virtual absl::Status FromHost(const void* host, int64_t bytes, void* device);
  virtual absl::Status ToHost(const void* device, int64_t bytes, void* host);
  // Waits until all is done that the device which has this memory was given. An error of that which
  // was not returned yet is returned here.
  virtual absl::Status Wait(const void* memory);
  // The host reads and writes the device's memory as it does its own.
  virtual bool shares_host_memory() const { return true; }
  // What is copied and summed may be of other devices of the process.
  virtual bool reaches_other_devices() const { return true; }
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_DEVICE_OPERATIONS_H_
