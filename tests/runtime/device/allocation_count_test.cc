#include "runtime/device/allocation_count.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/device/pinning.h"

namespace isomer {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
constexpr int64_t kRounding = 1 << 15;  // whole pages, and what the test itself keeps

class AllocationCount : public testing::Test {
 protected:
  void SetUp() override {
    if (!AllocationsAreCounted()) GTEST_SKIP() << "nothing is counted here";
    ResetPeakAllocations();
    before_ = ThreadAllocations();
  }
  void ExpectLive(int64_t bytes) {
    EXPECT_NEAR(ThreadAllocations().live - before_.live, bytes, kRounding);
  }
  void ExpectPeak(int64_t bytes) {
    EXPECT_NEAR(ThreadAllocations().peak - before_.live, bytes, kRounding);
  }
  Allocations before_;
};

TEST_F(AllocationCount, SeesWhatIsKeptAndTheMostInBetween) {
  auto kept = std::make_unique<std::vector<char>>(kMegabyte);
  char* volatile passing = new char[3 * kMegabyte];  // volatile: not to be optimised away
  delete[] passing;
  ExpectLive(kMegabyte);
  ExpectPeak(4 * kMegabyte);
  ResetPeakAllocations();
  ExpectPeak(kMegabyte);
  kept.reset();
  ExpectLive(0);
}

TEST_F(AllocationCount, SeesEveryWayToAllocate) {
  void* data = std::malloc(kMegabyte);
  data = std::realloc(data, 2 * kMegabyte);
  ExpectLive(2 * kMegabyte);
  std::free(data);
  data = std::calloc(kMegabyte, 2);
  ExpectLive(2 * kMegabyte);
  std::free(data);
  data = std::aligned_alloc(64, kMegabyte);
  ExpectLive(kMegabyte);
  std::free(data);
  ASSERT_EQ(posix_memalign(&data, 4096, kMegabyte), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0u);
  ExpectLive(kMegabyte);
  std::free(data);
  ExpectLive(0);
  EXPECT_NE(posix_memalign(&data, 3, 16), 0);
}

TEST_F(AllocationCount, OtherThreadsCountTheirOwn) {
  std::vector<char> theirs;
  std::thread([&] {
    theirs.resize(kMegabyte);
    EXPECT_GE(ThreadAllocations().peak, kMegabyte);
  }).join();
  ExpectLive(0);
}

TEST(Pinning, KeepsAThreadToOneCore) {
  std::thread([] {
    const int32_t cores = UsableCores();
    EXPECT_GE(cores, 1);
    EXPECT_FALSE(PinThisThread(0, cores + 1)) << "more devices than cores";
    EXPECT_EQ(UsableCores(), cores);
    EXPECT_TRUE(PinThisThread(cores - 1, cores));
    EXPECT_EQ(UsableCores(), 1);
  }).join();
}

}  // namespace
}  // namespace isomer
