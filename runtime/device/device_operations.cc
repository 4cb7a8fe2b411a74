#include "runtime/device/device_operations.h"

#include <cstring>

#include "runtime/device/elements.h"

namespace isomer {

absl::Status DeviceOperations::Copy(const void* from, int64_t bytes, void* to) {
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status DeviceOperations::Fill(double value, int64_t count, DataType dtype, void* to) {
  FillElements(value, count, dtype, to);
  return absl::OkStatus();
}

absl::Status DeviceOperations::FillScaled(double value, const double* factor, int64_t count,
                                          DataType dtype, void* to) {
  FillElements(value * *factor, count, dtype, to);
  return absl::OkStatus();
}

absl::Status DeviceOperations::Add(DataType from_dtype, const void* from, int64_t count,
                                   DataType dtype, void* to) {
  AddElements(from_dtype, from, count, dtype, to);
  return absl::OkStatus();
}

absl::Status DeviceOperations::Convert(DataType from_dtype, const void* from, int64_t count,
                                       DataType dtype, void* to) {
  ConvertElements(from_dtype, from, count, dtype, to);
  return absl::OkStatus();
}

absl::Status DeviceOperations::Update(const UpdateRule& rule, const UpdateFactors* factors,
                                      const Gradient& gradient, int64_t count, const float* weights,
                                      float* updated, absl::Span<float* const> states,
                                      const LowWeights& low) {
  UpdateWeights(rule, *factors, gradient, count, weights, updated, states, low);
  return absl::OkStatus();
}

absl::Status DeviceOperations::CopyRegion(const Box& region, const Box& from_box, const void* from,
                                          const Box& to_box, void* to, int64_t element_bytes) {
  isomer::CopyRegion(region, from_box, from, to_box, to, element_bytes);
  return absl::OkStatus();
}

absl::Status DeviceOperations::SumPieces(absl::Span<const MovedPiece> pieces, const Box& box,
                                         DataType dtype, void* buffer) {
  isomer::SumPieces(pieces, box, dtype, buffer);
  return absl::OkStatus();
}

absl::Status DeviceOperations::SumTerms(DataType dtype, absl::Span<const void* const> terms,
                                        int64_t count, void* to) {
  SumElements(dtype, terms, count, to);
  return absl::OkStatus();
}

absl::StatusOr<bool> DeviceOperations::AreFinite(DataType dtype, const void* data, int64_t count) {
  return isomer::AreFinite(dtype, data, count);
}

absl::StatusOr<double> DeviceOperations::SumOfSquares(DataType dtype, const void* data,
                                                      int64_t count) {
  return isomer::SumOfSquares(dtype, data, count);
}

absl::Status DeviceOperations::FromHost(const void* host, int64_t bytes, void* device) {
  return Copy(host, bytes, device);
}

absl::Status DeviceOperations::Wait(const void*) { return absl::OkStatus(); }

absl::Status DeviceOperations::ToHost(const void* device, int64_t bytes, void* host) {
  return Copy(device, bytes, host);
}

}  // namespace isomer
