// Streams, events and graphs of devices that are none, for tests of code that gives work to GPUs.
// What streams do next is drawn: of all streams of the process any whose head may run. So a wait
// that is missing is found, sooner or later, by what is computed.
#ifndef ISOMER_TESTS_RUNTIME_CUDA_FAKE_STREAMS_H_
#define ISOMER_TESTS_RUNTIME_CUDA_FAKE_STREAMS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace isomer::fake {

// The driver's error numbers that these give.
inline constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotReady = 600,
                     kIllegalAddress = 700, kCaptureUnsupported = 900, kCaptureInvalidated = 901,
                     kCaptureUnjoined = 904, kCaptureIsolation = 905;

// A device, as streams know it. `open`: its memory may be touched now.
class StreamDevice {
 public:
  virtual ~StreamDevice() = default;
  virtual void Open(bool open) = 0;
  int failed = kSuccess;        // as an error of a GPU stays
  std::atomic<int> graphs = 0;  // that were recorded of its streams, and live
};

struct Stream;
struct Event;
struct Graph;

// What a stream has to do: `may_run`, if there is one, is asked for the head of a stream alone, and
// again and again.
struct StreamWork {
  std::function<int()> run;
  std::function<bool()> may_run = nullptr;
};

Stream* NewStream(StreamDevice* device);
void DeleteStream(Stream* stream);
StreamDevice* DeviceOf(const Stream* stream);
// As the driver's: of a stream that is recorded, it is noted alone.
int Give(Stream* stream, StreamWork work);
int Synchronize(Stream* stream);
int Query(Stream* stream);
// All streams of the device.
int SynchronizeDevice(StreamDevice* device);

Event* NewEvent();
void DeleteEvent(Event* event);
int Record(Event* event, Stream* stream);
int WaitEvent(Stream* stream, Event* event);
int Elapsed(float* ms, Event* from, Event* to);

int BeginCapture(Stream* stream);
int EndCapture(Stream* stream, Graph** graph);
int Launch(Graph* graph, Stream* stream);
void DeleteGraph(Graph* graph);
// Of the thread that calls: what waits for devices, or takes memory, is refused meanwhile.
bool IsCapturing();

// With no work running meanwhile.
void Locked(const std::function<void()>& f);

// Draws another order from now on.
void Seed(uint64_t seed);
// Waits of streams for events are forgotten: what code without them would do.
extern std::atomic<bool> forgets_waits;
// How many graphs were given to streams so far.
extern std::atomic<int> graph_launches;

}  // namespace isomer::fake

#endif  // ISOMER_TESTS_RUNTIME_CUDA_FAKE_STREAMS_H_
