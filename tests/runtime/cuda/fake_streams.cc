#include "tests/runtime/cuda/fake_streams.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "pcg/support/hash.h"

namespace isomer::fake {

std::atomic<bool> forgets_waits = false;
std::atomic<int> graph_launches = 0;

// Commands of several streams, with events of their own in between.
struct Graph {
  struct Command {
    size_t lane = 0;
    StreamWork work;               // if it is neither of the following
    int records = -1, waits = -1;  // an event of the graph
  };
  std::vector<Command> commands;
  size_t lanes = 0;
  int events = 0;
  StreamDevice* device = nullptr;
};

struct Capture {
  Graph graph;
  Stream* origin = nullptr;
  std::thread::id thread;
  std::map<const Stream*, size_t> lanes;
  std::map<const Event*, int> events;  // number in the graph
  std::map<size_t, size_t> sizes;      // of lanes
  // How many commands of each lane are over when an event is reached, and at a lane's end.
  std::map<const Event*, std::map<size_t, size_t>> knows;
  std::map<size_t, std::map<size_t, size_t>> known;
  bool is_invalid = false;
};

struct Stream {
  StreamDevice* device = nullptr;
  std::deque<StreamWork> work;
  Capture* capture = nullptr;
};

struct Event {
  int64_t recorded = 0;  // how often it was asked for
  int64_t done = 0;      // the last of these that was reached
  std::chrono::steady_clock::time_point at;
  Capture* capture = nullptr;  // in which it was recorded last
};

namespace {

std::mutex mutex;  // guards all that follows
std::condition_variable changed;
std::list<Stream*> streams;
uint64_t state = 1;
std::map<std::thread::id, int> captures_of_thread;

uint64_t Draw(uint64_t below) { return (state = HashMix(state)) % below; }

// Runs one head of those that may; false: there is none.
bool RunOne() {
  static const Stream* favourite = nullptr;
  std::vector<Stream*> heads;
  for (Stream* stream : streams) {
    if (!stream->work.empty()) heads.push_back(stream);
  }
  if (heads.empty()) return false;
  // One stream as long as it goes, while the others starve; now and then another.
  const auto at = std::find(heads.begin(), heads.end(), favourite);
  size_t first = at == heads.end() || Draw(8) == 0 ? Draw(heads.size()) : at - heads.begin();
  for (size_t i = 0; i < heads.size(); ++i) {
    Stream* stream = heads[(first + i) % heads.size()];
    const StreamWork& head = stream->work.front();
    if (head.may_run != nullptr && !head.may_run()) continue;
    favourite = stream;
    StreamWork work = std::move(stream->work.front());
    if (stream->device->failed == kSuccess) {
      const int error = work.run();
      if (error != kSuccess) stream->device->failed = error;
    }
    stream->work.pop_front();
    changed.notify_all();
    return true;
  }
  return false;
}

void OpenAll(bool open) {
  std::set<StreamDevice*> devices;
  for (Stream* stream : streams) devices.insert(stream->device);
  for (StreamDevice* device : devices) device->Open(open);
}

// Until `done`; what other threads may still give is waited for.
template <typename Done>
bool RunUntil(std::unique_lock<std::mutex>& lock, Done done) {
  constexpr auto kPatience = std::chrono::seconds(60);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    OpenAll(true);
    while (!done() && RunOne()) {
    }
    OpenAll(false);
    if (done()) break;
    if (std::chrono::steady_clock::now() > end) return false;
    changed.wait_for(lock, std::chrono::milliseconds(10));
  }
  return true;
}

int GiveLocked(Stream* stream, StreamWork work) {
  if (stream->capture == nullptr) {
    stream->work.push_back(std::move(work));
    changed.notify_all();
    return kSuccess;
  }
  Capture& capture = *stream->capture;
  const size_t lane = capture.lanes.at(stream);
  ++capture.sizes[lane];
  capture.graph.commands.push_back({lane, std::move(work)});
  return kSuccess;
}

void Learn(std::map<size_t, size_t>* known, const std::map<size_t, size_t>& more) {
  for (const auto& [lane, count] : more) (*known)[lane] = std::max((*known)[lane], count);
}

}  // namespace

Stream* NewStream(StreamDevice* device) {
  std::lock_guard lock(mutex);
  streams.push_back(new Stream{.device = device, .work = {}});
  return streams.back();
}

void DeleteStream(Stream* stream) {
  std::lock_guard lock(mutex);
  streams.remove(stream);
  delete stream;
}

StreamDevice* DeviceOf(const Stream* stream) { return stream->device; }

int Give(Stream* stream, StreamWork work) {
  std::lock_guard lock(mutex);
  return GiveLocked(stream, std::move(work));
}

int Synchronize(Stream* stream) {
  std::unique_lock lock(mutex);
  if (stream->capture != nullptr) {
    stream->capture->is_invalid = true;
    return kCaptureUnsupported;
  }
  if (!RunUntil(lock, [&] { return stream->work.empty(); })) return kNotReady;
  return stream->device->failed;
}

int Query(Stream* stream) {
  std::unique_lock lock(mutex);
  if (stream->capture != nullptr) {
    stream->capture->is_invalid = true;
    return kCaptureUnsupported;
  }
  if (stream->work.empty()) return stream->device->failed;
  constexpr int kAtOnce = 16;
  OpenAll(true);
  for (int i = 0; i < kAtOnce && RunOne(); ++i) {
  }
  OpenAll(false);
  return kNotReady;
}

int SynchronizeDevice(StreamDevice* device) {
  std::unique_lock lock(mutex);
  const bool all = RunUntil(lock, [&] {
    return std::all_of(streams.begin(), streams.end(), [&](const Stream* stream) {
      return stream->device != device || stream->work.empty();
    });
  });
  return all ? device->failed : kNotReady;
}

Event* NewEvent() { return new Event(); }
void DeleteEvent(Event* event) { delete event; }

int Record(Event* event, Stream* stream) {
  std::lock_guard lock(mutex);
  event->capture = stream->capture;
  if (stream->capture != nullptr) {
    Capture& capture = *stream->capture;
    const size_t lane = capture.lanes.at(stream);
    const int number = capture.graph.events++;
    ++capture.sizes[lane];
    capture.graph.commands.push_back({lane, {}, number, -1});
    capture.events[event] = number;
    capture.known[lane][lane] = capture.sizes[lane];
    capture.knows[event] = capture.known[lane];
    return kSuccess;
  }
  const int64_t target = ++event->recorded;
  return GiveLocked(stream, {[event, target] {
                      event->done = std::max(event->done, target);
                      event->at = std::chrono::steady_clock::now();
                      return kSuccess;
                    }});
}

int WaitEvent(Stream* stream, Event* event) {
  std::lock_guard lock(mutex);
  Capture* const capture = event->capture;
  if (stream->capture != nullptr && capture != stream->capture) return kCaptureIsolation;
  if (capture == nullptr) {
    if (forgets_waits) return kSuccess;
    const int64_t target = event->recorded;
    return GiveLocked(stream,
                      {[] { return kSuccess; }, [event, target] { return event->done >= target; }});
  }
  if (stream->capture == nullptr) {  // Joins.
    if (stream->device->failed != kSuccess) return stream->device->failed;
    stream->capture = capture;
    const size_t lane = capture->graph.lanes++;
    capture->lanes[stream] = lane;
  }
  const size_t lane = capture->lanes.at(stream);
  Learn(&capture->known[lane], capture->knows.at(event));
  ++capture->sizes[lane];
  const int number = forgets_waits ? -2 : capture->events.at(event);
  capture->graph.commands.push_back({lane, {[] { return kSuccess; }}, -1, number});
  return kSuccess;
}

int Elapsed(float* ms, Event* from, Event* to) {
  std::lock_guard lock(mutex);
  if (from->done < from->recorded || to->done < to->recorded) return kNotReady;
  if (from->recorded == 0 || to->recorded == 0) return kInvalidValue;
  *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return kSuccess;
}

int BeginCapture(Stream* stream) {
  std::lock_guard lock(mutex);
  if (stream->capture != nullptr) return kInvalidValue;
  auto* capture = new Capture();
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->lanes[stream] = capture->graph.lanes++;
  stream->capture = capture;
  ++captures_of_thread[capture->thread];
  return kSuccess;
}

int EndCapture(Stream* stream, Graph** graph) {
  std::lock_guard lock(mutex);
  Capture* const capture = stream->capture;
  if (capture == nullptr || capture->origin != stream) return kInvalidValue;
  int error = capture->is_invalid ? kCaptureInvalidated : kSuccess;
  const std::map<size_t, size_t>& known = capture->known[0];
  for (const auto& [lane, size] : capture->sizes) {
    const auto of_lane = known.find(lane);
    if (lane != 0 && (of_lane == known.end() || of_lane->second < size)) error = kCaptureUnjoined;
  }
  for (Stream* of : streams) {
    if (of->capture == capture) of->capture = nullptr;
  }
  --captures_of_thread[capture->thread];
  *graph = error == kSuccess ? new Graph(std::move(capture->graph)) : nullptr;
  if (*graph != nullptr) {
    (*graph)->device = stream->device;
    ++stream->device->graphs;
  }
  delete capture;
  return error;
}

bool IsCapturing() {
  std::lock_guard lock(mutex);
  const auto of = captures_of_thread.find(std::this_thread::get_id());
  return of != captures_of_thread.end() && of->second > 0;
}

// The stream waits for streams of the graph's own.
int Launch(Graph* graph, Stream* stream) {
  std::lock_guard lock(mutex);
  if (stream->capture != nullptr) return kCaptureUnsupported;
  ++graph_launches;
  struct Run {
    std::vector<bool> reached;
    std::vector<Stream*> lanes;
    bool has_begun = false;
  };
  auto run = std::make_shared<Run>();
  run->reached.resize(graph->events);
  const auto begin = [run, graph = std::make_shared<Graph>(*graph), device = stream->device] {
    for (size_t l = 0; l < graph->lanes; ++l) {
      run->lanes.push_back(new Stream{.device = device, .work = {}});
      streams.push_back(run->lanes.back());
    }
    for (const Graph::Command& command : graph->commands) {
      Stream* lane = run->lanes[command.lane];
      if (command.records >= 0) {
        lane->work.push_back({[run, number = command.records] {
          run->reached[number] = true;
          return kSuccess;
        }});
      } else if (command.waits >= 0) {
        lane->work.push_back({[] { return kSuccess; },
                              [run, number = command.waits] { return run->reached[number]; }});
      } else {
        lane->work.push_back(command.work);
      }
    }
    return kSuccess;
  };
  const auto is_over = [run] {
    return std::all_of(run->lanes.begin(), run->lanes.end(),
                       [](const Stream* lane) { return lane->work.empty(); });
  };
  const auto end = [run] {
    for (Stream* lane : run->lanes) {
      streams.remove(lane);
      delete lane;
    }
    return kSuccess;
  };
  GiveLocked(stream, {begin});
  return GiveLocked(stream, {end, is_over});
}

void DeleteGraph(Graph* graph) {
  std::lock_guard lock(mutex);
  --graph->device->graphs;
  delete graph;
}

void Locked(const std::function<void()>& f) {
  std::lock_guard lock(mutex);
  f();
}

void Seed(uint64_t seed) {
  std::lock_guard lock(mutex);
  state = HashMix(seed);
}

}  // namespace isomer::fake
