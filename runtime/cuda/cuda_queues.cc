#include "runtime/cuda/cuda_queues.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "pcg/schedule/program/program.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Computation, communications, and copies to the host and from it.
constexpr size_t kStreams = 4;
size_t StreamOf(int32_t queue) {
  return queue == kComputeQueue ? 0 : queue == kOffloadQueue ? 2 : queue == kFetchQueue ? 3 : 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaQueues>> CudaQueues::Make(CudaDevice* device) {
  ISOMER_RETURN_IF_ERROR(device->Enter());
  std::unique_ptr<CudaQueues> queues(new CudaQueues(device));
  int least = 0, greatest = 0;
  ISOMER_RETURN_IF_ERROR(device->Check(device->driver().stream_priorities(&least, &greatest),
                                       "says nothing of its streams"));
  for (size_t s = 0; s < kStreams; ++s) {
    void* stream = nullptr;
    ISOMER_RETURN_IF_ERROR(device->Check(
        device->driver().create_stream(&stream, cuda_driver::kNonBlocking, s == 0 ? 0 : greatest),
        "gives no stream"));
    queues->streams_.push_back(stream);
  }
  return queues;
}

CudaQueues::~CudaQueues() {
  Leave();
  Release();
  if (!device_.Enter().ok()) return;
  const CudaDriver& driver = device_.driver();
  for (void* stream : streams_) driver.synchronize(stream);
  for (void* recording : recordings_) driver.destroy_executable(recording);
  for (const auto& [mark, event] : events_) driver.destroy_event(event);
  for (void* stream : streams_) driver.destroy_stream(stream);
  if (gate_ != nullptr) device_.FreeOnHost(gate_);
}

absl::Status CudaQueues::Enter(int32_t queue) {
  entered_ = StreamOf(queue);
  device_.UseStream(stream());
  return device_.Enter();
}

void CudaQueues::Leave() { device_.UseStream(nullptr); }

absl::Status CudaQueues::Mark(int32_t mark) {
  void*& event = events_[mark];
  if (event == nullptr) {
    ISOMER_RETURN_IF_ERROR(
        device_.Check(device_.driver().create_event(&event, 0), "gives no event"));
  }
  return device_.Check(device_.driver().record(event, stream()), "does not mark a stream");
}

absl::Status CudaQueues::WaitFor(int32_t mark) {
  return device_.Check(device_.driver().wait_event(stream(), events_.at(mark), 0),
                       "does not wait for a stream");
}

// Asks rather than sleeps: a step of a millisecond should not end later than it does. After a
// while it asks less often.
absl::Status CudaQueues::Finish(const std::function<absl::Status()>& poll) {
  entered_ = 0;
  device_.UseStream(stream());
  constexpr int kOftenAsked = 10000;
  for (int asked = 0;; ++asked) {
    const int state = device_.driver().query(stream());
    if (state != cuda_driver::kNotReady) break;  // An error is of Wait, too.
    if (asked % 64 == 63) ISOMER_RETURN_IF_ERROR(poll());
    if (asked < kOftenAsked) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return device_.Wait();
}

absl::Status CudaQueues::Hold() {
  if (gate_ == nullptr) {
    ISOMER_ASSIGN_OR_RETURN(void* const word, device_.AllocateOnHost(sizeof *gate_));
    gate_ = static_cast<unsigned*>(word);
  }
  std::atomic_ref(*gate_).store(0);
  return device_.Check(
      device_.driver().wait_value(stream(), reinterpret_cast<CudaDriver::Address>(gate_), 1, 0),
      "does not hold a stream");
}

void CudaQueues::Release() {
  if (gate_ != nullptr) std::atomic_ref(*gate_).store(1);
}

absl::StatusOr<double> CudaQueues::ElapsedUs(int32_t from_mark, int32_t to_mark) {
  float ms = 0;
  ISOMER_RETURN_IF_ERROR(
      device_.Check(device_.driver().elapsed(&ms, events_.at(from_mark), events_.at(to_mark)),
                    "does not say when it was done"));
  return ms * 1e3;
}

absl::Status CudaQueues::BeginRecording() {
  ISOMER_RETURN_IF_ERROR(Enter(kComputeQueue));
  return device_.Check(device_.driver().begin_capture(stream(), cuda_driver::kCaptureOfThisThread),
                       "does not record");
}

absl::StatusOr<int32_t> CudaQueues::EndRecording() {
  ISOMER_RETURN_IF_ERROR(Enter(kComputeQueue));
  const CudaDriver& driver = device_.driver();
  void *graph = nullptr, *recording = nullptr;
  ISOMER_RETURN_IF_ERROR(
      device_.Check(driver.end_capture(stream(), &graph), "did not record a step"));
  const int error = driver.instantiate(&recording, graph, 0);
  driver.destroy_graph(graph);
  ISOMER_RETURN_IF_ERROR(device_.Check(error, "does not take a recorded step"));
  recordings_.push_back(recording);
  return static_cast<int32_t>(recordings_.size()) - 1;
}

void CudaQueues::DropRecordings() {
  if (!device_.Enter().ok()) return;
  for (void* recording : recordings_) device_.driver().destroy_executable(recording);
  recordings_.clear();
}

absl::Status CudaQueues::Replay(int32_t recording) {
  ISOMER_RETURN_IF_ERROR(Enter(kComputeQueue));
  return device_.Check(device_.driver().launch_graph(recordings_[recording], stream()),
                       "does not replay a step");
}

}  // namespace isomer
